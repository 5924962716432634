"""od_counts: trips between zones and totals of zones by hour, with intervals, under differential privacy."""

from murmurate.mechanisms.od_counts.mechanism import ODCounts

__all__ = ["ODCounts"]
