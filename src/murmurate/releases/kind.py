"""Describe a kind of release: what it holds, and what can be measured, attacked and drawn of it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import ArrayLike

from murmurate.attacks import attacks_of
from murmurate.core.space import Places, Space
from murmurate.core.trips import Trips
from murmurate.errors import VerifyError
from murmurate.metrics import Comparable, Pair, metrics_of
from murmurate.spaces import parse
from murmurate.spaces.places import PLACES
from murmurate.spaces.zones import Zones

if TYPE_CHECKING:
    from murmurate.releases.folder import Release
    from murmurate.releases.manifest import Manifest


class Kind:
    """Describe a kind of release; subclasses say what differs. As it stands, it holds files that nothing here reads.

    The files are written by `release()` (trips), by the payload that a mechanism returns (`Payload.write`), or by a fitted
    model (`Model.save`); `read` is the inverse.
    """

    name: str = ""
    written_as: str = ""
    """The word in the manifest; a finer kind shares that of the kind it refines, so that older versions can read it."""
    title: ClassVar[str] = ""
    """What it holds, as the title of a page; its name where it has none."""
    identifiers: ClassVar[bool] = False
    """Whether it holds trips with uid and tid, so that the statement speaks of them and trips may be paired with originals."""
    sampled: ClassVar[bool] = False
    """Whether trips can be drawn from it."""
    no_attack: ClassVar[str] = ""
    """Why no attack reads it, where none does."""
    figures: ClassVar[tuple[str, ...]] = ()
    """Names of the figures its report shows (`murmurate.report.figures`)."""
    headline: ClassVar[Mapping[str, str]] = {}
    """The scores a reader sees first, in this order, each with its words."""

    def __init__(self, name: str = "") -> None:
        self.name = self.name or name
        self.written_as = self.written_as or self.name

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the metrics that read it."""
        return metrics_of(self.written_as)

    @property
    def attacks(self) -> tuple[str, ...]:
        """Names of the attacks that read it."""
        return attacks_of(self.written_as)

    def read(self, release: Release) -> Any:
        """Read what the folder holds."""
        raise VerifyError(f"{release.folder} holds a release of kind {release.manifest.kind!r}, which has no trips.")

    def n_trips(self, data: Any) -> int:
        """Return how many trips it holds; 0 where it holds no single trips."""
        return 0

    def carried_space(self, folder: Path) -> Space | None:
        """Read the space that lies in the folder itself, so that the file it was read from is not needed.

        Outlines of zones and stops lie there; grids and hexagons follow from the parameters.
        """
        from murmurate.releases.manifest import read_manifest  # which reads kinds itself

        kind, _, rest = str(read_manifest(folder).parameters.get("space", "")).partition(":")
        if kind not in ("zones", "stops") or not (folder / PLACES).is_file():
            return None
        return replace(Zones.read(folder / PLACES), source=rest.rpartition("#")[0])

    def space(self, folder: Path, manifest: Manifest) -> Space | None:
        """Return the public space of a release: the one it carries, or the one its parameters describe."""
        spec = manifest.parameters.get("space")
        return self.carried_space(folder) or (parse(spec) if spec else None)

    def compare(
        self, released: Any, original: Trips, *, grid: Places | None = None, pairing: ArrayLike | None = None, seed: int = 0
    ) -> Comparable:
        """Lay a release beside its originals, as the metrics of this kind read them."""
        return Pair(released, original)

    def unprotected(self, trips: Trips, released: Any) -> Any:
        """Return what a release like `released` would hold if it showed these trips as they are; None where that is not known.

        A verdict compares a release with a second real sample by it. Internal.
        """
        return None

    def key_scores(self, measured: Container[str]) -> Mapping[str, str]:
        """Return the scores a reader sees first, for a release of which these were measured."""
        return self.headline
