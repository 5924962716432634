"""Train a classifier that learns, from other people and their fakes, which of several linked traces is a real one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from murmurate.attacks.localise_hmm import Places
from murmurate.core.space import Floats, Integers
from murmurate.profiles.aggregate import Aggregate

_BINS = 6
"""Quantile bins of each feature. Set by hand."""
_RIDGE = 2.0
"""Ridge penalty on the weights of the logit. Set by hand."""


def features(
    linked: Places,
    aggregate: Aggregate,
    log_step: Floats,
    against: Floats | None,
    query: Integers,
    *,
    rhythm: Floats | None = None,
) -> Floats:
    """Return [person, trace, feature]; with the rhythm's log ratio, and its sum with the moves', as two more."""
    hour = query * 24.0 / 72.0
    other = log_step if against is None else against
    found = _features(linked, log_step, other, aggregate.log_visits(), aggregate.lat, aggregate.lng, hour)
    if rhythm is None:
        return found
    return np.concatenate([found, rhythm[:, :, None], rhythm[:, :, None] + found[:, :, 18:19]], axis=2)


def fit_choice(seen: Floats, truly: Integers) -> Callable[[Floats], Floats]:
    """Fit a conditional logit over the traces of one person: which of them is real, from binned features."""
    from scipy.optimize import minimize

    people, _size, n = seen.shape
    flat = seen.reshape(-1, n)
    edges = np.quantile(flat, np.linspace(0, 1, _BINS + 1)[1:-1], axis=0)
    centre, spread = flat.mean(axis=0), flat.std(axis=0) + 1e-9

    def expand(values: Floats) -> Floats:
        scaled = np.clip((values - centre) / spread, -4, 4)
        steps = (values[..., None, :] > edges).astype(np.float64)
        return np.concatenate([scaled, scaled**2 / 4, steps.reshape(*values.shape[:-1], -1)], axis=-1)

    shown = expand(seen)
    real = shown[np.arange(people), truly]

    def loss(weight: Floats) -> tuple[float, Floats]:
        score = shown @ weight
        score -= score.max(axis=1, keepdims=True)
        odds = np.exp(score)
        odds /= odds.sum(axis=1, keepdims=True)
        value = -np.log(odds[np.arange(people), truly] + 1e-300).sum() + _RIDGE * (weight @ weight) / 2
        gradient = np.einsum("pt,ptf->f", odds, shown) - real.sum(axis=0) + _RIDGE * weight
        return float(value), gradient

    found = minimize(loss, np.zeros(shown.shape[-1]), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    weight = np.asarray(found.x)
    return lambda values: expand(values) @ weight


@njit(cache=True, nogil=True)
def _features(  # noqa: PLR0917
    linked: Places, log_step: Floats, against: Floats, log_visit: Floats, lat: Floats, lng: Floats, hour: Floats
) -> Floats:
    people, size, queries = linked.shape
    out = np.zeros((people, size, 22))
    spent = np.zeros(len(log_visit), dtype=np.int64)
    for person in range(people):
        for trace in range(size):
            day = linked[person, trace]
            row = out[person, trace]
            spent[day] = 0
            moves, run, singles, longest = 0, 0, 0, 0
            places = 0
            first_move, last_move = 24.0, 0.0
            likely, ratio, of_moves, km, far = 0.0, 0.0, 0.0, 0.0, 0.0
            for query in range(queries):
                if spent[day[query]] == 0:
                    places += 1
                spent[day[query]] += 1
            main = day[0]
            for query in range(queries):
                if spent[day[query]] > spent[main]:
                    main = day[query]
            second = 0
            for query in range(queries):
                if day[query] != main and spent[day[query]] > second:
                    second = spent[day[query]]
            night, nights, noon, noons = 0, 0, 0, 0
            x_sum, y_sum, popular, least = 0.0, 0.0, 0.0, 0.0
            for query in range(queries):
                here = day[query]
                if hour[query] < 6:
                    nights += 1
                    night += here == main
                elif 10 <= hour[query] < 17:
                    noons += 1
                    noon += here == main
                popular += log_visit[here]
                least = min(least, log_visit[here])
                x_sum += lng[here]
                y_sum += lat[here]
                run += 1
                if here != main:
                    longest = max(longest, run)
                if query + 1 == queries:
                    break
                following = day[query + 1]
                likely += log_step[here, following]
                ratio += log_step[here, following] - against[here, following]
                if following != here:
                    moves += 1
                    singles += run == 1
                    run = 0
                    first_move, last_move = min(first_move, hour[query]), hour[query]
                    of_moves += log_step[here, following]
                    jump = _km(lat[here], lng[here], lat[following], lng[following])
                    km += jump
                    far = max(far, jump)
            gyration = 0.0
            detour = 0.0
            for query in range(queries):
                gyration += _km(lat[day[query]], lng[day[query]], y_sum / queries, x_sum / queries) ** 2
                if 0 < query < queries - 1 and day[query] != day[query - 1] and day[query] != day[query + 1]:
                    one, mid, two = day[query - 1], day[query], day[query + 1]
                    around = _km(lat[one], lng[one], lat[mid], lng[mid]) + _km(lat[mid], lng[mid], lat[two], lng[two])
                    detour += around - _km(lat[one], lng[one], lat[two], lng[two])
            row[0], row[1], row[2] = moves, places, moves - places + 1
            row[3] = 1.0 if day[0] == day[queries - 1] else 0.0
            row[4], row[5], row[6], row[7] = spent[main], second, singles, longest
            row[8], row[9], row[10], row[11] = first_move, last_move, night / max(1, nights), noon / max(1, noons)
            row[12], row[13] = np.log1p(km / max(1, moves)), np.log1p(far)
            row[14], row[15] = np.log1p(np.sqrt(gyration / queries)), np.log1p(detour / max(1, moves))
            row[16], row[17], row[18] = likely, of_moves / max(1, moves), ratio
            row[19], row[20], row[21] = popular / queries, log_visit[main], least
            for query in range(queries):
                spent[day[query]] = 0
    return out


@njit(cache=True)
def _km(lat1: float, lng1: float, lat2: float, lng2: float) -> float:
    """Return flat kilometres, exact enough to compare traces."""
    y = (lat2 - lat1) * 111.2
    x = (lng2 - lng1) * 111.2 * np.cos(np.radians((lat1 + lat2) / 2))
    return np.sqrt(x * x + y * y)
