"""Remove points that cannot be right, one reason at a time; each step also counts them for the custodian."""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from murmurate.core.parameters import one_of, positive
from murmurate.core.space import Floats, Integers, Space
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.ingest.pipeline import Removed, difference
from murmurate.spaces.sphere import step_m

What = Literal["points", "trips"]


def drop_outside(trips: Trips, *, space: Space, remove: What = "points") -> tuple[Trips, Removed]:
    """Leave out points outside the public `space` (its box or reach), or with `remove="trips"` every trip that has one."""
    return _keep("drop_outside", trips, space.locate(trips.lat, trips.lng) >= 0, remove, "outside the public space")


def drop_fast(trips: Trips, *, max_speed_kmh: float = 150.0, remove: What = "points") -> tuple[Trips, Removed]:
    """Leave out points reached at `max_speed_kmh` or more from the last point kept, or every trip with such a step.

    `remove="trips"` does the latter. A trip's first point is always kept. Two places at one time are an impossible speed;
    one place twice is not.
    """
    positive("max_speed_kmh", max_speed_kmh)
    good = _plausible(trips.offsets, trips.time_us, trips.lat, trips.lng, max_speed_kmh / 3.6e6, remove == "points")
    return _keep("drop_fast", trips, good, remove, f"reached at {max_speed_kmh:g} km/h or more")


def drop_duplicates(trips: Trips) -> tuple[Trips, Removed]:
    """Leave out points of one trip at the same time and place, except the first."""
    place = [name for name in ("lat", "lng", "cell", "link") if name in trips.columns]
    return _keep("drop_duplicates", trips, _first_of(trips, [*place, "datetime"]), "points", "the same time and place again")


def drop_simultaneous(trips: Trips) -> tuple[Trips, Removed]:
    """Leave out points of one trip at the same time, except the first: nobody is in two places at once."""
    return _keep("drop_simultaneous", trips, _first_of(trips, ["datetime"]), "points", "another place at the same time")


def drop_reversals(table: pl.DataFrame) -> tuple[pl.DataFrame, Removed]:
    """Leave out rows, in the order they were recorded, whose time lies before one already seen in their trip.

    `Trips` sort by time and so cannot show a clock that jumped back: this step reads the table (`uid, tid, datetime`)
    before it becomes trips. Use it where the order of recording is to be trusted more than the clock.
    """
    missing = [name for name in ("uid", "tid", "datetime") if name not in table.columns]
    if missing:
        raise InputError(f"missing: {', '.join(missing)}; found the columns {', '.join(table.columns) or 'none'}.")
    # An empty time is no reversal: it stays, for `Trips` to refuse with its row.
    kept = table.filter((pl.col("datetime") >= pl.col("datetime").cum_max().over("uid", "tid")).fill_null(True))
    return kept, Removed("drop_reversals", table.height - kept.height, 0, "a time before one already seen in the trip")


def _keep(step: str, trips: Trips, good: NDArray[np.bool_], remove: What, why: str) -> tuple[Trips, Removed]:
    """Remove the points that are not good, or the trips that have any."""
    one_of("remove", remove, ("points", "trips"))
    if remove == "trips" and trips.n_trips:
        good = np.repeat(np.logical_and.reduceat(good, trips.offsets[:-1]), np.diff(trips.offsets))
    kept = trips if good.all() else trips.take_points(good)
    return kept, difference(step, trips, kept, why)


def _first_of(trips: Trips, columns: list[str]) -> NDArray[np.bool_]:
    """Return where a point is the first of its trip with these values."""
    if not trips.has_time:
        raise InputError(f"points at the same time need a datetime; these trips have {', '.join(trips.columns)}.")
    numbered = trips.table.select(columns).with_columns(trip=trips.point_trip)
    return numbered.select(pl.struct("trip", *columns).is_first_distinct()).to_series().to_numpy()


@njit(cache=True, nogil=True)
def _plausible(  # noqa: PLR0917
    offsets: Integers, time_us: Integers, lat: Floats, lng: Floats, limit_m_per_us: float, from_last_good: bool
) -> NDArray[np.bool_]:
    """Return where a point is reached below the limit, from the last such point or else from the point before."""
    good = np.ones(len(lat), np.bool_)
    for trip in range(len(offsets) - 1):
        last = offsets[trip]
        for i in range(offsets[trip] + 1, offsets[trip + 1]):
            if lat[i] != lat[last] or lng[i] != lng[last]:
                metres = step_m(lat[last], lng[last], lat[i], lng[i])
                good[i] = metres < limit_m_per_us * (time_us[i] - time_us[last])
            if good[i] or not from_last_good:
                last = i
    return good
