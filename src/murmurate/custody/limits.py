"""Find whose budget is charged, and under which limit; shared by every front end, which only asks and prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from murmurate.core.guarantee import DP, GeoInd, Guarantee
from murmurate.core.ledger import Ledger
from murmurate.core.trips import Identity
from murmurate.custody.recipes import Recipe, parse_value
from murmurate.errors import ParameterError, UnknownPopulation

Ask = Callable[[Guarantee], dict[str, Any] | None]
"""What a front end does where no limit is set: it gives one (see `parse_limit`), goes on without one, or refuses."""


def population_for(
    ledger: Ledger, identity: Identity, recipe: Recipe, guarantee: Guarantee, *, ask: Ask, override_overlap: bool = False
) -> str:
    """Name the population of a file and set a limit on what is about to be charged; nothing is written before `ask` returns."""
    try:
        known = ledger.population_of(identity, population=recipe.population, create=False)
    except UnknownPopulation:
        known = recipe.population if recipe.population in ledger.populations() else ""
    limits = {limit.account: limit.amount for limit in ledger.limits(known)} if known else {}
    wanted = parse_limit(recipe.limit, guarantee) if recipe.limit is not None else None
    unlimited = (guarantee.kind, guarantee.unit.name) not in limits and guarantee.kind in ("dp", "geoind")
    if wanted is None and unlimited and ledger.purpose != "demo":
        wanted = ask(guarantee)
    name = ledger.population_of(identity, population=recipe.population, create=True, override_overlap=override_overlap)
    if wanted is not None:
        there = limits.get((wanted["kind"], wanted["unit"]))
        value = wanted.get("epsilon", wanted.get("epsilon_per_m"))
        if there is not None and (there.epsilon, there.delta) != (value, wanted.get("delta", 0.0)):
            raise ParameterError(
                f"population {name!r} has a limit of {there} already; --limit is for a new one. "
                f"Change it with `murmurate ledger limit {name} ...`, which the history shows."
            )
        if there is None:
            ledger.limit(name, **wanted)
    return name


def refuse_unlimited(guarantee: Guarantee) -> None:
    """Refuse where no limit is set and nobody can be asked for one."""
    raise ParameterError(
        f"no limit is set for {guarantee.kind} per {guarantee.unit.name}: say how much may ever be spent, such as "
        f"--limit {limit_of_one(guarantee)} (this release once), or name a --ledger whose limits you keep yourself. "
        f"{limit_words(guarantee)}"
    )


def parse_limit(text: str, guarantee: Guarantee) -> dict[str, Any]:
    """Read a limit as people write it: a number (of the guarantee's own kind and unit), or kind:unit:value[:delta].

    >>> from murmurate.core.guarantee import DP, Unit
    >>> parse_limit("2:1e-6", DP(epsilon=1.0, unit=Unit(name="trip")))
    {'kind': 'dp', 'unit': 'trip', 'epsilon': 2.0, 'delta': 1e-06}
    >>> parse_limit("geoind:point:0.05", DP(epsilon=1.0, unit=Unit(name="trip")))
    {'kind': 'geoind', 'unit': 'point', 'epsilon_per_m': 0.05}
    """
    parts = text.split(":")
    kind, unit, numbers = (
        (guarantee.kind, guarantee.unit.name, parts)
        if len(parts) <= 2 and _is_number(parts[0])
        else (parts[0], parts[1] if len(parts) > 1 else "", parts[2:])
    )
    if not numbers or not all(_is_number(number) for number in numbers) or len(numbers) > 2:
        raise ParameterError(f"--limit takes a number, number:delta or kind:unit:value[:delta]; got {text!r}.")
    if kind == "geoind":
        return {"kind": kind, "unit": unit, "epsilon_per_m": float(numbers[0])}
    delta = float(numbers[1]) if len(numbers) > 1 else getattr(guarantee, "delta", 0.0)
    return {"kind": kind, "unit": unit, "epsilon": float(numbers[0]), "delta": delta}


def limit_of_one(guarantee: Guarantee) -> str:
    """Return a limit that this release fills, as `--limit` writes it."""
    if isinstance(guarantee, GeoInd):
        return f"geoind:{guarantee.unit.name}:{guarantee.epsilon_per_m:g}"
    delta = f":{guarantee.delta:g}" if isinstance(guarantee, DP) and guarantee.delta else ""
    return f"{guarantee.kind}:{guarantee.unit.name}:{getattr(guarantee, 'epsilon', 0):g}{delta}"


def limit_words(guarantee: Guarantee) -> str:
    """Say what the number of a limit means for this guarantee, and what this release alone would take."""
    unit = guarantee.unit.words()
    if isinstance(guarantee, GeoInd):
        at = (
            f" Within {guarantee.radius_m:g} m, {1 / guarantee.radius_m:.3g} is a factor of e = 2.7."
            if guarantee.radius_m
            else ""
        )
        return (
            f"A limit bounds what all releases together reveal about {unit}, in epsilon per metre; this one takes "
            f"{guarantee.epsilon_per_m:g}.{at}"
        )
    return (
        f"A limit bounds what all releases together reveal about {unit}: at epsilon 1 no probability changes by more than a "
        f"factor of 2.7, at 3 of 20, at 10 of 22,000. This one takes {getattr(guarantee, 'epsilon', 0):g}."
    )


def _is_number(text: str) -> bool:
    return isinstance(parse_value(text), (int, float))
