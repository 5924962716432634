"""DP-Loc: synthetic trips from private models of their ends and hours, of the next cell, and of the path between."""

from murmurate.mechanisms.dp_loc.mechanism import DPLoc
from murmurate.mechanisms.dp_loc.model import DPLocModel

__all__ = ["DPLoc", "DPLocModel"]
