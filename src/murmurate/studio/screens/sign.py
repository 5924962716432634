"""Check and sign: would I sign this? Every setting, the promise, its assumptions and weaknesses, the cost, who and why."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from murmurate.core.guarantee import NoGuarantee
from murmurate.core.ledger.plan import refuse_unaccepted, refuse_unsigned
from murmurate.errors import InsufficientBudget, MurmurateError, ParameterError
from murmurate.report.weaknesses import known_weaknesses
from murmurate.studio.answers import about_person, purse_of
from murmurate.studio.drafts import Draft
from murmurate.studio.products import built, product
from murmurate.studio.room import Room, field, go
from murmurate.studio.same import same_elsewhere

FIELDS = ("who", "why", "second", "understood", "accept", "override", "unfit")
"""The fields of the form."""


def routes(room: Room) -> list[Route]:
    """Return the addresses of this screen."""

    def page(draft: Draft, error: MurmurateError | None = None, typed: dict[str, str] | None = None) -> Response:
        mechanism = built(draft.mechanism, draft.parameters)
        guarantee = mechanism.guarantee()
        rehearsals = draft.internal("rehearsals") or []
        job = room.jobs.find(draft, "release")
        return room.page(
            "sign.html.j2",
            status=422 if error else 200,
            draft=draft,
            error=error,
            steps=room.steps(draft, "sign"),
            product=product(draft.mechanism),
            promise=guarantee.words(),
            statement=list(mechanism.statement()),
            assumptions=guarantee.assumptions,
            weaknesses=known_weaknesses(draft.mechanism),
            person=about_person(guarantee),
            none=isinstance(guarantee, NoGuarantee),
            purse=purse_of(room, draft, guarantee),
            dial=room.dial_words(draft),
            expected=mechanism.expected_error(),
            rehearsals=rehearsals,
            two_people=needs_two(room, draft),
            overlap=job is not None and job.fault == "PopulationOverlap",
            unfit=room.said(draft, job.message) if job is not None and job.fault == "LooksUnfit" else "",
            typed=typed or dict.fromkeys(FIELDS, "") | dict(draft.signed),
            same=same_elsewhere(room, draft),
        )

    async def show(request: Request) -> Response:
        draft = room.draft(request)
        if not draft.mechanism or room.furthest(draft) == "release":
            return go(f"/draft/{draft.id}/{room.furthest(draft)}")
        return page(draft)

    async def sign(request: Request) -> Response:
        draft = room.draft(request)
        job = room.jobs.find(draft, "release")
        if room.is_charged(draft) or (job is not None and not job.over):
            return go(f"/draft/{draft.id}/run")  # a second click, a second tab or a reload: the order stands already
        typed = {name: field(request, name) for name in FIELDS}
        try:
            _check(room, draft, typed)
        except MurmurateError as error:
            return page(draft, error, typed)
        signed = {name: typed[name] for name in ("who", "why", "second")}
        draft = room.drafts.change(draft, signed=signed, accept_no_guarantee=bool(typed["accept"]))
        order = release_order(room, draft, override=bool(typed["override"]), unfit=bool(typed["unfit"]))
        room.jobs.start(draft, "release", order)
        return go(f"/draft/{draft.id}/run")

    return [Route("/draft/{draft}/sign", show), Route("/draft/{draft}/sign", sign, methods=["POST"])]


def release_order(
    room: Room, draft: Draft, *, override: bool = False, unfit: bool = False, resume: bool = False
) -> dict[str, Any]:
    """Return what the child is told that charges and releases.

    `override` and `unfit` are what the person confirmed: people that overlap another population, data that look unfit.
    """
    recipe = asdict(draft.recipe(room.ledger_url))
    return room.order(draft, task="release", recipe=recipe, override=override, unfit=unfit, resume=resume)


def _check(room: Room, draft: Draft, typed: dict[str, str]) -> None:
    """Refuse what is not signed, or what the ledger would refuse, before a child is started; nothing is spent."""
    missing = [words for name, words in (("who", "who signs"), ("why", "what it is for")) if not typed[name]]
    if missing:
        raise ParameterError(f"say {' and '.join(missing)}: both go into the ledger.")
    if not typed["understood"]:
        raise ParameterError("the weaknesses are not confirmed: read them and tick the box.")
    guarantee = built(draft.mechanism, draft.parameters).guarantee()
    if draft.population in room.ledger.populations():
        limits = {limit.account: limit for limit in room.ledger.limits(draft.population)}
        refuse_unsigned(draft.population or "", guarantee, limits, [typed["who"], typed["second"]])
    refuse_unaccepted(guarantee, accepted=bool(typed["accept"]))
    if draft.population in room.ledger.populations():
        room.ledger.plan(draft.population, guarantee).refuse_overspending()
    purse = purse_of(room, draft, guarantee)
    if not purse.allowed:
        raise InsufficientBudget(purse.refusal, requested=None, remaining=None)


def needs_two(room: Room, draft: Draft) -> bool:
    """Return whether a limit of the population asks for a second person."""
    if draft.population not in room.ledger.populations():
        return False
    return any(limit.two_people for limit in room.ledger.limits(draft.population))
