"""What a charge would do to every account it touches, told without spending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from murmurate.core.accounting import compose
from murmurate.core.guarantee import DP, Guarantee, NoGuarantee
from murmurate.core.ledger.accounts import Amount, Spent, accounts_of, requested, standing
from murmurate.errors import GuaranteeRefused, InsufficientBudget

STATEMENT_SLACK = 1e-3
"""How far the accountant's pessimistic epsilon may lie above the stated one before the statement is refused."""


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

    @property
    def allowed(self) -> bool:
        return all(line.allowed for line in self.lines)

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
        """What is left now, before the charge, in the tightest account; None where nothing is limited."""
        left = [line.before.remaining for line in self.lines if line.before.remaining is not None]
        return min(left, key=float) if left else None

    def refuse_overspending(self) -> None:
        """Raise where an account would pass its limit."""
        for line in self.lines:
            if line.allowed:
                continue
            limit, remaining = line.before.limit, line.before.remaining
            why = ""
            if limit is not None and limit.kind == "dp" and limit.delta == 0 and line.after.spent.epsilon == float("inf"):
                why = " A limit with delta 0 admits only releases whose promise needs no delta."
            raise InsufficientBudget(
                f"population {self.population!r}: asked for {line.requested}, but {remaining} remain of the limit of {limit} "
                f"({line.before.spent} spent in {line.before.n_charges} charges).{why} Nothing was spent. Ask for less, or "
                "raise the limit: murmurate ledger limit.",
                requested=line.requested,
                remaining=remaining,
            )


def make_plan(
    population: str | None,
    guarantee: Guarantee,
    *,
    charges: Mapping[tuple[str, str], Sequence[Guarantee]],
    limits: Mapping[tuple[str, str], Amount],
) -> Plan:
    """Compose the charge with what each of its accounts has seen."""
    refuse_untrue_statement(guarantee)
    lines = []
    for account in accounts_of(guarantee):
        earlier, limit = charges.get(account, ()), limits.get(account)
        before = standing(account, earlier, limit)
        lines.append(PlanLine(requested(account, guarantee), before, standing(account, (*earlier, guarantee), limit)))
    return Plan(population, guarantee, tuple(lines), tuple(_notes(guarantee, lines)))


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


def _notes(guarantee: Guarantee, lines: Sequence[PlanLine]) -> list[str]:
    if isinstance(guarantee, NoGuarantee):
        return ["No guarantee: nothing is summed, and the release needs an explicit acceptance, which is recorded."]
    if not lines:
        return [f"A {guarantee.kind} promise is listed in the history and never summed; no limit bounds it."]
    if lines[0].before.limit is None:
        return [f"No limit is set for {guarantee.kind} per {guarantee.unit.name}: any amount may be spent there."]
    return []
