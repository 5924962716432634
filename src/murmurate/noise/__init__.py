"""Draw privacy noise: a keyed stream, integer noise, and noise on the two public lattices. No other module draws any."""

from murmurate.noise.discrete import gaussian_integers, laplace_integers
from murmurate.noise.lattice import planar_laplace
from murmurate.noise.sphere import geo_laplace
from murmurate.noise.steps import Draws, within
from murmurate.noise.stream import Randomness, secure, seeded

__all__ = [
    "Draws",
    "Randomness",
    "gaussian_integers",
    "geo_laplace",
    "laplace_integers",
    "planar_laplace",
    "secure",
    "seeded",
    "within",
]
