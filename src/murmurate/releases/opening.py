"""Open a release folder, as `mm.open`."""

from __future__ import annotations

from pathlib import Path

from murmurate.core.space import Space
from murmurate.errors import InputError
from murmurate.releases.folder import Release, open_release


def open(folder: str | Path, *, space: Space | None = None) -> Release:
    """Open a release and check its hashes; nothing is compared with originals.

    `space` says where its places are, where the folder does not: trips on roads name the file of their network only.
    """
    try:
        return open_release(folder, read_space=True, space=space)
    except InputError:  # the road network is not here; the points are
        return open_release(folder)
