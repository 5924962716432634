"""Check the options of reading before a file is opened."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from murmurate.core.parameters import one_of, whole
from murmurate.errors import ParameterError
from murmurate.ingest.columns import check_overrides
from murmurate.ingest.instants import check_format

TIME_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 0, "excel": 0}
"""Microseconds in one unit; nanoseconds are divided instead, and days of spreadsheets are converted on their own."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options of `read`, checked."""

    layout: str | None = None
    columns: Mapping[str, str | None] = field(default_factory=dict)
    time_zone: str | None = None
    local_zone: str | None = None
    time_unit: str | None = None
    time_format: str | None = None
    """How times are written, as strptime has it; None: ISO 8601, or day and month first where only one order fits."""
    encoding: str | None = None
    strict: bool = False
    carry: tuple[str, ...] | None = None
    """Columns to carry beside the canonical ones; None carries every plain one."""
    max_expansion: int = 25
    """A compressed file that grows by more than this factor (and past 256 MiB) is refused as a bomb."""

    def __post_init__(self) -> None:
        from murmurate.ingest.layouts import LAYOUTS

        if self.layout is not None:
            one_of("layout", self.layout, LAYOUTS)
        if self.time_unit is not None:
            one_of("time_unit", self.time_unit, TIME_UNITS)
        if self.time_format is not None:
            check_format(self.time_format)
        for name in ("time_zone", "local_zone"):
            _check_zone(name, getattr(self, name))
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except (LookupError, TypeError):
                raise ParameterError(f"encoding must be a known one such as 'latin-1'; got {self.encoding!r}.") from None
        whole("max_expansion", self.max_expansion)
        object.__setattr__(self, "columns", check_overrides(self.columns))

    @property
    def hours_zone(self) -> str:
        """Zone of local hours and days."""
        return self.local_zone or self.time_zone or "UTC"


def _check_zone(name: str, zone: str | None) -> None:
    if zone is None:
        return
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        raise ParameterError(f"{name} must be an IANA name such as 'Europe/Helsinki'; got {zone!r}.") from None
