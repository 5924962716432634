"""The tables that read private drives: each is summed in fixed point, noised once, and never looked at again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.road_counts.budget import Spread
from murmurate.mechanisms.road_counts.contributions import ONE, Contributions, noisy
from murmurate.mechanisms.road_counts.settings import BLOCK_HOURS, N_BLOCKS, Bounds
from murmurate.spaces.drives import Drives

SLOWEST = 4.0
"""Travel times are cut at this many times the free one; half of it is what a link without news is taken for."""


@dataclass(frozen=True, eq=False)
class Reader:
    """Draws the noisy tables of private drives one after the other, each with its own share of the budget."""

    drives: Drives
    unit: Integers
    """Of every driven link: 0, 1, ..."""
    n_units: int
    bounds: Bounds
    spreads: Mapping[str, Spread]
    rng: Any

    def deviation(self, table: str, clip: float | None = None) -> float:
        """Standard deviation of the noise in a table, in trips."""
        return self.spreads[table].deviation(self.bounds.clip if clip is None else clip)

    def links(self) -> Floats:
        """[link]: how often each was driven."""
        return self._counted("links", self.drives.link, self.drives.network.n_links, self.bounds.clip)

    def blocks(self) -> Floats:
        """[block of four hours, link]: how often each was driven."""
        n = self.drives.network.n_links
        key = (self.drives.hour // BLOCK_HOURS) * n + self.drives.link
        return self._counted("blocks", key, N_BLOCKS * n, self.bounds.clip).reshape(N_BLOCKS, n)

    def hours(self, group: Integers, n_groups: int) -> Floats:
        """[group of links, hour]: links driven."""
        key = group[self.drives.link] * 24 + self.drives.hour
        return self._counted("hours", key, n_groups * 24, self.bounds.hours).reshape(n_groups, 24)

    def size(self) -> float:
        """Links driven in all, at most `bounds.links` of each unit."""
        each = np.bincount(self.unit, minlength=self.n_units)
        bounded = np.minimum(each, self.bounds.links).sum(keepdims=True) * ONE
        return float(noisy(bounded, spread=self.spreads["size"], clip=self.bounds.links, rng=self.rng)[0])

    def speeds(self) -> Floats:
        """[link]: travel time over free time, counted from the middle of 0 to SLOWEST, in units of that range; summed."""
        sums = self._slowness(self.drives.link, self.drives.network.n_links, self.bounds.clip, self.spreads["speeds"])[1]
        return noisy(sums, spread=self.spreads["speeds"], clip=self.bounds.clip / 2, rng=self.rng)

    def paces(self) -> Floats:
        """[0, class - 1, hour]: links driven; [1, class - 1, hour]: the sums of `speeds` over them."""
        key = (self.drives.network.road_class[self.drives.link].astype(np.int64) - 1) * 24 + self.drives.hour
        spread = self.spreads["paces"]
        both = np.concatenate(self._slowness(key, 5 * 24, self.bounds.hours, spread))
        return noisy(both, spread=spread, clip=self.paces_clip, rng=self.rng).reshape(2, 5, 24)

    @property
    def paces_clip(self) -> float:
        """The norm of counts and half as large sums side by side."""
        return self.bounds.hours * (sqrt(1.25) if self.spreads["paces"].kind == "gaussian" else 1.5)

    def turns(self, succession: Integers, n: int) -> Floats:
        """[pair of links]: how often one followed the other; -1 where a driven link has no next one."""
        there = succession >= 0
        rows = Contributions.of(self.unit[there], succession[there])
        return self._drawn("turns", rows, n, self.bounds.clip)

    def ends(self, zone: Integers, n_zones: int) -> Floats:
        """[origin zone, destination zone]: trips."""
        first, last = self.drives.ends
        unit = self.unit[self.drives.offsets[self.drives.driven]]
        rows = Contributions.of(unit, zone[first] * n_zones + zone[last])
        return self._drawn("od", rows, n_zones * n_zones, self.bounds.trips).reshape(n_zones, n_zones)

    def _counted(self, table: str, key: Integers, n_keys: int, clip: float) -> Floats:
        return self._drawn(table, Contributions.of(self.unit, key), n_keys, clip)

    def _drawn(self, table: str, rows: Contributions, n_keys: int, clip: float) -> Floats:
        spread = self.spreads[table]
        sums = rows.sums(rows.scales(self.n_units, clip=clip, kind=spread.kind), n_keys)
        return noisy(sums, spread=spread, clip=clip, rng=self.rng)

    def _slowness(self, key: Integers, n_keys: int, clip: float, spread: Spread) -> tuple[Integers, Integers]:
        """Clipped counts, and sums in which each driven link weighs the same times a value from -1/2 to 1/2: half the norm."""
        free = self.drives.network.time_s[self.drives.link]
        ratio = self.drives.seconds / free
        ratio = np.where(np.isnan(ratio), SLOWEST / 2, ratio)  # a NaN must never reach an integer
        value = np.trunc((np.clip(ratio, 0.0, SLOWEST) / SLOWEST - 0.5) * ONE).astype(np.int64)
        rows = Contributions.of(self.unit, key)
        scales = rows.scales(self.n_units, clip=clip, kind=spread.kind)
        return rows.sums(scales, n_keys), Contributions.of(self.unit, key, value).sums(scales, n_keys, steps=1)
