"""What stands on a page and, for the public edition, what does not."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from murmurate.core.guarantee import NoGuarantee
from murmurate.errors import OutputError
from murmurate.judging.review import Review
from murmurate.judging.scoring import Evaluation
from murmurate.releases.folder import Release
from murmurate.report.maps import atlas
from murmurate.report.page import write_attack_report, write_report

OUTSIDE = re.compile(r"(?:src|href|url|xlink:href|action|srcset)\s*[=(]\s*[\"']?\s*(?:https?:)?//", re.IGNORECASE)


class Forbidden:
    """Stands for what the public edition may not even look at."""

    def __getattr__(self, name):
        raise AssertionError(f"the public edition touched {name}")


@pytest.fixture(scope="module")
def pages(judged, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    write_report(folder / "internal.html", judged.review, judged.evaluation, base=judged.base)
    write_report(folder / "public.html", judged.review, judged.evaluation, base=judged.base, public=True)
    write_attack_report(folder / "attacks.html", judged.review, judged.attacked)
    return {path.stem: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_the_internal_page_says_what_was_released_first(pages, judged):
    page = pages["internal"]
    words = judged.review.release.manifest.guarantee.words().split(".")[0]
    assert "Internal." in page and 'class="banner internal"' in page
    assert page.index(words) < page.index("What it is still good for") < page.index('id="maps"') < page.index('id="scores"')
    for heading in (
        "Where the points are",
        "Where trips go",
        "A few trips",
        "Distributions",
        "Hour by hour",
        "Known weaknesses",
    ):
        assert heading in page
    assert f"{judged.review.original.n_trips:,} originals" in page


def test_every_score_is_on_the_internal_page(pages, judged):
    assert all(f"<code>{score.name}</code>" in pages["internal"] for score in judged.evaluation.scores)
    assert all(name in pages["internal"] for name in judged.evaluation.skipped)


def test_pages_are_one_small_file_that_fetches_and_runs_nothing(pages):
    for page in pages.values():
        assert len(page) < 7_000_000
        assert not OUTSIDE.search(page) and "<script" not in page and "@import" not in page
        assert "default-src 'none'" in page


def test_the_public_page_is_made_from_the_release_alone(pages, judged, tmp_path):
    blind = Review(judged.review.release, Forbidden(), Forbidden(), note=Forbidden())
    path = write_report(tmp_path / "blind.html", blind, Forbidden(), base=judged.base, public=True)
    assert path.read_text(encoding="utf-8") == pages["public"]


def test_the_public_page_shows_no_original_and_no_score(pages, judged):
    page = pages["public"]
    sides = {"Original": judged.review.original, "Released": judged.review.released}
    drawn = atlas(judged.town.grid(400), sides, original="Original", pairing=judged.review.pairing)
    private = [patch.d for patch in (*drawn.density[0].patches, *drawn.change[0].patches)]
    private += [arc.d for arc in drawn.flows[0].arcs]
    private += [f"M{part}" for strand in drawn.samples[0].strands for part in strand.d.split("M") if part]
    assert len(private) > 20 and all(d in pages["internal"] for d in private)
    assert not [d for d in private if len(d) > 20 and d in page]
    for word in ("Internal", "riginals with", 'id="scores"', 'id="key"', "jsd", "Change", 'class="original"', 'class="meter'):
        assert word not in page.split("</style>")[1]
    assert "made from the release alone" in page


def test_names_cannot_smuggle_markup(judged, tmp_path):
    evil = "</style></title><script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    release = judged.review.release
    manifest = replace(
        release.manifest,
        mechanism=evil,
        parameters={evil: evil},
        statement=(evil, f"`{evil}`"),
        guarantee=NoGuarantee(why=evil, assumptions=(evil,)),
    )
    poisoned = Review(Release(release.folder, manifest, release.space), judged.review.original, judged.review.pairing, evil)
    scores = tuple(replace(score, name=f"{score.name}.{evil}", note=evil) for score in judged.evaluation.scores[:3])
    spoiled = replace(judged.evaluation, scores=scores, skipped={evil: evil})
    for public in (False, True):
        page = write_report(tmp_path / f"{public}.html", poisoned, spoiled, public=public).read_text(encoding="utf-8")
        assert "<script" not in page and "<img" not in page and "&lt;script&gt;" in page
    page = write_attack_report(tmp_path / "attacks.html", poisoned, spoiled).read_text(encoding="utf-8")
    assert "<script" not in page and "<img" not in page


def test_releases_without_trips_show_their_promise(judged, tmp_path):
    release = judged.review.release
    manifest = replace(release.manifest, kind="pool", files={"pool.parquet": "0" * 64})
    pool = Review(Release(release.folder, manifest), judged.review.original, None)
    for public in (False, True):
        page = write_report(tmp_path / f"{public}.html", pool, Evaluation((), {}), public=public).read_text(encoding="utf-8")
        assert "Pool released by geoind" in page and "pool.parquet" in page and manifest.guarantee.words()[:40] in page
        assert "<svg" not in page


def test_the_attack_page_names_the_adversary(pages, judged):
    page = pages["attacks"]
    assert 'class="banner internal"' in page and "By chance" in page
    assert all(score.name in page for score in judged.attacked.scores)
    assert "The adversary knows" in page


def test_a_page_that_cannot_be_written_is_told(judged, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="could not be written"):
        write_report(tmp_path / "file" / "report.html", judged.review, judged.evaluation, public=True)
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(OutputError):
        write_report(tmp_path / "folder.html", judged.review, judged.evaluation, public=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.html"], "no half page is left behind"
