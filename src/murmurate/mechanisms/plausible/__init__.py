"""plausible: synthetic days of people who do not exist, from a private model of how a population lives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from murmurate.asking import Budget, Facts, Round
from murmurate.asking.table import Answers
from murmurate.core.guarantee import DP, Guarantee, NoGuarantee, PlausibleDeniability, Unit
from murmurate.core.mechanism import Rng
from murmurate.core.parameters import one_of, positive, public_parameters, share, whole
from murmurate.core.trips import Identity, Trips
from murmurate.errors import ContractBroken, ParameterError
from murmurate.mechanisms.plausible.library import PatternLibrary, named_library
from murmurate.mechanisms.plausible.model import DayModel, as_trips
from murmurate.mechanisms.plausible.seeded import recombine
from murmurate.mechanisms.plausible.statistics import LIBRARY_SHARES, SHARES, CountDays, ReadDays, tables_of
from murmurate.mechanisms.plausible.tested import release_tested, terms
from murmurate.mechanisms.plausible.words import (
    ASSUMPTIONS,
    EXPECTED_ERRORS,
    FILTER_ASSUMPTIONS,
    LIBRARY_ASSUMPTION,
    STATEMENTS,
)
from murmurate.profiles.days import STEPS, daily_traces
from murmurate.spaces import parse_specs
from murmurate.spaces.grid import Grid

Variant = Literal["own", "own-seeded", "own-tested", "as_published"]
VARIANTS = ("own", "own-seeded", "own-tested", "as_published")
"""Names of the variants, the default first."""

MERGES = ("run", "boundary", "none")
"""as_published: modes in which places persist past a change of class, the default first."""

DISTANCES = ("hamming", "emd")
"""as_published: distances between next places in the geographic similarity, the default first."""

GRAPHS = ("visits", "moves")
"""as_published: what places of two people are mapped by, the default first."""

MOST_CELLS = 200_000
"""Most cells of a grid, set by hand: statistics of a finer one would be noise, and take time in proportion."""


@dataclass(frozen=True, kw_only=True)
class Plausible:
    """Releases synthetic days over the cells of a public grid; no released day belongs to anyone.

    Guarantee: `own` is `epsilon`-differentially private for everything one person ever did (add or remove), for any number
    of released days. `own-tested` is (`epsilon`, `delta`)-differentially private for `n_out` attempts. `own-seeded` promises
    nothing. `as_published` filters fakes by (k, delta_d) plausible deniability.

    >>> plausible = Plausible(space=Grid(60.1, 24.8, 60.3, 25.2, 1000), n_out=100)
    >>> plausible.guarantee().epsilon, plausible.guarantee().unit.name
    (1.0, 'user')
    """

    name: ClassVar[str] = "plausible"
    needs: ClassVar[frozenset[str]] = frozenset({"time", "coordinates"})
    emits: ClassVar[tuple[str, ...]] = ("datetime", "lat", "lng", "cell")
    paired: ClassVar[bool] = False
    local: ClassVar[bool] = False
    example: ClassVar[Mapping[str, Any]] = {"space": "grid", "n_out": 200, "epsilon": 1.0}

    space: Grid
    """The public grid whose cells are the places."""
    n_out: int = 1000
    """Days to release; a public choice, never the number of private ones."""
    variant: Variant = "own"
    """Which of the four generators makes the days; see the guarantee of each."""
    epsilon: float = 1.0
    """Spent once by `own`, and by all attempts of `own-tested` together; without meaning for the other variants."""
    delta: float = 1e-5
    """own-tested: the delta of its differential privacy."""
    library: str | Trips | PatternLibrary = ""
    """own: where rhythms of days come from, public by declaration: a file of trips, trips, or `city`; empty estimates them."""
    steps: int = STEPS
    """Equal steps of a day."""
    min_coverage: float = 0.8
    """Share of a day's steps that must be seen, or lie within a stay, for the day to be read."""
    k: int = 1
    """as_published: alternatives that must explain a fake as well as its seed does."""
    delta_d: float = 0.1
    """as_published: how well, as a difference of semantic similarities."""
    delta_s: float = 0.1
    """as_published: the largest geographic similarity of a fake to its seed."""
    delta_i: int = 0
    """as_published: the most cells a fake may share with its seed."""
    par_c: float = 0.25
    """as_published: probability that a place is removed from its class."""
    par_l: float = 1.0
    """as_published: probability that the seed's own place is removed at its time."""
    par_m: float = 0.75
    """as_published: probability, per step, that a place persists past a change of class."""
    par_v: float = 4.0
    """as_published: the largest factor by which transitions are perturbed in decoding."""
    merge: str = "run"
    """as_published: how places persist: run, boundary or none."""
    distance: str = "hamming"
    """as_published: distance of the geographic similarity: hamming (eq. 7) or emd, in metres (eq. 5)."""
    graph: str = "visits"
    """as_published: what places of two people are mapped onto each other by: visits (eq. 10) or moves too (eq. 11)."""
    places: int = 400
    """as_published: the most visited cells that are kept; the others join the nearest of them."""
    classes: int = 20
    """as_published: usage classes; 0 chooses their number by the paper's criterion."""
    smoothing: float = 0.05
    """as_published: share of smoothing in the aggregate model."""
    seed_share: float = 0.33
    """as_published: share of people drawn as seeds; the others are alternatives."""
    most_per_seed: int = 50
    """as_published: most fakes of one seed; many of them reveal the seed's cells by their absence."""

    def __post_init__(self) -> None:
        parse_specs(self)
        one_of("variant", self.variant, VARIANTS)
        positive("epsilon", self.epsilon)
        whole("n_out", self.n_out, at_most=10_000_000)
        whole("steps", self.steps, at_least=12, at_most=288)
        share("delta", self.delta)
        share("min_coverage", self.min_coverage, closed=True)
        if not isinstance(self.space, Grid):
            raise ParameterError(
                f"plausible places days on a public grid (grid:SOUTH,WEST,NORTH,EAST:CELL_M); got {self.space!r}."
            )
        if self.space.n_cells > MOST_CELLS:
            raise ParameterError(f"plausible takes at most {MOST_CELLS:,} cells; this grid has {self.space.n_cells:,}.")
        if not isinstance(self.library, str) or self.library:
            self._check_library()
        whole("k", self.k, at_most=1_000_000)
        whole("delta_i", self.delta_i, at_least=0)
        whole("places", self.places, at_least=2, at_most=5000)
        whole("classes", self.classes, at_least=0, at_most=200)
        whole("most_per_seed", self.most_per_seed, at_most=10_000)
        one_of("merge", self.merge, MERGES)
        one_of("distance", self.distance, DISTANCES)
        one_of("graph", self.graph, GRAPHS)
        positive("par_v", self.par_v)
        if self.par_v < 1:
            raise ParameterError(f"par_v must be at least 1, which perturbs nothing; got {self.par_v!r}.")
        for name in ("delta_d", "delta_s", "par_c", "par_l", "par_m"):
            share(name, getattr(self, name), closed=True)
        for name in ("smoothing", "seed_share"):
            share(name, getattr(self, name))

    def _check_library(self) -> None:
        """Read it before anything is charged."""
        if self.variant != "own":
            raise ParameterError(f"only variant own draws rhythms from a library; {self.variant} takes them elsewhere.")
        found = self.library
        if isinstance(found, str):
            found = named_library(found, cell_m=self.space.cell_m, steps=self.steps)
        elif isinstance(found, Trips):
            found = PatternLibrary.of(found, "trips", cell_m=self.space.cell_m, steps=self.steps)
        elif not isinstance(found, PatternLibrary):
            raise ParameterError(f"library is a file of public trips, trips, or city; got {found!r}.")
        object.__setattr__(self, "library", found)
        if isinstance(found, PatternLibrary) and found.label.shape[1] != self.steps:
            raise ParameterError(f"the library's days have {found.label.shape[1]} steps; this release has {self.steps}.")

    @property
    def declared_public(self) -> tuple[Identity, ...]:
        """Return what `release()` compares with private data: the library, whose days leave with the model."""
        identity = self.library.identity if isinstance(self.library, PatternLibrary) else None
        return () if identity is None else (identity,)

    # -- the promise -----------------------------------------------------------------------------------------------

    def guarantee(self) -> Guarantee:
        """Return the promise, from the parameters alone."""
        if self.variant == "own":
            assumptions = (*ASSUMPTIONS, LIBRARY_ASSUMPTION) if self.library else ASSUMPTIONS
            return DP(epsilon=self.epsilon, unit=Unit(name="user"), assumptions=assumptions)
        if self.variant == "own-tested":
            needed = terms(self.epsilon, self.delta, self.n_out)
            return DP(
                epsilon=self.epsilon,
                delta=self.delta,
                unit=Unit(name="user"),
                assumptions=(
                    *ASSUMPTIONS,
                    f"At least {needed.k:,} people, counted with noise, could have been the seed of a day.",
                ),
            )
        if self.variant == "own-seeded":
            return NoGuarantee(
                why="each day follows the rhythm of one private day, and places and moves follow exact private counts.",
                unit=Unit(name="user"),
            )
        return PlausibleDeniability(k=self.k, delta_d=self.delta_d, unit=Unit(name="user"), assumptions=FILTER_ASSUMPTIONS)

    def statement(self) -> tuple[str, ...]:
        """Say what is and is not protected."""
        words = STATEMENTS["own with a library" if self.library else self.variant]
        return tuple(sentence.format(**public_parameters(self)) for sentence in words)

    def expected_error(self) -> str:
        """Say how near the days come to real ones."""
        return EXPECTED_ERRORS["own with a library" if self.library else self.variant].format(**vars(self))

    # -- what own measures -----------------------------------------------------------------------------------------

    def budget(self) -> Budget | None:
        """Return a new budget of `own`; None for the other variants, which compare people and are handed the trips."""
        if self.variant != "own":
            return None
        if self.library and not isinstance(self.library, PatternLibrary):
            raise ParameterError(f"the library {self.library!r} is not here; give its file to fit with it.")
        return Budget(epsilon=self.epsilon)

    def ask(self, answers: Answers, facts: Facts) -> Round | None:
        """Query all statistics in one round; with a library, of rhythms only how often each kind of day occurs."""
        if answers:
            return None
        shares = LIBRARY_SHARES if self.library else SHARES
        return Round(
            tables=tables_of(self.space, shares),
            prepare=ReadDays(self.space, self.steps, self.min_coverage),
            contribute=CountDays(self.space, tuple(shares)),
        )

    def model(self, answers: Answers, facts: Facts, rng: Rng) -> DayModel:
        """Estimate the model of days from noisy statistics; nothing private is read."""
        library = self.library if isinstance(self.library, PatternLibrary) else None
        return DayModel.fit(answers, self.space, steps=self.steps, time_zone=facts.time_zone, rng=rng, library=library)

    def load(self, path: Path) -> DayModel:
        """Read back a fitted model."""
        return DayModel.load(path)

    # -- what the other variants do --------------------------------------------------------------------------------

    def apply(self, private: Trips, rng: Rng) -> Trips:
        """Make `n_out` synthetic days with a variant that must see all people at once."""
        if self.variant == "own":
            raise ContractBroken("a measured mechanism is handed no trips", "variant own reads noisy tables alone.")
        days = daily_traces(private, self.space, self.space.n_cells, steps=self.steps, min_coverage=self.min_coverage)
        if self.variant == "as_published":
            from murmurate.papers.plausible.published import publish as make
        else:
            make = recombine if self.variant == "own-seeded" else release_tested
        return as_trips(make(days, self, rng), self.space, private.time_zone)
