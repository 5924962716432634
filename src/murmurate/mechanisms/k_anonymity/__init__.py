"""k_anonymity: trips move in company, every one within a radius of k - 1 others at every moment."""

from murmurate.mechanisms.k_anonymity.mechanism import KAnonymousTrips

__all__ = ["KAnonymousTrips"]
