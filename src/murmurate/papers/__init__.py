"""What only reproduces publications: published variants of mechanisms, their baselines, and networks with their training.

Only the networks need the extra `[papers]` (jax).
"""

from importlib.util import find_spec

from murmurate.errors import MissingPart


def require_jax(what: str) -> None:
    """Refuse what trains or runs a network where jax is not installed."""
    if find_spec("jax") is None:
        raise MissingPart(
            f"{what} needs jax, which is not installed; it comes with: pip install 'murmurate[papers]'. Nothing was spent."
        )
