"""Variable-length n-grams (Chen, Acs and Castelluccia): noisy counts of short sequences, and walks over them."""

from murmurate.mechanisms.ngram.mechanism import NGram
from murmurate.mechanisms.ngram.model import NGramModel

__all__ = ["NGram", "NGramModel"]
