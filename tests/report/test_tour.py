"""The demo: every mechanism released, judged and shown; the same twice; failures told."""

from __future__ import annotations

import json

import pytest

from murmurate import mechanisms
from murmurate.errors import OutputError, ParameterError
from murmurate.judging.checking import verify
from murmurate.releases.folder import open_release
from murmurate.report import tour

SMALL = {"people": 16, "days": 3, "workers": 1}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    return tour.tour(tmp_path_factory.mktemp("tour") / "out", only=["geoind", "ngram"], **SMALL)


def test_everything_is_where_it_says(shown):
    folder = shown.folder
    assert shown.report == folder / "report.html" and shown.report.is_file()
    assert sorted(path.name for path in folder.iterdir()) == ["releases", "report.html", "reports", "scores.json"]
    for name in ("geoind", "ngram"):
        assert {f"{name}.html", f"{name}-public.html", f"{name}-attacks.html"} <= {
            path.name for path in (folder / "reports").iterdir()
        }
        verify(folder / "releases" / name)
        assert open_release(folder / "releases" / name).manifest.seeded, "a demo is marked as one"
    page = shown.report.read_text(encoding="utf-8")
    for link in ("reports/geoind.html", "reports/ngram-attacks.html"):
        assert f'href="{link}"' in page and (folder / link).is_file()


def test_scores_are_there_for_machines(shown):
    scores = json.loads((shown.folder / "scores.json").read_text())
    assert list(scores) == ["geoind", "ngram"]
    assert {"visits.jsd", "length.emd"} <= {score["name"] for score in scores["ngram"]["scores"]}
    assert scores["geoind"]["guarantee"]["kind"] == "geoind" and scores["geoind"]["attacks"]


def test_a_tour_repeats_whatever_the_number_of_processes(shown, tmp_path):
    again = tour.tour(tmp_path / "again", only=["geoind", "ngram"], **{**SMALL, "workers": 2})
    for one, other in zip(shown.entries, again.entries, strict=True):
        assert one.release.trips.table.drop("uid", "tid").equals(other.release.trips.table.drop("uid", "tid"))
        assert one.evaluation.to_json() == other.evaluation.to_json()


def test_a_failing_mechanism_is_told_and_does_not_stop_the_others(monkeypatch, tmp_path):
    kind = mechanisms.mechanism_class("geoind")
    monkeypatch.setattr(kind, "apply", lambda *_: (_ for _ in ()).throw(RuntimeError("broken on purpose")))
    with pytest.raises(ExceptionGroup, match="1 of 2 mechanisms failed: geoind: RuntimeError: broken on purpose") as told:
        tour.tour(tmp_path / "out", only=["geoind", "ngram"], **SMALL)
    assert "Traceback" in told.value.exceptions[0].__notes__[0]
    assert (tmp_path / "out" / "reports" / "ngram.html").is_file()
    assert not (tmp_path / "out" / "releases" / "geoind").exists()


def test_a_demo_never_overwrites(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(OutputError, match="exists already"):
        tour.tour(tmp_path / "out", only=["geoind"], **SMALL)


def test_unknown_names_are_refused_before_any_work(tmp_path):
    with pytest.raises(ParameterError, match="geoind"):
        tour.tour(tmp_path / "out", only=["geoindd"], **SMALL)
    assert not (tmp_path / "out").exists()
