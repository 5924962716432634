"""Judge a release in one paragraph: what it is good for, what it is not, and who could still learn what.

Uses are judged by stated limits (`uses.py`) against what a second real sample scores; attacks by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from murmurate.core.guarantee import DP, GeoInd, Guarantee, NoGuarantee, short_promise
from murmurate.core.score import Score, number
from murmurate.core.views import view
from murmurate.judging.attack_words import attack_label, attack_sentence
from murmurate.judging.scoring import Evaluation
from murmurate.judging.uses import CARE_TIMES, GOOD_TIMES, Use, uses_of
from murmurate.releases.kind import Kind

Grade = Literal["good", "care", "not", "open", "safe", "broken"]
"""Of a use: good, with care, not, or open (no limit). Of an attack: safe, or broken (above twice chance)."""

GRADES: dict[Grade, str] = {
    "good": "good",
    "care": "with care",
    "not": "not for this",
    "open": "for reading",
    "safe": "near chance",
    "broken": "above twice chance",
}
"""Grades in words."""
MAX_HEADLINES = 8
"""Scores an officer reads first."""
MAX_ATTACKS = 2
"""Of them, scores of attacks."""
BROKEN_TIMES = 2.0
"""An attack counts as successful above this multiple of chance, where chance lies below its 95 % interval too."""
MAX_EXPONENT = 10.0
"""Promised factors beyond e to the power of this say nothing: 22,000 times as probable is as good as certain."""
HIDDEN = {"trip": "Single trips", "user_day": "Single days of a person", "user": "Single people"}
"""What a promise hides on purpose, by its unit; a promise for trips does not hide people."""
QUICK_ATTACKS = (
    "average", "reidentify", "reconstruct", "localise", "copying", "singling_out", "linkability", "inference",
    "count_singling_out", "count_inference", "lone_pairs",
)  # fmt: skip
"""Attacks that take seconds, which a verdict runs where nobody ran others."""
RULES = (
    f"A use is good if its error is within a tolerance, or within a limit and at most {GOOD_TIMES:g} times that of a second "
    "real sample (one half of the originals scored against the other half). Other errors within the limit need care. Beyond "
    f"the limit a use needs care up to {CARE_TIMES:g} times the error of the second sample, and is advised against above. An "
    f"attack counts as successful above {BROKEN_TIMES:g} times chance."
)
"""How grades are given, in words for a reader."""


@dataclass(frozen=True, kw_only=True)
class Headline:
    """Hold one of the scores to read first: its value, a second real sample's (or chance), its grade and its meaning."""

    score: Score
    label: str
    value: str
    beside: str
    """What a second real sample scores, or chance for an attack, in words; empty where neither is known."""
    grade: Grade
    meaning: str

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        words = {name: getattr(self, name) for name in ("label", "value", "beside", "grade", "meaning")}
        return {"name": self.score.name, **words}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Hold the paragraph, its sentences, and at most eight scores to read first. Internal: computed from private data."""

    sentences: tuple[str, ...]
    headlines: tuple[Headline, ...]
    broken: tuple[str, ...]
    """Names of the scores of attacks that are above twice chance."""
    leaks: tuple[str, ...]
    """Who finds what and how often, one sentence for each of the attacks that succeed most."""
    attacked: bool
    rules: str = RULES

    @property
    def paragraph(self) -> str:
        """Return the verdict as one paragraph."""
        return " ".join(self.sentences)

    def _repr_html_(self) -> str:
        return str(view("verdict.html", self))

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "paragraph": self.paragraph,
            "headlines": [headline.to_json() for headline in self.headlines],
            "broken": list(self.broken),
            "leaks": list(self.leaks),
            "attacked": self.attacked,
            "rules": self.rules,
        }


def verdict(
    evaluation: Evaluation,
    *,
    second: Evaluation | None = None,
    attacked: Evaluation | None = None,
    guarantee: Guarantee | None = None,
    kind: Kind | None = None,
) -> Verdict:
    """Judge a release by its scores, those of a second real sample (`second_sample`), and those of attacks.

    `guarantee` adds what it promises; `kind` leaves out uses that this kind of release is not made for.

    >>> good = Score(name="visits.jsd", value=0.01, better="lower")
    >>> found = verdict(Evaluation((good,)), second=Evaluation((Score(name="visits.jsd", value=0.008),)))
    >>> found.headlines[0].grade, found.sentences[0]
    ('good', 'Good for maps of where people are.')
    """
    measured = _finite(evaluation)
    samples = {} if second is None else _finite(second)
    judged = [(use, _judged(use, measured, samples)) for use in uses_of(measured, kind)]
    results = [] if attacked is None else [score for score in attacked.scores if _rates(score) is not None]
    broken = sorted((score for score in results if _breaks(score)), key=_success, reverse=True)
    sentences = [*_sentences_of_uses(judged), *_sentences_of_privacy(guarantee, attacked, results, broken)]
    shown = _strongest(broken or results)
    attacks = [_attack_headline(score) for score in shown]
    headlines = [headline for _, headline in judged][: MAX_HEADLINES - len(attacks)] + attacks
    return Verdict(
        sentences=tuple(sentences),
        headlines=tuple(headlines),
        broken=tuple(score.name for score in broken),
        leaks=tuple(_leak(score) for score in _strongest(broken)),
        attacked=attacked is not None,
    )


def _finite(evaluation: Evaluation) -> dict[str, Score]:
    return {score.name: score for score in evaluation.scores if math.isfinite(score.value)}


# -- uses --------------------------------------------------------------------------------------------------------------


def _judged(use: Use, measured: dict[str, Score], samples: dict[str, Score]) -> Headline:
    score, sample = measured[use.score], samples.get(use.score)
    mean = measured.get("length.original_mean")
    grade: Grade = "open"  # limits in metres are not known without the length of trips
    if mean is not None or not use.length_share:
        second = 0.0 if sample is None else use.loss(sample)
        grade = use.grade(use.loss(score), second, mean.value if mean is not None and use.length_share else 1.0)
    return Headline(
        score=score,
        label=use.label,
        value=_value(use, score),
        beside="" if sample is None else f"a second sample: {_value(use, sample)}",
        grade=grade,
        meaning=use.meaning,
    )


def _value(use: Use, score: Score) -> str:
    if use.percent:
        return number(100 * score.value, "%")
    return number(score.value, score.unit)


def _sentences_of_uses(judged: Sequence[tuple[Use, Headline]]) -> list[str]:
    by_grade: dict[str, list[tuple[Use, Headline]]] = {}
    for use, headline in judged:
        by_grade.setdefault(headline.grade, []).append((use, headline))
    if not judged:
        return ["No score was measured that says what this release is good for."]
    good = [use.use for use, _ in by_grade.get("good", ())]
    sentences = [f"Good for {_listed(good)}."] if good else ["No use that was measured is graded good."]
    for grade, begins in (("care", "With care for"), ("not", "Not for")):
        found = [f"{use.use} ({_with_numbers(headline)})" for use, headline in by_grade.get(grade, ())]
        if found:
            sentences.append(f"{begins} {_listed(found)}.")
    return sentences


def _with_numbers(headline: Headline) -> str:
    label = headline.label[0].lower() + headline.label[1:]
    return f"{label}: {headline.value}" + (f"; {headline.beside}" if headline.beside else "")


# -- what could be learned ---------------------------------------------------------------------------------------------


def _sentences_of_privacy(
    guarantee: Guarantee | None, attacked: Evaluation | None, results: Sequence[Score], broken: Sequence[Score]
) -> list[str]:
    sentences = []
    if isinstance(guarantee, NoGuarantee):
        sentences.append("It carries no privacy guarantee.")
    elif guarantee is not None:
        sentences.append(f"It promises {short_promise(guarantee)}.")
        if _exponent(guarantee) > MAX_EXPONENT:
            sentences.append(f"That factor, e^{_exponent(guarantee):.3g}, is too large to protect anybody by itself.")
        elif isinstance(guarantee, DP):
            sentences.append(f"{HIDDEN.get(guarantee.unit.name, 'Single points')} and rare places are hidden on purpose.")
    if attacked is None:
        return [*sentences, "No attack was run, so what could still be learned was not measured."]
    if not results:
        why = next(iter(attacked.skipped.values()), "none of this tool reads such a release")
        return [*sentences, f"No attack could be run ({why}); only the promise says what cannot be learned."]
    if not broken:
        return [
            *sentences,
            f"None of {len(results)} attack results is above twice chance, which proves nothing beyond the promise.",
        ]
    sentences += [_leak(score) for score in _strongest(broken)]
    more = len(broken) - len(_strongest(broken))
    if more:
        sentences.append(f"{more} more attack result{'s are' if more > 1 else ' is'} above twice chance.")
    return sentences


def _leak(score: Score) -> str:
    success, chance = _rates(score) or (math.nan, math.nan)
    return f"{attack_sentence(score)} in {percent(success)} of attempts (by chance {percent(chance)})."


def _exponent(guarantee: Guarantee) -> float:
    """Return the exponent of the promised factor for one unit; 0 where the promise is of another kind."""
    if isinstance(guarantee, DP):
        return guarantee.epsilon
    return guarantee.epsilon_per_m * guarantee.radius_m if isinstance(guarantee, GeoInd) and guarantee.radius_m else 0.0


def _strongest(scores: Sequence[Score]) -> list[Score]:
    """Return the most successful result of each attack, the most successful attacks first."""
    best: dict[str, Score] = {}
    for score in sorted(scores, key=_success, reverse=True):
        best.setdefault(score.name.split(".")[0], score)
    return list(best.values())[:MAX_ATTACKS]


def _attack_headline(score: Score) -> Headline:
    success, chance = _rates(score) or (math.nan, math.nan)
    return Headline(
        score=score,
        label=attack_label(score.name),
        value=percent(success),
        beside=f"by chance: {percent(chance)}",
        grade="broken" if _breaks(score) else "safe",
        meaning=score.note or f"{attack_sentence(score)}.",
    )


def _rates(score: Score) -> tuple[float, float] | None:
    """Return how often an attack succeeds, and by chance; None for what is not a share of attempts."""
    chance = score.chance
    if chance is None or score.unit or not (0 <= score.value <= 1 and 0 <= chance <= 1):
        return None
    return (1 - score.value, 1 - chance) if score.better == "higher" else (score.value, chance)


def _success(score: Score) -> float:
    rates = _rates(score)
    return -1.0 if rates is None else rates[0]


def _breaks(score: Score) -> bool:
    """Whether an attack succeeds above twice chance, beyond the uncertainty of its interval."""
    rates = _rates(score)
    if rates is None:
        return False
    success, chance = rates
    surest = (1 - score.high if score.high is not None else success) if score.better == "higher" else score.low
    return success > BROKEN_TIMES * chance and (surest is None or surest > chance)


def percent(share: float) -> str:
    """Write a share in per cent.

    >>> percent(0.5834), percent(0.0002), percent(0.0)
    ('58 %', '0.02 %', '0 %')
    """
    if not math.isfinite(share):
        return "–"
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.1 else f"{100 * share:.2g} %"


def _listed(parts: Sequence[str]) -> str:
    if len(parts) < 2 or any("(" in part for part in parts):
        return ", ".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
