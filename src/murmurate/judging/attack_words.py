"""Describe a score of an attack in words: what the adversary knows, and what they find."""

from __future__ import annotations

import re

from murmurate.core.score import Score

PATTERNS: tuple[tuple[str, str, str], ...] = (
    (
        r"reidentify\.places\.top1_k(\d+)",
        "Trip found from {0} known place{0:s}",
        "Somebody who knows {0} place{0:s} of a trip finds it",
    ),
    (
        r"reidentify\.timed\.top1_k(\d+)",
        "Trip found from {0} known place{0:s} with time",
        "Somebody who knows {0} place{0:s} of a trip and when it was there finds it",
    ),
    (
        r"reidentify\.places\.top(\d+)_k(\d+)",
        "Trip among the first {0} guesses from {1} known place{1:s}",
        "Somebody who knows {1} place{1:s} of a trip has it among {0} guesses",
    ),
    (
        r"reidentify\.timed\.top(\d+)_k(\d+)",
        "Trip among the first {0} guesses from {1} known place{1:s} with time",
        "Somebody who knows {1} place{1:s} of a trip and when it was there has it among {0} guesses",
    ),
    (
        r"average\.found_all",
        "Place found by averaging all its reports",
        "Somebody who knows which reports come from one place finds that place by their mean",
    ),
    (
        r"average\.found_(\d+)",
        "Place found by averaging {0} report{0:s}",
        "Somebody who knows {0} report{0:s} of one place finds that place by their mean",
    ),
    (r"average\.error_all", "Error of averaging all reports of a place", ""),
    (r"average\.error_(\d+)", "Error of averaging {0} report{0:s} of a place", ""),
    (
        r"reconstruct\.ends\.imbalance\.exact",
        "Trip ends found from counts of links",
        "Somebody who reads the counts of links finds the junction where a trip began or ended",
    ),
    (
        r"reconstruct\.ends\.imbalance\.within_100m",
        "Trip ends found within 100 m from counts of links",
        "Somebody who reads the counts of links finds where a trip began or ended within 100 m",
    ),
    (
        r"reconstruct\.ends\.dead_ends\.exact",
        "Trip ends found at dead ends of the released roads",
        "Somebody who looks at dead ends of the released roads finds where a trip began or ended",
    ),
    (
        r"reconstruct\.ends\.dead_ends\.within_100m",
        "Trip ends found within 100 m of dead ends",
        "Somebody who looks at dead ends of the released roads finds a trip end within 100 m",
    ),
    (
        r"reconstruct\.trips\.paths",
        "Trips rebuilt by following counts of links",
        "Somebody who follows the counts of links rebuilds both ends of a trip",
    ),
    (
        r"reconstruct\.trips\.assignment",
        "Trips rebuilt by pairing guessed ends",
        "Somebody who pairs guessed ends rebuilds a trip",
    ),
    (
        r"reconstruct\.trips\.count_one",
        "Trips that alone drove a link shown with a count of one",
        "Somebody who looks for counts of one finds a trip that drove a link alone",
    ),
    (r"localise\.(\w+)", "True day found among fakes by: {0}", "An observer ({0}) picks the true place among the fakes"),
    (r"localise\.(\w+)\.median", "True day found among fakes by: {0}, median person", ""),
    (r"localise\.(\w+)\.distance", "Distance of the place taken by: {0}", ""),
    (
        r"membership\.auc",
        "Membership: was somebody in the data",
        "Somebody who knows a person's trips and the mechanism tells members from others",
    ),
    (
        r"membership\.auc_of_(\d+)_releases",
        "Membership by {0} releases of the same people",
        "Somebody who has {0} releases of the same people tells members from others",
    ),
    (
        r"reconstruct\.lone_pairs",
        "Pairs of zones of one person that are listed",
        "A pair of zones that one person alone travelled is listed",
    ),
    (r"membership\.best_statistic_auc", "Membership by the best single statistic", ""),
    (r"copying\.copies", "Released trips that follow an original throughout", "A released trip is the copy of an original"),
    (
        r"copying\.nearer_to_members",
        "Released trips nearer to people inside than outside",
        "A released trip lies nearer to somebody inside than to somebody outside",
    ),
    (
        r"singling_out\.success",
        "Descriptions unique in the release that fit one person",
        "A description that is unique in the release fits exactly one person",
    ),
    (
        r"linkability\.success",
        "Start and end lead to the same released trip",
        "Somebody who knows the start and the end of a trip apart links them by the release",
    ),
    (
        r"inference\.destination",
        "Destination guessed from start and hour",
        "Somebody who knows where and when a trip began guesses where it went",
    ),
    (r"inference\.home", "Home guessed from the place of work", "Somebody who knows where a person works guesses the home"),
    (
        r"inference\.work",
        "Place of work guessed from the home",
        "Somebody who knows where a person lives guesses the place of work",
    ),
)
"""(name of a score, short label, sentence that a share may follow: "... in 5 % of attempts"); numbers are put in."""


TITLES = {
    "average": "Averaging many reports of one place",
    "reidentify": "Finding a trip by known places",
    "reconstruct": "Rebuilding trips from counts of roads",
    "localise": "Telling fakes from the true place",
    "membership": "Telling who was in the data",
}
"""Attacks by name, in words; one that is not listed is shown by its name."""


def attack_title(name: str) -> str:
    """Write the title of an attack."""
    return TITLES.get(name, name.replace("_", " ").capitalize())


def attack_label(name: str) -> str:
    """Write the short label of a score of an attack.

    >>> attack_label("reidentify.timed.top1_k2"), attack_label("somebody.finds_all")
    ('Trip found from 2 known places with time', 'Somebody: finds all')
    """
    found = _match(name)
    if found is not None:
        return found[0]
    first, _, rest = name.partition(".")
    words = rest.replace(".", ", ").replace("_", " ")
    return f"{first.replace('_', ' ').capitalize()}{': ' + words if words else ''}"


def attack_sentence(score: Score) -> str:
    """Write who finds what, to be followed by how often."""
    found = _match(score.name)
    return (found[1] if found is not None else "") or f"{attack_label(score.name)} succeeds"


def _match(name: str) -> tuple[str, str] | None:
    for pattern, label, sentence in PATTERNS:
        match = re.fullmatch(pattern, name)
        if match:
            parts = [_Part(part) for part in match.groups()]
            return label.format(*parts), sentence.format(*parts)
    return None


class _Part(str):
    """Hold a part of a name; the format `s` writes the plural's ending."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return ("" if self == "1" else "s") if spec == "s" else self.replace("_", " ")
