"""Write scores as rows people read: numbers with units, which way is better, and what good looks like."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from murmurate.core.score import Score, number
from murmurate.judging.attack_words import attack_label, attack_title
from murmurate.releases.kind import Kind
from murmurate.report.words import FAMILIES, FOLDED, MEANINGS, part_words

_STATISTICS = (".sd", ".min", ".max", ".sum")
"""Endings of scores that only the full list shows."""
_SHARES = ("jsd", "total_variation", "coverage", "overlap", "f1", "true_positives", "trip_size", "_similarity")
"""Words in names of scores between 0 and 1."""
_NATURAL = ("adatrace_trip", "adatrace_diameter", "adatrace_length")
"""Scores between 0 and ln 2: divergences in nats."""
_ROOTS = ("dpmobility_visits.jsd", "dpmobility_od.jsd")
"""Scores between 0 and the root of ln 2."""

BETTER = {
    "lower": "lower is better",
    "higher": "higher is better",
    "closer_to_chance": "safer near chance",
    "neither": "for reading",
}
"""Which way a score is better, in words."""


@dataclass(frozen=True)
class Row:
    """Hold one score in words."""

    name: str
    label: str
    value: str
    interval: str
    better: str
    chance: str
    note: str
    quality: float | None = None
    """1 perfect ... 0 useless, for scores that have both ends; drawn as a bar."""
    success: tuple[float, float] | None = None
    """For attacks whose value is a share: the share that succeeds, and by chance."""
    minor: bool = False
    """Shown only when a reader opens the full list."""


@dataclass(frozen=True)
class Group:
    """Hold the scores of one metric or one attack."""

    title: str
    asks: str
    good: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Family:
    """Hold the metrics that belong together."""

    title: str
    groups: tuple[Group, ...]
    folded: bool = False
    """For comparison with others' tables; closed until a reader opens it."""


def families(scores: Iterable[Score]) -> list[Family]:
    """Group all scores by family and metric, in the order of the registry's families."""
    by_family: dict[str, dict[str, list[Score]]] = {}
    for score in scores:
        by_family.setdefault(score.family, {}).setdefault(score.name.split(".")[0], []).append(score)
    order = [*(name for name in FAMILIES if name in by_family), *(name for name in by_family if name not in FAMILIES)]
    return [
        Family(
            FAMILIES.get(family, family or "Other"),
            tuple(_group(metric, found) for metric, found in by_family[family].items()),
            folded=family in FOLDED,
        )
        for family in order
    ]


def attacks(scores: Iterable[Score]) -> list[Group]:
    """Group the scores of attacks, one group an attack; what the adversary knows stands with each score."""
    by_attack: dict[str, list[Score]] = {}
    for score in scores:
        by_attack.setdefault(score.name.split(".")[0], []).append(score)
    return [
        Group(attack_title(name), "", "", tuple(row(score, attack_label(score.name)) for score in found))
        for name, found in by_attack.items()
    ]


def key_rows(scores: Sequence[Score], kind: Kind, wanted: int = 6) -> list[Row]:
    """Return the first scores a reader should see."""
    by_name = {score.name: score for score in scores}
    found = [
        row(by_name[name], label)
        for name, label in kind.key_scores(by_name).items()
        if name in by_name and math.isfinite(by_name[name].value)
    ]
    if "od_emd" in by_name:  # the same question without the hour adds nothing where the hour is known
        found = [item for item in found if item.name != "od_emd_whole"]
    return found[:wanted]


def row(score: Score, label: str | None = None) -> Row:
    """Write one score in words."""
    times, unit = (100, "%") if _is_relative(score) else (1, score.unit)
    interval = ""
    if score.low is not None and score.high is not None:
        interval = f"{number(times * score.low)} to {number(times * score.high, unit)}"
    return Row(
        name=score.name,
        label=label or part_words(score.name),
        value=number(times * score.value, unit),
        interval=interval,
        better=BETTER[score.better],
        chance="" if score.chance is None else number(score.chance, score.unit),
        note=score.note,
        quality=_quality(score),
        success=_success(score),
        minor=score.name.endswith(_STATISTICS) or ".hour_" in score.name,
    )


def floors(scores: Sequence[Score]) -> Mapping[str, Score]:
    """Return metric -> what a second sample of the originals scores, where that was measured."""
    return {score.name.removesuffix(".floor"): score for score in scores if score.name.endswith(".floor")}


def _group(metric: str, scores: Sequence[Score]) -> Group:
    meaning = MEANINGS.get(metric)
    rows = tuple(row(score) for score in scores)
    if meaning is None:
        return Group(metric.replace("_", " "), "", "", rows)
    return Group(meaning.title, meaning.asks, meaning.good, rows)


def _is_relative(score: Score) -> bool:
    relative = {"relative", "relative_absolute", "relative_mean_change", "relative_error", "lost", "invented"}
    return not score.unit and not relative.isdisjoint(score.name.split("."))


def _quality(score: Score) -> float | None:
    """Return how near to perfect a score is, for scores between two known ends."""
    last = score.name.split(".")[-1]
    if not math.isfinite(score.value) or score.chance is not None or score.unit not in ("", "nats"):
        return None
    if not any(word in last for word in (*_SHARES, *_NATURAL)) and not score.name.startswith("trip_size"):
        return None
    end = math.log(2) if last in _NATURAL else math.sqrt(math.log(2)) if score.name in _ROOTS else 1.0
    share = min(1.0, max(0.0, score.value / end))
    return {"lower": 1 - share, "higher": share}.get(score.better)


def _success(score: Score) -> tuple[float, float] | None:
    if score.chance is None or score.unit or not (0 <= score.value <= 1 and 0 <= score.chance <= 1):
        return None
    return score.value, score.chance
