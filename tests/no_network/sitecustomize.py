"""Loaded by every Python process that has this folder on its path: refuse the network, and write down who tried."""

import os
import sys

LOCAL = ("socket.__new__", "socket.gethostname")
"""Events of sockets that reach nobody: making one (pipes between processes are sockets too), asking for the own name."""
UNIX = 1
"""Family of sockets that are files of this machine: processes talk to each other by them."""


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if not event.startswith("socket.") or event in LOCAL:
        return
    if arguments and getattr(arguments[0], "family", None) == UNIX:
        return
    with open(os.environ["MURMURATE_SOCKETS_TRIED"], "a", encoding="utf-8") as log:
        log.write(f"{event} {arguments!r}\n")
    raise PermissionError(f"no network: {event}")


sys.addaudithook(_refuse)
