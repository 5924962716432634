"""List the attacks on releases by name, imported only when used.

Each is a function `(released, original, *, pairing, ...) -> list[Score]`: every score stands beside its chance level, and its
note says what the adversary knows.
"""

from __future__ import annotations

from dataclasses import dataclass

from murmurate.core.registry import Entry, Registry


@dataclass(frozen=True)
class Attack(Entry):
    """Say where an attack is, and which kinds of release it reads."""

    reads: tuple[str, ...] = ("trips",)
    takes: tuple[str, ...] = ()
    """What else it is given where it is known: `again` (release other people by the same mechanism), `by_person` (whether the
    promise is for whole people), `holdout` (people who are not in the release)."""


NAMES: Registry[Attack] = Registry(
    "attack",
    {
        "average": Attack("murmurate.attacks.average:average"),
        "reidentify": Attack("murmurate.attacks.reidentify:reidentify"),
        "reconstruct": Attack("murmurate.attacks.reconstruct:reconstruct", reads=("trips", "network")),
        "localise": Attack("murmurate.attacks.localise_pool:localise"),
        "membership": Attack("murmurate.attacks.trip_membership:membership", takes=("again", "by_person", "holdout")),
        "copying": Attack("murmurate.attacks.unpaired:copying", takes=("holdout",)),
        "singling_out": Attack("murmurate.attacks.unpaired:singling_out"),
        "linkability": Attack("murmurate.attacks.unpaired:linkability"),
        "inference": Attack("murmurate.attacks.unpaired:inference"),
        "count_membership": Attack(
            "murmurate.attacks.counts:membership", reads=("flows", "network"), takes=("again", "by_person", "holdout")
        ),
        "count_singling_out": Attack("murmurate.attacks.counts:singling_out", reads=("flows", "network")),
        "count_inference": Attack("murmurate.attacks.counts:inference", reads=("flows",)),
        "lone_pairs": Attack("murmurate.attacks.counts:lone_pairs", reads=("flows",)),
    },
)
"""Registry name -> module:function. One line an attack, one entry each in docs/attacks.md."""


def attacks_of(kind: str) -> tuple[str, ...]:
    """Return the names of the attacks that read this kind of release."""
    return tuple(name for name, found in NAMES.items() if kind in found.reads)
