"""A session: one trace reported point by point on a device, with an account that no crash can make forget a debit."""

from __future__ import annotations

import copy
import json
import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from murmurate.asking.kept_answers import write_durably
from murmurate.core.mechanism import Rng
from murmurate.core.parameters import public_parameters, whole
from murmurate.errors import GuaranteeRefused, InputError, OutputError, ParameterError
from murmurate.mechanisms.geoind_predictive import budgets, kernel
from murmurate.noise import Draws, secure

if TYPE_CHECKING:
    from murmurate.mechanisms.geoind_predictive.mechanism import PredictiveGeoIndistinguishability

FORMAT = 1
"""Version of the file of a session; raised when its fields change."""

MAX_STATE = 1e12
"""Largest absolute number in a sound file: counts, grains and microdegrees all stay far below."""


class Session:
    """Reports one point after the other; made by `mechanism.session(...)`, or by `Session.restore(path)` after a restart.

    With a path, the state after a step is on the disk before its report is returned: what has left the device is always
    debited. The file holds the account and earlier reports, never a true place.

    >>> from murmurate.mechanisms.geoind_predictive import PredictiveGeoIndistinguishability
    >>> session = PredictiveGeoIndistinguishability(epsilon=1.0, radius_m=300.0, interval_s=15.0).session(points=40)
    >>> lat, lng = session.report((60.17, 24.94))
    >>> 0 < session.spent <= session.budget
    True
    """

    def __init__(
        self, mechanism: PredictiveGeoIndistinguishability, points: int, state: Any, *, path: Path | None, rng: Rng | None
    ) -> None:
        """Keep to `mechanism.session` and `Session.restore`."""
        self.mechanism, self.points, self.path = mechanism, points, path
        self._rng = secure() if rng is None else rng
        # shared with forked children: what any of them spends is gone for all
        self._state = np.frombuffer(mmap.mmap(-1, state.nbytes), dtype=np.float64)
        self._state[:] = state
        self._saved = 0
        self._broken = False
        self._draws = Draws(self._rng, block=32)
        steps_m = (mechanism.interval_s or 0.0) * mechanism.speed_kmh / 3.6
        sizes = np.array([float(points)])
        grains, decisions, tests = mechanism.plan(sizes, np.array([steps_m]))
        self._planned = (sizes, decisions, tests)
        self._budget = float(grains[0])

    @classmethod
    def begin(
        cls, mechanism: PredictiveGeoIndistinguishability, *, points: int, path: Path | None = None, rng: Rng | None = None
    ) -> Session:
        """Begin a trace of at most `points` points; its budget is theirs, so the number must be public."""
        whole("points", points)
        if points > mechanism.max_points:
            raise ParameterError(f"this promise was made for max_points = {mechanism.max_points:,}; got points = {points:,}.")
        if mechanism.variant == "own" and mechanism.stride is None and mechanism.interval_s is None:
            raise ParameterError(
                "a session needs the public seconds between points: give the mechanism interval_s (or a stride)."
            )
        if mechanism.smooth:
            raise ParameterError("smoothing looks at later reports, which a session does not have: use smooth=False.")
        session = cls(mechanism, points, np.zeros(kernel.STATE), path=path, rng=rng)
        session._state[budgets.REMAINING] = session._budget
        if path is not None:
            if path.exists():
                raise OutputError(f"{path} holds a session already; go on with it by Session.restore, or name another file.")
            session._save()
        return session

    @classmethod
    def restore(cls, path: Path, *, rng: Rng | None = None) -> Session:
        """Read back the session saved at a path, with every debit it ever made."""
        from murmurate.mechanisms import build

        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
            state = np.array(saved["state"], dtype=np.float64)
            mechanism, points, count = build("geoind_predictive", saved["mechanism"]), int(saved["points"]), int(saved["saved"])
        except FileNotFoundError:
            raise InputError(f"no session is saved at {path}.") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} does not hold a session that can be read: {error}") from None
        sound = state.shape == (kernel.STATE,) and bool((np.abs(state) <= MAX_STATE).all())  # NaN fails, too
        if saved.get("format") != FORMAT or not sound:
            raise InputError(f"{path} was written by another version of Murmurate or is damaged; nothing was reported.")
        session = cls(mechanism, points, state, path=path, rng=rng)
        session._saved = count
        if not 0 <= state[budgets.REMAINING] <= session._budget:
            raise InputError(f"the account in {path} is not one of its mechanism: it is damaged; nothing was reported.")
        # a draw that was paid for and never returned: the payment stays, the draw is not made up for
        session._state[budgets.DUE] = 0.0
        return session

    def __deepcopy__(self, _memo: dict[int, Any]) -> Session:
        """Return a session on the same account, with noise of its own: a copy spends what the original spends."""
        other = Session.__new__(Session)
        other.__dict__.update(self.__dict__, _draws=copy.deepcopy(self._draws))
        return other

    def __copy__(self) -> Session:
        return copy.deepcopy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Refuse to be pickled without a file: the account would exist twice."""
        if self.path is None:
            raise GuaranteeRefused("a session without a file cannot be pickled: its account would exist twice; give it a path.")
        return Session.restore, (self.path,)

    # -- the account ---------------------------------------------------------------------------------------------------

    @property
    def budget(self) -> float:
        """Return epsilon at the radius that the whole session can spend."""
        return self._budget * self.mechanism.epsilon / budgets.GRAINS

    @property
    def spent(self) -> float:
        """Return epsilon at the radius that is gone."""
        return (self._budget - float(self._state[budgets.REMAINING])) * self.mechanism.epsilon / budgets.GRAINS

    # -- reports -------------------------------------------------------------------------------------------------------

    def report(self, point: tuple[float, float]) -> tuple[float, float]:
        """Return what may leave the device for this true (lat, lng); beyond the planned points, the last report again."""
        if self._broken:
            raise GuaranteeRefused("this session could not save a debit; restore it from its file before it reports again.")
        lat, lng = float(point[0]), float(point[1])
        if not (-90 <= lat <= 90 and -180 <= lng <= 180):
            raise InputError(  # without the point: with both numbers exchanged it would still be the true place
                "a point is (latitude, longitude) in degrees; one of the two lies outside -90 to 90 or -180 to 180.",
                "Check their order: latitude comes first.",
            )
        x, y = self.mechanism._snapped(np.array([lat]), np.array([lng]))
        out = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64), np.empty(1)
        once = np.array([0, 1], dtype=np.int64)
        left = self._state[budgets.REMAINING : budgets.REMAINING + 1].copy()  # a trace that begins, begins with what is left
        self.mechanism.advance((once, x, y, *self._planned, left), self._draws, self._state, out)
        if self.path is not None:
            self._broken = True
            self._save()
            self._broken = False
        found_lat, found_lng = self.mechanism._degrees(out[0], out[1])
        if self.mechanism.roads is not None:
            found_lat, found_lng = self.mechanism._on_roads(found_lat, found_lng)
        return float(found_lat[0]), float(found_lng[0])

    def _save(self) -> None:
        """Write the state to the disk."""
        if self.path is None:
            return
        if self._saved and self._saved != _count(self.path):
            raise GuaranteeRefused(
                f"{self.path} was changed by somebody else, who may have spent from it; nothing was reported."
            )
        content = {
            "format": FORMAT,
            "saved": self._saved + 1,
            "points": self.points,
            "mechanism": public_parameters(self.mechanism),
            "state": self._state.tolist(),
        }
        try:
            write_durably(self.path, json.dumps(content).encode())
        except OSError as error:
            raise OutputError(f"the debit could not be saved to {self.path} ({error}); nothing was reported.") from None
        self._saved += 1


def _count(path: Path) -> int:
    try:
        return int(json.loads(path.read_text(encoding="utf-8"))["saved"])
    except (OSError, ValueError, KeyError, TypeError):
        return -1
