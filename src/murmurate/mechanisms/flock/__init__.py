"""flock: our own synthesiser."""

from murmurate.mechanisms.flock.mechanism import Flock

__all__ = ["Flock"]
