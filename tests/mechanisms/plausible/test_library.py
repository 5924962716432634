"""A public library of day patterns: read before anything is charged, never given out as it stands, said in the statement."""

from __future__ import annotations

import numpy as np
import pytest

import murmurate as mm
from murmurate.asking.rounds import fitted
from murmurate.attacks.localise_rhythm import library_distance
from murmurate.core.parameters import public_parameters
from murmurate.errors import GuaranteeRefused, InputError, ParameterError
from murmurate.mechanisms import build
from murmurate.mechanisms.plausible import Plausible
from murmurate.mechanisms.plausible.library import BUILT_IN, FEWEST, LibraryRhythm, PatternLibrary, fit_library
from murmurate.mechanisms.plausible.model import DayModel
from murmurate.mechanisms.plausible.patterns import KINDS, kinds_of, label_days
from murmurate.mechanisms.plausible.statistics import LIBRARY_SHARES, measured
from murmurate.noise import seeded
from plausible_days import GRID, made_days, trips_of

PUBLIC = made_days(150, 2, seed=40)


@pytest.fixture(scope="module")
def library():
    return PatternLibrary("made up", label_days(PUBLIC.place)[0])


@pytest.fixture(scope="module")
def library_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "days.parquet"
    trips_of(PUBLIC).table.write_parquet(path)
    return path


def plausible(**changes):
    return Plausible(**{"space": GRID, "n_out": 20, **changes})


def model_of(days, library, epsilon=4.0):
    noisy = measured(days, GRID, epsilon=epsilon, rng=seeded(2), shares=LIBRARY_SHARES)
    return DayModel.fit(noisy, GRID, steps=72, time_zone="UTC", rng=seeded(2), library=library)


def test_a_file_of_trips_is_a_library(library_file):
    mechanism = plausible(library=str(library_file))
    assert isinstance(mechanism.library, PatternLibrary)
    assert len(mechanism.library.label) >= FEWEST
    assert plausible(library=trips_of(PUBLIC)).library.digest == mechanism.library.digest
    out = fitted(mechanism, trips_of(made_days(20, 2)), seeded(1)).sample(20, seeded(1))
    assert (out.n_trips, out.n_points) == (20, 20 * 72)


def test_it_is_declared_public_and_the_promise_says_so(library):
    mechanism = plausible(library=library, epsilon=0.5)
    assert mechanism.guarantee().epsilon == 0.5
    assert any("library" in line for line in mechanism.guarantee().assumptions)
    text = " ".join(mechanism.statement())
    assert library.spec() in text
    assert "declared to be public" in text
    assert not any("library" in line for line in plausible().guarantee().assumptions)


def test_a_manifest_names_it_by_its_mark(library_file):
    mechanism = plausible(library=str(library_file))
    words = public_parameters(mechanism)["library"]
    assert words == f"{library_file.name}#{mechanism.library.digest}", "the folder stays inside"
    again = build("plausible", {**public_parameters(mechanism), "library": f"{library_file}#{mechanism.library.digest}"})
    assert again.library.digest == mechanism.library.digest
    with pytest.raises(ParameterError, match="other days"):
        plausible(library=f"{library_file}#{'0' * 12}")


def test_private_days_are_no_public_library(library_file, tmp_path):
    private = mm.read(library_file)
    with mm.Ledger(tmp_path / "ledger.sqlite") as ledger:
        with pytest.raises(GuaranteeRefused, match="given as public"):
            mm.release(plausible(library=str(library_file)), private, ledger=ledger, out=tmp_path / "out")
        assert not any(line.n_charges for name in ledger.populations() for line in ledger.spent(name))


def test_without_its_file_a_marked_library_still_tells_the_promise_but_fits_nothing():
    mechanism = plausible(library="gone.parquet#0123456789ab")
    assert "gone.parquet#0123456789ab" in " ".join(mechanism.statement())
    with pytest.raises(ParameterError, match="is not here"):
        fitted(mechanism, trips_of(made_days(2, 1)), seeded(1))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"library": "nowhere.parquet"}, "cannot be read"),
        ({"library": 5}, "a file of public trips"),
        ({"library": BUILT_IN, "variant": "as_published"}, "only variant own"),
        ({"library": PatternLibrary("a", np.zeros((FEWEST, 72), dtype=np.int16)), "steps": 48}, "72 steps"),
    ],
)
def test_a_library_that_does_not_fit_is_refused_at_construction(changes, why):
    with pytest.raises(ParameterError, match=why):
        plausible(**changes)


def test_a_few_days_are_no_library():
    with pytest.raises(ParameterError, match="at least 100 whole days"):
        PatternLibrary("few", np.zeros((5, 72), dtype=np.int16))


def test_kinds_are_as_often_as_measured_not_as_in_the_library(library):
    """The library's people work; these never leave home."""
    still = made_days(400, 1)
    still.place[:] = still.place[:, :1]
    made = model_of(still, library).places(500, seeded(3))
    assert (made == made[:, :1]).all(axis=1).mean() > 0.8
    assert (PUBLIC.place == PUBLIC.place[:, :1]).all(axis=1).mean() < 0.4


def test_kinds_that_noise_hides_stay_the_librarys(library):
    noisy = measured(made_days(30, 1), GRID, epsilon=0.001, rng=seeded(2), shares=LIBRARY_SHARES)
    own = np.bincount(kinds_of(library.label), minlength=KINDS) / len(library.label)
    assert fit_library(noisy, library, people=30.0).share == pytest.approx(own, abs=0.05)


def test_no_day_leaves_as_it_stands_in_the_library():
    rng = np.random.default_rng(7)
    busy = np.zeros((300, 72), dtype=np.int32)
    for day in busy:
        first, second, third = np.sort(rng.permutation(np.arange(18, 60, 4))[:3])
        day[first : first + 4], day[second : second + 3], day[third : third + 2] = 1, 2, 3
    label = label_days(busy)[0]
    label = label[np.argsort(kinds_of(label), kind="stable")]
    rhythm = LibraryRhythm(label, np.bincount(kinds_of(label), minlength=KINDS) / len(label))
    drawn, n_labels = rhythm.draw(400, np.random.default_rng(1))
    assert (label_days(drawn.astype(np.int32))[2] == n_labels).all()
    known = {day.tobytes() for day in label}
    assert np.mean([day.tobytes() in known for day in drawn]) < 0.02
    assert (drawn[:, 1:] != drawn[:, :-1]).sum(axis=1).mean() == pytest.approx(6, rel=0.15)  # yet they are days like these


def test_an_observer_with_the_library_measures_how_strange_a_day_is(library):
    linked = np.stack([library.label[:3].astype(np.int32), np.tile(np.arange(72, dtype=np.int32), (3, 1))], axis=1)
    strange = library_distance(linked, library.label)
    assert (strange[:, 0] == 0).all()
    assert (strange[:, 1] > 0.5).all()


def test_a_model_with_a_library_comes_back_as_it_was(library, tmp_path):
    model = model_of(made_days(50, 1), library)
    model.save(tmp_path)
    assert (plausible().load(tmp_path).places(40, seeded(3)) == model.places(40, seeded(3))).all()
    with np.load(tmp_path / "model.npz") as stored:
        values = dict(stored)
    values["label"][0, 0] = 500
    np.savez(tmp_path / "model.npz", **values)
    with pytest.raises(InputError, match="column label: holds values outside"):
        plausible().load(tmp_path)


def test_the_built_in_library_is_of_nobody():
    mechanism = plausible(library=BUILT_IN)
    assert mechanism.library.name == BUILT_IN
    assert len(mechanism.library.label) > 1000
