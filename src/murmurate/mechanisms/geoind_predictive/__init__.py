"""geoind_predictive: a report is repeated for free or after a noisy test, and drawn anew only where that pays."""

from murmurate.mechanisms.geoind_predictive.mechanism import PredictiveGeoIndistinguishability
from murmurate.mechanisms.geoind_predictive.session import Session

__all__ = ["PredictiveGeoIndistinguishability", "Session"]
