"""Describe what may leave: release folders, their manifests, and the kinds of data they hold.

One file a kind. A kind reads what a release of it holds and names what can be measured, attacked and drawn of it; modules
above use the kind and know none by name. A new one is registered in `KINDS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from murmurate.core.registry import Entry, Registry
from murmurate.core.trips import Trips
from murmurate.mechanisms import NAMES

if TYPE_CHECKING:
    from murmurate.releases.kind import Kind
    from murmurate.releases.manifest import Manifest

KINDS: Registry[Entry] = Registry(
    "kind of release",
    {
        "trips": Entry("murmurate.releases.trips:TripsKind"),
        "days": Entry("murmurate.releases.days:Days"),
        "network": Entry("murmurate.releases.links:Links"),
        "flows": Entry("murmurate.releases.flows:Flows"),
        "model": Entry("murmurate.releases.model:FittedModel"),
    },
)
"""Name -> module:class. One line a kind."""


def kind_named(name: str) -> Kind:
    """Return the kind of a name; one that is not known here holds files nobody here can read."""
    from murmurate.releases.kind import Kind

    if name not in KINDS:
        return Kind(name)
    found: Kind = KINDS.load(name)()
    return found


def kind_of(manifest: Manifest) -> Kind:
    """Return the kind of a release: the manifest's, or the finer one that its mechanism is listed with under the same word."""
    found = kind_named(manifest.kind)
    finer = kind_named(NAMES[manifest.mechanism].release_kind) if manifest.mechanism in NAMES else found
    return finer if finer.written_as == found.written_as else found


def kind_of_data(data: object) -> Kind:
    """Return the kind of what a mechanism returned: trips, or a payload that names its kind."""
    return kind_named("trips" if isinstance(data, Trips) else str(getattr(data, "kind", type(data).__name__)))
