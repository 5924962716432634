"""Audits: mechanisms stay below their claims, planted faults are caught, and a broken mechanism fails its audit."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from murmurate import mechanisms, noise
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.judging import twins
from murmurate.judging.audit import _sampler, audit
from murmurate.judging.audit_data import people_in, town
from murmurate.judging.audit_deep import deep_audit, rows_of
from murmurate.judging.audit_outputs import Released, bounds
from murmurate.judging.audit_parts import fork_repeats
from murmurate.spaces import parse

CITY = town()
FAULTS = {"no noise", "half noise", "no clip", "clock shared", "person split over partitions", "fork after draw"}


def audited(name, **settings):
    mechanism = replace(mechanisms.example(name, CITY.spaces()), **settings)
    return audit(mechanism, rng=noise.seeded(5), city=CITY)


@pytest.mark.parametrize("name", ["flock", "ngram", "od_counts"])
def test_a_measured_mechanism_stays_below_its_claim_and_every_fault_is_caught(name):
    found = audited(name)
    assert not found.broken
    assert {twin.fault for twin in found.twins} == FAULTS
    assert [twin.fault for twin in found.twins if not twin.caught_by] == []
    assert found.passed
    best = max((one for one in found.scores if one.name.startswith("audit.black_box")), key=lambda one: one.value)
    assert best.value > 0.25 * best.high, "a black box that shows nothing tests nothing"
    assert all("black box" in twin.caught_by for twin in found.twins if twin.fault in {"no noise", "half noise"})
    assert {"audit.meter.worst_share", "audit.black_box.likelihood_ratio", "audit.sampler.scale_error"} <= {
        score.name for score in found.scores
    }
    assert found.to_json()["passed"] is True


def test_people_are_made_up_where_the_places_are(tmp_path):
    """Zones and hexagons of another city: a canary outside all of them would spend nothing and catch no fault."""
    ring = [[12.4, 41.8], [12.5, 41.8], [12.4, 41.9], [12.4, 41.8]]  # half of its box
    far = [[12.7, 42.2], [12.8, 42.2], [12.8, 42.3], [12.7, 42.2]]
    shapes = [
        {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [one]}} for one in (ring, far)
    ]
    (tmp_path / "zones.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": shapes}))
    for words in (f"zones:{tmp_path}/zones.geojson", "hex:7@41.8,12.4,42.0,12.6"):
        people = people_in(parse(words), CITY)
        assert (parse(words).locate(people.lat, people.lng) >= 0).all()
    assert (people_in(parse("hex:7@44.9,-30.1,45.1,-29.9"), CITY).lat == people_in(None, CITY).lat).all()
    found = audited("od_counts", space=parse(f"zones:{tmp_path}/zones.geojson"))
    assert found.passed, [twin for twin in found.twins if not twin.caught_by]


def test_a_town_too_small_for_an_epsilon_gets_more_people(monkeypatch):
    settings = {"epsilon": 0.4, "unit": "user", "max_trips": 6}
    assert audited("flock", **settings).passed
    monkeypatch.setattr("murmurate.judging.audit.TOWN_COPIES", (1,))
    with pytest.raises(InputError, match="the made-up town cannot be released with these settings"):
        audited("flock", **settings)


@pytest.mark.parametrize("name", ["geoind", "geoind_predictive", "geoind_anchors"])
def test_a_local_mechanism_stays_below_its_claim(name):
    found = audited(name)
    assert found.passed
    assert len(found.scores) == 4
    assert {twin.fault for twin in found.twins} == FAULTS - {"clock shared"} | {"noise shared by people"}


def test_groups_that_lack_people_are_counted():
    found = audited("k_anonymity", k=3)
    assert found.passed
    assert {twin.fault: twin.caught_by for twin in found.twins} == {
        "a group of one": "groups", "groups of one person fewer": "groups",
    }  # fmt: skip


def test_the_noise_of_releases_is_what_is_audited(monkeypatch):
    """The sampler test and the black box see noise that is halved inside the samplers that releases use."""
    from murmurate.noise import discrete

    drawn, accepted = discrete._laplace_numbers, discrete._accepted

    def halved(n, top, bottom, rng):
        return drawn(n, top if rng.seeded else (top - 1) // 2 + 1, bottom, rng)

    monkeypatch.setattr(discrete, "_laplace_numbers", halved)
    monkeypatch.setattr(discrete, "_accepted", lambda sizes, scale, rng: accepted(sizes, scale / (2 - rng.seeded), rng))
    found = audit(mechanisms.example("dp_loc", CITY.spaces()), rng=noise.secure(), city=CITY, runs=2_000)
    names = {score.name for score in found.broken}
    assert "audit.sampler.scale_error" in names
    assert any(name.startswith("audit.black_box") for name in names)


def test_a_local_mechanism_that_moves_nothing_fails():
    class Still(mechanisms.mechanism_class("geoind")):
        def apply(self, private: Trips, rng):
            return private

    found = audit(Still(epsilon=1.0, radius_m=100.0), runs=2_000, rng=noise.seeded(5), city=CITY)
    assert found.broken
    assert not found.passed


def test_mechanisms_without_a_promise_have_nothing_to_audit():
    found = audited("od_successive")
    assert not found.scores
    assert "nothing is promised" in found.note


def test_generators_and_testers_can_be_replaced():
    from murmurate.asking.meter import counted
    from murmurate.judging.audit_data import canaries, together

    flock = mechanisms.example("flock", CITY.spaces())
    private = people_in(flock.space, CITY)
    rng = noise.seeded(6)
    found = counted(flock, (together(private, canaries(private)["a lone trip"]), private), rng)
    asked = []

    class Watched(Released):
        def __call__(self, side, n, rng):
            asked.append(side)
            return super().__call__(side, n, rng)

    def one_tester(generator, runs, rng):
        return {"first_bin": lambda outputs: outputs[:, 0]}

    (score,) = bounds(Watched(flock, found), flock.guarantee(), 2_000, rng, one_tester)
    assert (score.name, asked) == ("audit.black_box.first_bin", [0, 1])
    assert score.value < score.high
    assert _sampler(flock, found, rng, twins.honest).value < 0.1
    assert _sampler(flock, found, rng, twins.half_noise).value > 0.4


def test_a_deep_audit_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr("murmurate.judging.audit_deep.EPSILONS", (1.0, 0.5))
    mechanism = mechanisms.example("geoind", CITY.spaces())
    kept, options = tmp_path / "deep.json", {"effort": 1, "releases": 1, "city": CITY}
    first = [one for one, _ in zip(deep_audit(mechanism, kept=kept, **options), range(2), strict=False)]
    every = list(deep_audit(mechanism, kept=kept, **options))
    assert every[:2] == first, "what was kept is not audited again"
    assert len(every) == 8, "four units with two epsilons each"
    assert all(one["passed"] for one in every)
    assert {row[0] for row in rows_of(every)} == {"point", "trip", "user_day", "user"}
    kept.write_text("[]")
    with pytest.raises(InputError, match="deep audit"):
        next(deep_audit(mechanism, kept=kept, **options))


def test_a_generator_that_repeats_after_a_fork_is_noticed():
    assert fork_repeats(twins.CopiedBlock())
    assert not fork_repeats(noise.secure().words)


def test_an_interrupted_deep_audit_shows_what_it_found_and_says_so_in_its_exit_code(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from murmurate.cli import app

    def interrupted(_mechanism, **_options):
        yield {"unit": "trip", "parameters": {"epsilon": 1.0}, "scores": [], "twins": []}
        raise KeyboardInterrupt

    monkeypatch.setattr("murmurate.judging.audit_deep.deep_audit", interrupted)
    ran = CliRunner().invoke(app, ["audit", "geoind", "--deep", "--json", str(tmp_path / "deep.json")])
    assert ran.exit_code == 130
    assert "1 audits. Interrupted. The same command goes on from" in ran.output
