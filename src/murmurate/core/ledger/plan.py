"""Price a charge: what it would do to every account it touches, without spending."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from murmurate.core.accounting import compose
from murmurate.core.guarantee import DP, FINER, Guarantee, NoGuarantee
from murmurate.core.ledger.accounts import Amount, Limit, Spent, accounts_of, requested, standing
from murmurate.errors import GuaranteeRefused, InsufficientBudget

STATEMENT_SLACK = 1e-3
"""Relative excess of the composed epsilon over the stated one that is accepted, because composition rounds up. Set by hand."""


@dataclass(frozen=True)
class PlanLine:
    """One account before and after the charge."""

    requested: Amount
    before: Spent
    after: Spent

    @property
    def allowed(self) -> bool:
        """A charge never fits into an account already over its (lowered) limit."""
        return self.after.within


@dataclass(frozen=True)
class Plan:
    """The price of a release for a population; the first line is the account of the promise's own unit."""

    population: str | None
    guarantee: Guarantee
    lines: tuple[PlanLine, ...]
    notes: tuple[str, ...] = ()
    passed_by: tuple[str, ...] = ()
    """Units of this kind that have a limit where the promise's own unit has none: such a charge is refused."""
    followed: tuple[Followed, ...] = ()
    """The same charge for those of its people whom other populations hold too, by each limit they are under."""

    @property
    def allowed(self) -> bool:
        fits = not self.passed_by and all(line.allowed for line in self.lines)
        return fits and all(one.plan.allowed for one in self.followed)

    @property
    def requested(self) -> Amount | None:
        return self.lines[0].requested if self.lines else None

    @property
    def spent_before(self) -> Amount | None:
        return self.lines[0].before.spent if self.lines else None

    @property
    def spent_after(self) -> Amount | None:
        return self.lines[0].after.spent if self.lines else None

    @property
    def remaining(self) -> Amount | None:
        """What remains before the charge in the tightest account; None where nothing of the kind is limited."""
        if self.passed_by:
            own = self.lines[0].requested
            return Amount(own.kind, own.unit, 0.0)
        amounts = [line.before.remaining for line in self.lines if line.before.remaining is not None]
        amounts += [one.plan.remaining for one in self.followed if one.plan.remaining is not None]
        return min(amounts, key=float, default=None)

    def _account_words(self, line: PlanLine) -> str:
        """Say why another account than the promise's own is the tight one."""
        own = self.guarantee.unit.name
        if line.requested.unit == own:
            return ""
        doubled = " as two changes, one removal and one addition" if self.guarantee.kind == "dp" else ""
        if doubled and (own, line.requested.unit) == ("user_day", "point"):
            doubled = " as four changes, because a trip without its first point may begin on another day"
        return f" A promise per {own} also covers each {line.requested.unit} of it and is charged there{doubled}."

    def _fitting_words(self, line: PlanLine) -> str:
        """Say what would still fit, as a plain sum."""
        own, left = self.lines[0].requested, _would_fit(line)
        price = line.requested.epsilon
        if left <= 0 or price <= 0 or price == float("inf"):
            return "Nothing is left of this account: no release fits. "
        unit = " per metre" if own.kind == "geoind" else ""
        return f"About epsilon {own.epsilon * left / price:.3g}{unit} per {own.unit} would fit. "

    def refuse_overspending(self) -> None:
        """Raise where an account would pass its limit, or where there is none to hold while others are limited."""
        for line in self.lines:
            if line.allowed:
                continue
            limit, remaining = line.before.limit, line.before.remaining
            why = ""
            if limit is not None and limit.kind == "dp" and limit.delta == 0 and line.after.spent.epsilon == float("inf"):
                why = " A limit with delta 0 admits only releases whose promise needs no delta."
            raise InsufficientBudget(
                f"population {self.population!r}: asked for {line.requested}, but {remaining} remain of the limit of {limit} "
                f"({line.before.spent} spent in {_charges(line.before.n_charges)}).{why}{self._account_words(line)} Nothing "
                f"was spent. {self._fitting_words(line)}Or raise the limit, which is recorded: murmurate ledger limit "
                f"{self.population} --unit {line.requested.unit} ...",
                requested=line.requested,
                remaining=remaining,
            )
        if self.passed_by:
            raise InsufficientBudget(
                f"population {self.population!r}: asked for {self.requested}. Refused: {self.notes[0]} Nothing was spent.",
                requested=self.requested,
                remaining=self.remaining,
            )
        for one in self.followed:
            one.refuse(self.population)


@dataclass(frozen=True)
class Followed:
    """People of the charged population whom others hold too, and the charge as their charges everywhere add up."""

    n_people: int
    populations: tuple[str, ...]
    plan: Plan
    """Of all their charges together, against the limits of one population that holds them."""

    @property
    def words(self) -> str:
        """Say who is meant."""
        named = ", ".join(repr(name) for name in self.populations[:3])
        more = f" and {len(self.populations) - 3} more populations" if len(self.populations) > 3 else ""
        people = "1 person is" if self.n_people == 1 else f"{self.n_people:,} people are"
        return f"{people} also in {named}{more}"

    def refuse(self, charged: str | None) -> None:
        """Raise where a limit would not hold for these people."""
        try:
            self.plan.refuse_overspending()
        except InsufficientBudget as error:
            raise InsufficientBudget(
                f"population {charged!r}: {self.words}, and a limit holds for each person, wherever that person is charged. "
                f"All their charges together: {error} If these are the same people, release without them. If other people have "
                "the same uids, add --override-overlap, which is recorded. A namespace (--people taxi-2024) helps only a file "
                "that was never attached to a population.",
                requested=error.requested,
                remaining=error.remaining,
            ) from None


def _charges(number: int) -> str:
    return "1 charge" if number == 1 else f"{number:,} charges"


def _would_fit(line: PlanLine) -> float:
    """Return the epsilon per charge that would still fit, by a plain sum; 0 where nothing would."""
    left = line.before.remaining
    return 0.0 if left is None else left.epsilon


def make_plan(
    population: str | None,
    guarantee: Guarantee,
    *,
    charges: Mapping[tuple[str, str], Sequence[Guarantee]],
    limits: Mapping[tuple[str, str], Amount],
    followed: tuple[Followed, ...] = (),
) -> Plan:
    """Compose the charge with what each of its accounts has seen; `followed` are its people whom other populations hold too."""
    refuse_untrue_statement(guarantee)
    lines = []
    for account in accounts_of(guarantee):
        earlier, limit = charges.get(account, ()), limits.get(account)
        before = standing(account, earlier, limit)
        lines.append(PlanLine(requested(account, guarantee), before, standing(account, (*earlier, guarantee), limit)))
    limited = tuple(unit for unit in FINER["user"] if (guarantee.kind, unit) in limits)
    passed_by = limited if lines and guarantee.unit.name not in limited else ()
    notes = [_unopened(population, guarantee, passed_by)] if passed_by else _notes(guarantee, lines)
    notes += [_most_charged(followed)] if followed else []
    return Plan(population, guarantee, tuple(lines), tuple(notes), passed_by, followed)


def refuse_untrue_statement(guarantee: Guarantee) -> None:
    """Refuse a promise that its own events do not keep: the account follows the events, readers the statement."""
    if not isinstance(guarantee, DP):
        return
    needed = compose(guarantee.events, delta=guarantee.delta)
    if needed > guarantee.epsilon * (1 + STATEMENT_SLACK):
        raise GuaranteeRefused(
            f"the stated epsilon {guarantee.epsilon:g} (delta {guarantee.delta:g}) is less than its events cost: "
            f"{needed:.6g}. State what murmurate.core.accounting.compose gives for them. Nothing was spent."
        )


def refuse_unaccepted(guarantee: Guarantee, *, accepted: bool) -> None:
    """Refuse a release without a guarantee unless somebody said that it shall leave nevertheless."""
    if isinstance(guarantee, NoGuarantee) and not accepted:
        raise GuaranteeRefused(
            f"this release carries no guarantee ({guarantee.why}); say --accept-no-guarantee if it shall leave "
            "nevertheless, which is recorded. Nothing was spent."
        )


def refuse_unsigned(
    population: str, guarantee: Guarantee, limits: Mapping[tuple[str, str], Limit], signed: Sequence[str]
) -> None:
    """Refuse a charge that fewer than two people signed, where a limit it falls under asks for two."""
    signers = {name.strip().casefold() for name in signed if name.strip()}
    asked = [limit for account in accounts_of(guarantee) if (limit := limits.get(account)) is not None and limit.two_people]
    if asked and len(signers) < 2:
        raise GuaranteeRefused(
            f"population {population!r}: the limit of {asked[0].amount} asks for two people, and {len(signers)} signed. "
            "Give two different names with --signed-by, or sign in the studio. Nothing was spent."
        )


def refuse_other_days(population: str, guarantee: Guarantee, known: Collection[str], days_in: str | None) -> None:
    """Refuse person-days in another time zone than before: a day in one zone overlaps two days in the other.

    `known` are the zones charged to the population, and to others that contain people of it.
    """
    others = sorted(set(known) - {days_in})
    if guarantee.unit.name == "user_day" and days_in is not None and others:
        # people who came from two populations may have been charged in two zones: then no zone fits
        remedy = (
            f"Read the file with --local-zone {others[0]}, or promise unit=user"
            if len(set(known)) == 1
            else "Promise unit=user"
        )
        raise GuaranteeRefused(
            f"population {population!r}: days were counted in {', '.join(sorted(known))} before, and now in {days_in}. "
            "A day in one zone overlaps two days in the other, so the charges would not add up to a promise per "
            f"person-day. {remedy}. Nothing was spent."
        )


def _unopened(population: str | None, guarantee: Guarantee, limited: Sequence[str]) -> str:
    """Say why an account without a limit takes nothing once another of its kind has one."""
    own = guarantee.unit.name
    coarser_limited = any(own in FINER[unit] for unit in limited)
    why = f"a {own}-level release is not bounded by them" if coarser_limited else f"nothing says what may be spent per {own}"
    amount = "--epsilon-per-m" if guarantee.kind == "geoind" else "--epsilon"
    return (
        f"limits are set for {guarantee.kind} per {', '.join(limited)}, but none per {own}: {why}. "
        f"Open the account with murmurate ledger limit {population} --unit {own} {amount} ..."
    )


def _most_charged(followed: Sequence[Followed]) -> str:
    """Say what those people will have been charged who are in other populations too."""
    most = max(followed, key=lambda one: float(one.plan.lines[0].after.spent))
    return f"{most.words}: all their charges together come to {most.plan.lines[0].after.spent} with this one."


def _notes(guarantee: Guarantee, lines: Sequence[PlanLine]) -> list[str]:
    if isinstance(guarantee, NoGuarantee):
        return ["No guarantee: nothing is summed, and the release needs an explicit acceptance, which is recorded."]
    if not lines:
        return [f"A {guarantee.kind} promise is listed in the history and never summed; no limit bounds it."]
    if lines[0].before.limit is None:
        return [f"No limit is set for {guarantee.kind} per {guarantee.unit.name}: any amount may be spent there."]
    return []
