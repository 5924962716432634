"""Sentences on what each variant of `plausible` protects and what not; filled in from public parameters alone."""

from __future__ import annotations

from collections.abc import Mapping

STATEMENTS: Mapping[str, tuple[str, ...]] = {
    "own": (
        "Every released day is synthetic: drawn from a model of the population, not from anybody's day.",
        "The model was made from noisy statistics alone: how popular places and regions are, how far people move, when they "
        "leave and stay, and what kinds of days there are. Together they cost epsilon {epsilon:g} per person, once, for any "
        "number of days.",
        "One person changes each statistic by at most one person's weight, however many days or points they have.",
        "The bound of the promise also holds against somebody who knows everybody else in the data.",
        "What many people have in common is meant to be learned: a place popular with many stays popular.",
        "Used as fakes beside a true trace, the days are meant against an observer who knows how people in general move. "
        "Nothing is claimed against one who knows another day of the same person.",
    ),
    "own with a library": (
        "Every released day is synthetic: drawn from a model of the population, not from anybody's day in the data.",
        "Rhythms (when somebody leaves and stays) come from days of the library {library}, which was declared to be public: "
        "nothing is promised to the people in it. Two of its days are joined and their changes moved by up to two steps.",
        "How popular places and regions are, how far people move and how often each of 12 kinds of day occurs were measured "
        "with noise. Together they cost epsilon {epsilon:g} per person, once, for any number of days.",
        "One person changes each statistic by at most one person's weight, however many days or points they have.",
        "The bound of the promise also holds against somebody who knows everybody else in the data.",
        "Used as fakes beside a true trace, the days are meant against an observer who knows how people in general move. "
        "Nothing is claimed against one who knows another day of the same person.",
    ),
    "own-seeded": (
        "This release is not differentially private and promises nothing about anybody.",
        "Each released day has the pattern of one private day (when somebody moves and returns), its changes moved by up to "
        "two steps, on cells that this private day did not visit. At most one day was made from each private day.",
        "The popularity of places and the lengths of moves are exact private counts. An attacker can tell members from others.",
    ),
    "own-tested": (
        "Every released day is synthetic: drawn from a private model, with the kind of day (how often people move, how much of "
        "it is at one place) of somebody in the data, kept or replaced at random.",
        "A day was released only if enough people, counted with noise, could have been its seed about as well. {n_out:,} "
        "attempts and the model together cost epsilon {epsilon:g} and delta {delta:g} per person, whether or not a day passed; "
        "how many did is part of what was paid for.",
        "Few attempts pass unless there are many thousands of people.",
    ),
    "as_published": (
        "Every released day passed three filters against this dataset: at most {delta_i} cells in common with its seed, a "
        "geographic similarity to it of at most {delta_s:g}, and at least {k} other people whose semantic similarity to it is "
        "within {delta_d:g} of the seed's.",
        "This is not differential privacy, it does not add up over releases, and it says nothing about membership: cells that "
        "only one person visits tell whether that person was a seed.",
        "Usage classes and the aggregate model were computed from the seeds without noise.",
        "Somebody who learns which days share a seed can tell the seed's cells from their absence. That linkage is never "
        "written, and at most {most_per_seed} days come from one seed.",
        "Places merge past a change of class by mode {merge!r}; {smoothing:.0%} of each row of the aggregate is smoothing.",
    ),
}
"""Sentences of the statement of a release, by variant."""

EXPECTED_ERRORS: Mapping[str, str] = {
    "own": (
        "Good from about 900 / epsilon people: places and moves of a day within 15 % and a divergence of sorted visits "
        "near 0.1 on the built-in city of 1,000; with 100 people, days follow public priors more than the data."
    ),
    "own with a library": (
        "Good from about 400 / epsilon people where the library's days are like those of the population; where they are not, "
        "released days keep the patterns of the library."
    ),
    "own-seeded": "Days, moves and visits close to the private ones; nothing is protected by a promise.",
    "own-tested": (
        "At most {n_out:,} days, most of them only with ten thousand people or more: each attempt needs hundreds or thousands "
        "of people who could have been its seed."
    ),
    "as_published": (
        "Days have fewer moves than real ones: with merging by run they keep two or three places where people have five. The "
        "divergence of sorted visits is 0.1 to 0.8, depending on merging."
    ),
}
"""How near released days come to real ones, by variant; measured on the built-in city."""

LIBRARY_ASSUMPTION = (
    "The library of day patterns is public and was made without the people protected here: nothing in it is protected."
)
"""Assumption that the guarantee of `own` adds where a library is given."""

ASSUMPTIONS = (
    "The grid, the time zone, the steps of a day, the share of a day that must be covered and the number of released days "
    "are public choices.",
    "People are distinguished by uid: somebody with two uids counts as two people.",
)
"""Assumptions of the guarantees of `own` and `own-tested`."""

FILTER_ASSUMPTIONS = (
    "Usage classes and the aggregate model are computed without noise from the seeds.",
    "Which fake came from which seed is never written, and an observer does not learn it otherwise.",
)
"""Assumptions of the deniability that `as_published` states."""
