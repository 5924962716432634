"""Put one setting into sentences: how wrong it is, what an attacker can still learn, what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from murmurate.core.guarantee import DP, GeoInd, Guarantee, NoGuarantee
from murmurate.core.ledger import Plan
from murmurate.core.score import number
from murmurate.custody.limits import parse_limit
from murmurate.errors import InsufficientBudget
from murmurate.studio.drafts import Draft
from murmurate.studio.products import UNITS, at_stop, built, ceiling, dial, promise_of
from murmurate.studio.room import Room, amount

BETTER_BY = 0.9
"""A lower setting counts as clearly better when its error is below this share. Set by hand."""


@dataclass(frozen=True)
class Fact:
    """Hold one number with its words and its range."""

    value: str
    words: str
    range: str = ""


@dataclass(frozen=True)
class Purse:
    """Hold what is spent, asked for and left of a limit, in one account."""

    words: tuple[tuple[str, str], ...]
    """(role, text): s spent, t this, l left, r refused."""
    bars: tuple[tuple[str, float, float], ...]
    """(role, from, to) as shares of the drawn width."""
    about: str
    allowed: bool
    refusal: str = ""


@dataclass(frozen=True)
class Answer:
    """Hold what the page says at one stop."""

    value: float
    label: str
    promise: str
    errors: tuple[Fact, ...]
    worse: str
    odds: tuple[Fact, ...]
    dots: int | None
    question: str
    ceiling: float | None
    purse: Purse
    caption: str
    bar: str
    bar_words: str
    refused: str
    expected: str
    spoken: str

    def told(self) -> dict[str, Any]:
        """Return plain values for the script."""
        facts = {name: [[fact.value, fact.words, fact.range] for fact in getattr(self, name)] for name in ("errors", "odds")}
        purse = {"words": self.purse.words, "bars": self.purse.bars, "about": self.purse.about, "allowed": self.purse.allowed}
        names = ("label", "promise", "worse", "dots", "caption", "bar", "bar_words", "refused", "expected", "spoken")
        return {**{name: getattr(self, name) for name in names}, **facts, "purse": purse}


def answers(room: Room, draft: Draft, board: dict[str, Any]) -> list[Answer]:
    """Return the sentences of every stop of the slider."""
    parameter, stops = dial(draft.mechanism)
    rehearsed = {stop["value"]: stop for stop in board["stops"]}
    return [_answer(room, draft, parameter, value, rehearsed.get(value, {}), board) for value in stops]


def _answer(  # noqa: PLR0917
    room: Room, draft: Draft, parameter: str, value: float, stop: dict[str, Any], board: dict[str, Any]
) -> Answer:
    label = f"{'ε' if parameter == 'epsilon' else parameter} = {amount(value)}"
    guarantee = promise_of(draft.mechanism, at_stop(draft, value))
    top = ceiling(guarantee)
    purse = purse_of(room, draft, guarantee)
    errors = _errors(stop, board)
    first = f"{errors[0].value} {errors[0].words}" if errors else "the error was not measured"
    at_most = "no bound is promised" if top is None else f"any attacker right at most {_of_100(top)} times in 100"
    spent = "Nothing is spent yet." if purse.allowed else "Choose less, or ask whoever set the limit."
    caption = "nothing would be released" if stop.get("refused") else _caption(stop, board, label)
    return Answer(
        value=value,
        label=label,
        promise=guarantee.words(),
        errors=errors,
        worse=_worse(value, board, parameter),
        odds=_odds(stop, top),
        dots=None if top is None else min(99, round(100 * top)) if top < 1 else 100,
        question=_question(guarantee),
        ceiling=top,
        purse=purse,
        caption=caption,
        bar=f"{label}. {purse.words[-1][1].capitalize() if purse.allowed else 'Over the limit'}.",
        bar_words=f"{first.capitalize() if not errors else first}; {at_most}. {spent}" if purse.allowed else spent,
        refused=stop.get("refused", ""),
        expected=built(draft.mechanism, at_stop(draft, value)).expected_error(),
        spoken=f"{label}. {first}. {at_most}. {purse.about}",
    )


def _caption(stop: dict[str, Any], board: dict[str, Any], label: str) -> str:
    if not board["runs"]:
        return "not rehearsed"
    what = {"trips": "trips", "days": "days"}.get(board["kind"], "")
    count = f"{stop['n']:,} {what} at " if what and stop.get("n") else "at "
    return f"{count}{label}, one rehearsal"


def show(value: float, unit: str) -> str:
    """Write a score with its unit; shares as per cent."""
    if unit == "%":
        return f"{100 * value:.0f} %" if abs(value) >= 0.1 else f"{100 * value:.1f} %"
    return number(value, unit)


def _errors(stop: dict[str, Any], board: dict[str, Any]) -> tuple[Fact, ...]:
    found = []
    for name, (words, unit) in board["measures"].items():
        if name not in stop.get("scores", {}):
            continue
        mean, low, high = stop["scores"][name]
        floor = f"; a second real sample: {show(board['floor'][name], unit)}" if name in board["floor"] else ""
        found.append(Fact(show(mean, unit), words + floor, f"{show(low, unit)} to {show(high, unit)}"))
    return tuple(found)


def lower_is_better(name: str) -> bool:
    """Return whether a measure is an error, or a share that is kept."""
    return not any(word in name for word in ("coverage", "top_", "similarity", "correlation"))


def _worse(value: float, board: dict[str, Any], parameter: str) -> str:
    """Say it plainly where a stronger promise gives a smaller error."""
    if parameter != "epsilon" or not board["measures"]:
        return ""
    name = next(iter(board["measures"]))
    if not lower_is_better(name):
        return ""
    words, unit = board["measures"][name]
    scores = {stop["value"]: stop["scores"][name][0] for stop in board["stops"] if name in stop["scores"]}
    here = scores.get(value)
    if here is None:
        return ""
    better = [other for other, error in scores.items() if other < value and error < BETTER_BY * here]
    if better:
        best = max(better)
        return (
            f"A larger ε brings no gain here: at ε = {amount(best)} the {words} is {show(scores[best], unit)}, "
            f"at ε = {amount(value)} it is {show(here, unit)}."
        )
    below = [other for other in scores if other < value]
    if below and scores[max(below)] <= here / BETTER_BY and here >= BETTER_BY * scores[max(below)]:
        before = show(scores[max(below)], unit)
        return f"A larger ε brings hardly any gain here: at ε = {amount(max(below))} the {words} is {before}."
    return ""


def _question(guarantee: Guarantee) -> str:
    if isinstance(guarantee, GeoInd):
        metres = amount(guarantee.radius_m or 0)
        return f"Which of two places {metres} m apart was the true one? Tossing a coin is right 50 times in 100."
    what = {"trip": "this trip", "user_day": "this person’s day", "user": "this person"}.get(guarantee.unit.name, "this point")
    return f"Was {what} in the data? Tossing a coin is right 50 times in 100."


def _of_100(share: float) -> str:
    return "more than 99" if share > 0.995 else f"{100 * share:.0f}"


def _odds(stop: dict[str, Any], top: float | None) -> tuple[Fact, ...]:
    first = (
        Fact("none", "No bound is promised: how often an attacker is right depends on what is known beforehand.")
        if top is None
        else Fact(_of_100(top), "of 100 at most, for any attacker, now or later")
    )
    measured = []
    for attack in stop.get("attacks", {}).values():
        chance = attack["chance"]
        if chance is None or not 0 <= attack["value"] <= 1:
            continue
        ranged = "" if attack["low"] is None else f"{100 * attack['low']:.0f} to {100 * attack['high']:.0f}; "
        by_chance = f"{100 * chance:.1f}" if chance < 0.1 else f"{100 * chance:.0f}"
        measured.append(Fact(f"{100 * attack['value']:.0f}", f"of 100 by an attack run here: {attack['words'].lower()}",
                             f"{ranged}by chance {by_chance}"))  # fmt: skip
    return (first, *measured)


def purse_of(room: Room, draft: Draft, guarantee: Guarantee) -> Purse:
    """Return what a release costs the population, by the ledger's own plan; a limit not yet set counts as it will be."""
    known = draft.population in room.ledger.populations()
    plan = room.ledger.plan(draft.population if known else None, guarantee)
    if not plan.lines:
        note = plan.notes[0] if plan.notes else "The ledger does not sum this kind of promise."
        return Purse((("l", note),), (), note, True)
    line = plan.lines[0]
    asked, spent = float(line.requested), float(line.before.spent)
    limit = float(line.before.limit) if line.before.limit is not None else None
    if limit is None and draft.limit and not plan.passed_by:
        wanted = parse_limit(draft.limit, guarantee)
        if (wanted["kind"], wanted["unit"]) == (guarantee.kind, guarantee.unit.name):
            limit = float(wanted.get("epsilon", wanted.get("epsilon_per_m", 0.0)))
            if asked > limit * (1 + 1e-12):
                return _refused(
                    spent, asked, limit, f"Refused: it asks for {amount(asked)}, and {amount(limit)} may ever be spent."
                )
    try:
        plan.refuse_overspending()
    except InsufficientBudget as error:
        remaining = float(plan.remaining) if plan.remaining is not None else 0.0
        short = f"Refused: it asks for {amount(asked)}, and {amount(remaining)} {'is' if remaining == 1 else 'are'} left."
        return _refused(spent, asked, limit or spent, short, str(error))
    if limit is None:
        words = (("s", f"{amount(spent)} spent"), ("t", f"{amount(asked)} for this"), ("l", "no limit"))
        return Purse(words, (), f"{amount(asked)} for this; no limit is set.", True)
    after = _after(plan, spent, asked)
    left = max(0.0, limit - after)
    words = (
        ("s", f"{amount(spent)} spent"),
        ("t", f"{amount(after - spent)} for this"),
        ("l", f"{amount(left)} left of {amount(limit)}"),
    )
    bars = (("u-left", 0.0, 1.0), ("u-spent", 0.0, spent / limit), ("u-this", spent / limit, min(1.0, after / limit)))
    about = f"Limit {amount(limit)}; spent {amount(spent)}; this release {amount(after - spent)}; left after it {amount(left)}."
    return Purse(words, bars, about, True)


def _after(plan: Plan, spent: float, asked: float) -> float:
    """Return what is spent after the charge; composing may cost less than adding."""
    return float(plan.lines[0].after.spent) if plan.lines[0].before.limit is not None else spent + asked


def _refused(spent: float, asked: float, limit: float, short: str, sentence: str = "") -> Purse:
    whole = max(spent + asked, limit, 1e-12)
    bars = (("u-left", 0.0, limit / whole), ("u-spent", 0.0, spent / whole), ("u-over", spent / whole, 1.0))
    return Purse((("r", short),), bars, short, False, sentence or short)


def about_person(guarantee: Guarantee) -> str:
    """Say what a promise about trips or days does not promise about people."""
    if isinstance(guarantee, NoGuarantee):
        return guarantee.words()
    if isinstance(guarantee, (DP, GeoInd)) and guarantee.unit.name in ("trip", "user_day"):
        return (
            f"This is a promise about {UNITS[guarantee.unit.name]}. A person who appears more often is not covered as a whole: "
            "what is promised adds up over their " + ("trips." if guarantee.unit.name == "trip" else "days.")
        )
    return ""
