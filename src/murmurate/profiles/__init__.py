"""Mobility profiles and their similarity."""

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int32]
"""[row, step]: numbers of places of a daily trace."""
