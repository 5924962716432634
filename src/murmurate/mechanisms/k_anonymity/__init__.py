"""k_anonymity: every trip stays within a radius of k - 1 others at every moment."""

from murmurate.mechanisms.k_anonymity.mechanism import KAnonymousTrips

__all__ = ["KAnonymousTrips"]
