"""What children do: look into a file, rehearse, release, judge. Each calls what the command line calls."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from murmurate.core.ledger import Ledger
from murmurate.core.trips import Identity
from murmurate.custody.limits import refuse_unlimited
from murmurate.custody.looking import told
from murmurate.custody.recipes import Recipe
from murmurate.custody.releasing import prepare
from murmurate.custody.sources import open_again, open_private
from murmurate.engine import engine
from murmurate.errors import InputError, UnknownPopulation
from murmurate.ingest.inspect import inspect
from murmurate.studio.drafts import write_closed

DOSSIER = "dossier"
"""Folder of the sign-off pack, beside the internal report of a release."""
Say = Callable[..., None]
"""How a task tells more than its progress."""


def look_into(order: dict[str, Any], _say: Say) -> None:
    """Describe the file, and find whose data it holds."""
    seen: list[Identity] = []
    found = inspect(order["source"], on_identity=seen.append, **order["read"]).to_json()
    if seen:
        with Ledger(order["ledger"], who=order["who"]) as ledger:
            found["population"] = _whose(ledger, seen[0])
            ledger.log_rehearsal(found["population"], "inspect", {})
    _keep(order, "inspection", found)


def _whose(ledger: Ledger, identity: Identity) -> str | None:
    """Return the population that a file is attached to."""
    try:
        return ledger.population_of(identity, create=False)
    except UnknownPopulation:
        return None


def make_demo(order: dict[str, Any], _say: Say) -> None:
    """Write a week of the built-in city as a CSV, as any person would have it, and its roads."""
    from murmurate.demo import city
    from murmurate.spaces.road.write import write_roads

    folder = Path(order["folder"])
    made = city(people=150, days=7, interval_s=30, seed=1)
    made.trips.table.select("uid", "tid", "datetime", "lat", "lng").write_csv(folder / "data.csv")
    (folder / "data.csv").chmod(0o600)
    write_roads(made.network, folder / "roads.geojson")


def rehearse(order: dict[str, Any], _say: Say) -> None:
    """Run every stop several times on the own file; the ledger notes each run, nothing is charged, nothing leaves."""
    from murmurate.spaces import parse
    from murmurate.spaces.grid import Grid
    from murmurate.spaces.road import RoadNetwork
    from murmurate.studio.board import drawn_ground, rehearsed, window

    private = open_private(order["source"], read=order["read"], clean=order["clean"])
    space = parse(order["area"]) if order["area"] else None
    with Ledger(order["ledger"], who=order["who"]) as ledger:
        board = rehearsed(
            order["mechanism"],
            [(value, parameters) for value, parameters in order["settings"]],
            private,
            grid=space if isinstance(space, Grid) else None,
            ledger=ledger,
        )
    roads = parse(f"road:{order['roads']}") if order["roads"] else None
    network = roads if isinstance(roads, RoadNetwork) else None
    grid = space if isinstance(space, Grid) else None
    board |= drawn_ground(window(grid, network), network, grid)
    _keep(order, "rehearsals", [*order["earlier"], {"at": order["at"], "board": board}])


class LooksUnfit(InputError):
    """The data look unfit for what is asked of them; a person may go on all the same."""


def release(order: dict[str, Any], say: Say) -> None:
    """Charge and release; the id of the draft is the id of the release, so a repeated order is charged once."""
    recipe = Recipe(**order["recipe"])
    with engine(1) as running:
        prepared = prepare(recipe, running)
        found = prepared.look()
        if found and not order["unfit"]:
            raise LooksUnfit(told(found), "Fix this, or sign again and tick the box to continue as it is. Nothing was charged.")
        with _Telling(order["ledger"], who=order["who"], say=say) as ledger:
            made, name = prepared.release(
                ledger,
                ask=refuse_unlimited,
                override_overlap=order["override"],
                confirmed=prepared.weakness(),  # the signature confirms the weaknesses
                **{"resume" if order["resume"] else "release_id": order["draft"]},
                signed=order["signed"],
            )
    _keep(order, "made", {"population": name, "manifest": json.loads(made.manifest.text()), "findings": told(found)})


class _Telling(Ledger):
    """A ledger that tells the page as soon as a charge is on disk."""

    def __init__(self, url: str | None, *, who: str, say: Say) -> None:
        super().__init__(url, who=who)
        self._say = say

    def charge(self, *args: Any, **values: Any) -> Any:
        """Charge as any ledger does, then tell."""
        debit = super().charge(*args, **values)
        self._say(charged=True)
        return debit


def judge(order: dict[str, Any], _say: Say) -> None:
    """Score and attack a release beside its originals; internal."""
    from murmurate.custody.internal import Internal
    from murmurate.judging.checking import verify
    from murmurate.judging.dossier import Approval, gather
    from murmurate.judging.review import review
    from murmurate.releases.manifest import read_manifest
    from murmurate.report.dossier import write_dossier
    from murmurate.report.page import write_attack_report, write_report
    from murmurate.spaces import parse

    with Ledger(order["ledger"], who=order["who"]) as ledger:
        checks = verify(order["release"], ledger=ledger)
        record = Internal(ledger, order["draft"])
        private = open_again(order["source"], read_manifest(Path(order["release"])), record, read=order["read"])
        found = review(order["release"], private, ledger=ledger, space=parse(order["space"]) if order["space"] else None)
        scores, attacks = found.take_metrics(workers=1), found.run_attacks()
        verdict = found.verdict(scores, attacked=attacks)
        folder = record.make()
        write_report(folder / "report.html", found, scores, verdict=verdict)
        write_attack_report(folder / "attacks.html", found, attacks)
        write_report(Path(order["folder"]) / "report-public.html", found, scores, public=True)
        approvals = [Approval(who, at=ledger.debit(order["draft"]).at) for who in order["signed"]]
        pack = gather(order["release"], ledger=ledger, attacked=attacks, approvals=approvals)
        shutil.rmtree(folder / DOSSIER, ignore_errors=True)  # of an earlier judgement
        write_dossier(pack, folder / DOSSIER)
    kept = {"scores": scores.to_json(), "attacks": attacks.to_json(), "checks": checks, "verdict": verdict.to_json()}
    _keep(order, "judgement", kept)


def judge_foreign(order: dict[str, Any], _say: Say) -> None:
    """Score and attack any table of trips, also one that another tool made, beside the originals; internal."""
    from murmurate.judging.review import attack, evaluate

    released = open_private(order["release"])
    private = open_private(order["source"], read=order["read"], clean=order["clean"])
    with Ledger(order["ledger"], who=order["who"]) as ledger:
        ledger.log_rehearsal(order["population"], "review", {"foreign": True})
    scores, attacks = evaluate(released, private, workers=1), attack(released, private)
    _keep(order, "foreign", {"scores": scores.to_json(), "attacks": attacks.to_json()})


def _keep(order: dict[str, Any], name: str, values: Any) -> None:
    write_closed(Path(order["folder"]) / f"{name}.json", json.dumps(values, default=str))


TASKS: dict[str, Callable[[dict[str, Any], Say], None]] = {
    "inspection": look_into,
    "demo": make_demo,
    "rehearsals": rehearse,
    "release": release,
    "judgement": judge,
    "foreign": judge_foreign,
}
"""What a child can be told to do."""
