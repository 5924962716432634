"""Audits: mechanisms stay below their claims, planted faults are caught, and a broken mechanism fails its audit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from murmurate import mechanisms, noise
from murmurate.core.trips import Trips
from murmurate.judging import twins
from murmurate.judging.audit import Released, _bounds, _sampler, audit
from murmurate.judging.audit_data import town
from murmurate.judging.audit_parts import fork_repeats

CITY = town()
FAULTS = {"no noise", "half noise", "no clip", "clock shared", "person split over partitions", "fork after draw"}


def audited(name, **settings):
    mechanism = replace(mechanisms.example(name, CITY.spaces()), **settings)
    return audit(mechanism, runs=2_000, rng=noise.seeded(5), city=CITY)


@pytest.mark.parametrize("name", ["flock", "ngram", "od_counts"])
def test_a_measured_mechanism_stays_below_its_claim_and_every_fault_is_caught(name):
    found = audited(name)
    assert not found.broken
    assert {twin.fault for twin in found.twins} == FAULTS
    assert [twin.fault for twin in found.twins if not twin.caught_by] == []
    assert found.passed
    assert {"audit.meter.worst_share", "audit.black_box.likelihood_ratio", "audit.sampler.scale_error"} <= {
        score.name for score in found.scores
    }
    assert found.to_json()["passed"] is True


@pytest.mark.parametrize("name", ["geoind", "geoind_predictive", "geoind_anchors"])
def test_a_local_mechanism_stays_below_its_claim(name):
    found = audited(name)
    assert found.passed
    assert len(found.scores) == 3
    assert {twin.fault for twin in found.twins} >= {"no noise", "half noise", "fork after draw"}


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


def test_the_black_box_sees_missing_noise_and_the_sampler_sees_half():
    from murmurate.asking.meter import counted
    from murmurate.judging.audit_data import canaries, people_in, together

    flock = mechanisms.example("flock", CITY.spaces())
    private = people_in(flock.space, CITY)
    rng = noise.seeded(6)
    found = counted(flock, (together(private, canaries(private)["a lone trip"]), private), rng)
    honest = _bounds(Released(flock, found), flock.guarantee(), 2_000, rng)
    bare = _bounds(Released(flock, found, twins.no_noise), flock.guarantee(), 2_000, rng)
    assert all(score.value < score.high for score in honest)
    assert any(score.value > score.high for score in bare)
    assert _sampler(flock, found, rng, twins.honest).value < 0.1
    assert _sampler(flock, found, rng, twins.half_noise).value > 0.4


def test_a_generator_that_repeats_after_a_fork_is_noticed():
    assert fork_repeats(twins.CopiedBlock())
    assert not fork_repeats(noise.secure().words)
