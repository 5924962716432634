"""Count what reading sorted, repaired or left out: for the custodian, never for a release."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class ReadReport:
    """Filled in by `read(..., report=...)`. Every number in it is private."""

    files: int = 0
    rows: int = 0
    points: int = 0
    trips: int = 0
    people: int = 0
    out_of_order: int = 0
    """Points earlier than the one before them in their trip: sorted."""
    duplicates: int = 0
    """Points at the time and place of another of their trip: the first was kept."""
    two_places_at_once: int = 0
    """Points at the time of another of their trip, elsewhere: the first was kept."""
    one_point_trips: int = 0
    """Kept."""
    ambiguous_times: int = 0
    """Local times that happened twice when clocks were set back: read as the earlier."""
    rows_left_out: dict[str, int] = field(default_factory=dict)
    """Rows a known layout says carry nothing, by reason."""
    columns: dict[str, str] = field(default_factory=dict)
    """Canonical name -> name in the file."""
    columns_left_out: list[str] = field(default_factory=list)
    """Columns that are not plain values, or stand in the way of a canonical name."""
    files_left_out: list[str] = field(default_factory=list)
    """Files in the folder that are of no known format."""

    def leave_out(self, reason: str, rows: int) -> None:
        """Count rows left out by a layout's rule."""
        if rows:
            self.rows_left_out[reason] = self.rows_left_out.get(reason, 0) + rows

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)
