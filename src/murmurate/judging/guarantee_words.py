"""Describe in sentences what a guarantee covers and what it leaves open, for the dossier of a release."""

from __future__ import annotations

import math

from murmurate.core.guarantee import DP, GeoInd, Guarantee, KAnonymity, NoGuarantee, PlausibleDeniability

NOT_PROTECTED = (
    "Facts about the whole population, such as how busy a street is: they are what is published.",
    "People whose data the publisher holds elsewhere or has released before outside this ledger.",
    "Whoever can read the private file, the ledger or the machine they lie on.",
    "Conclusions about a person from what is known about everybody.",
)
"""What no guarantee of this package covers, in every dossier."""
NOISE = (
    "Noise is drawn on integers or a public lattice from the operating system's generator; sums of floats are never released."
)
"""Said of the noise, where the guarantee rests on it."""
SIDE_CHANNELS = (
    "How long a release takes depends on the private data. Nobody outside should be able to watch it run.",
    "The manifests of two private inputs differ in time, name and hashes alone.",
)
"""Side channels of every release, and what is done about each."""


def rests_on_noise(promise: Guarantee) -> bool:
    """Say whether noise is what a promise rests on."""
    return isinstance(promise, (DP, GeoInd))


def publishers_task(promise: Guarantee) -> str:
    """Say what the publisher does, so that people must trust them."""
    return f"holds the private file and {'adds the noise' if rests_on_noise(promise) else 'runs the mechanism'}"


def not_protected_by(promise: Guarantee) -> tuple[str, ...]:
    """Return what this kind of guarantee leaves open, beside what all of them do."""
    if isinstance(promise, GeoInd):
        return ("When somebody travelled: the guarantee covers places, not times.",)
    if isinstance(promise, (KAnonymity, PlausibleDeniability)):
        return ("A person against a reader who knows the others with the same trips, or sees several such releases.",)
    if isinstance(promise, NoGuarantee):
        return ("Anybody: nothing is promised.",)
    return ()


def side_channels(promise: Guarantee) -> str:
    """Say which side channels remain, and what is done about them."""
    return " ".join([*([NOISE] if rests_on_noise(promise) else []), *SIDE_CHANNELS])


def composition(promise: Guarantee) -> str:
    """Say how a promise adds up over releases, as the ledger does it."""
    if rests_on_noise(promise):
        return "By the ledger of the population: every charge is composed before a row is read, and none is refunded."
    return "They do not: the ledger lists such a release, and no sum bounds what several of them reveal together."


def meaning(promise: Guarantee) -> str:
    """Say what epsilon means as odds: how far a reader's belief about one unit can move."""
    if isinstance(promise, DP):
        factor = math.exp(min(promise.epsilon, 700.0))
        sure = factor / (1 + factor)
        tail = f", except with probability {promise.delta:g}" if promise.delta else ""
        return (
            f"Epsilon {promise.epsilon:g}, delta {promise.delta:g}. Somebody who thinks at first that a unit was in the data "
            f"with probability 50 % can think so with at most {100 * sure:.1f} % after reading the release{tail}."
        )
    if isinstance(promise, GeoInd):
        return f"Epsilon {promise.epsilon_per_m:g} per metre: places d metres apart differ by a factor of at most e^(d x that)."
    if isinstance(promise, NoGuarantee):
        return "There is no epsilon: nothing is promised."
    return "There is no epsilon: this is not differential privacy."
