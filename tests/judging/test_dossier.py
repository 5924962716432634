"""The sign-off pack: both editions, and nothing internal in the public one."""

from __future__ import annotations

import json
import stat
from dataclasses import replace

import pytest

import murmurate as mm
from murmurate.errors import OutputError, VerifyError
from murmurate.judging import dossier as module
from murmurate.judging.dossier import Approval, Dossier, gather, meaning, sbom, to_yaml
from murmurate.mechanisms import build
from murmurate.report.dossier import write_dossier
from small_town import GRID, town

CANARY = "canary-4711"


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    home = tmp_path_factory.mktemp("dossier")
    ledger = mm.Ledger(home / "ledger.sqlite", who=CANARY)
    private = town(300)
    flock = build("flock", {"space": GRID.spec(), "epsilon": 2.0, "delta": 1e-6, "n_out": 200})
    release = mm.release(flock, private, ledger=ledger, out=home / "release", population=f"people-{CANARY}")
    return home, ledger, private, release


def test_the_editions_of_a_real_release(released, tmp_path):
    _, ledger, private, release = released
    found = gather(release.folder, ledger=ledger, against=private, approvals=[Approval(f"Ann {CANARY}", "officer")])
    public, internal = write_dossier(found, tmp_path / "pack")
    assert {path.name for path in public.iterdir()} == {
        "dossier.html", "dossier.json", "deployment.yaml", "sbom.json", "hashes.txt",
    }  # fmt: skip
    assert {path.name for path in public.iterdir()} == {path.name for path in internal.iterdir()}
    assert stat.S_IMODE(internal.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in internal.iterdir())
    page = (internal / "dossier.html").read_text()
    assert "Descriptions unique in the release that fit one person" in page
    assert "Limit(" not in page, "limits are told in words"
    assert CANARY in page
    questions = json.loads((public / "dossier.json").read_text())["questions"]
    assert all(one["answer"] for one in questions)
    assert {test["test"] for test in found.internal["tests"]} == {"Singling out", "Linkability", "Inference"}
    assert all(test["scores"] for test in found.internal["tests"])


def test_nothing_internal_is_in_the_public_edition(released, tmp_path):
    """Every internal value becomes a canary, and none is found in any public file."""
    _, ledger, private, release = released
    found = gather(release.folder, ledger=ledger, against=private, approvals=[Approval("x", "y")])
    count = 0

    def planted(value):
        nonlocal count
        if isinstance(value, dict):
            return {f"{key}": planted(item) for key, item in value.items()}
        if isinstance(value, list):
            return [planted(item) for item in value]
        if isinstance(value, float):
            return 0.4711
        count += 1
        return f"{CANARY}-{count}"

    internal = planted(dict(found.internal))
    for test in internal["tests"]:
        for score in test["scores"]:
            score.update(value=0.4711, low=0.4711, high=0.4711, chance=0.4711)
    public, inside = write_dossier(Dossier(found.public, internal), tmp_path / "pack")
    text = "".join(path.read_text() for path in public.iterdir())
    assert CANARY not in text
    assert "0.4711" not in text
    assert CANARY in (inside / "dossier.html").read_text()
    plain = gather(release.folder)
    assert plain.public == found.public, "the public edition must not depend on the ledger or the private file"


@pytest.mark.parametrize(
    ("mechanism", "parameters", "product"),
    [
        ("k_anonymity", {"k": 2, "radius_m": 800.0}, "Dataset"),
        ("geoind", {"epsilon": 1.0, "radius_m": 200.0, "max_points": 50}, "Dataset"),
        ("flock", {"space": GRID.spec(), "epsilon": 5.0, "delta": 1e-5}, "Synthetic data"),
    ],
)
def test_only_what_a_guarantee_rests_on_is_claimed(tmp_path, mechanism, parameters, product):
    """A release without noise must not claim secure noise, a budget that is composed, or adjacent data."""
    with mm.Ledger.in_memory() as ledger:
        made = mm.release(build(mechanism, parameters), town(300), ledger=ledger, out=tmp_path / "out", population="all")
    public = gather(made.folder).public
    answers = {one["question"]: one["answer"] for one in public["questions"]}
    record = public["deployment"]["deployment"]
    words = json.dumps([public["questions"], public["assessment"], record])
    assert record["basic"]["data_product_type"] == product
    assert record["dp_variant"]["unprotected_quantities"] == "None was declared."
    noisy = mechanism != "k_anonymity"
    for claim in ("Noise is drawn on integers", "adds the noise", "Adjacent data", "composed", "Yes: drawn from", " add up."):
        assert (claim in words) == noisy, claim
    assert ("noisy counts" in words) == (mechanism == "flock")
    assert ("not times" in answers["What is not protected?"]) == (mechanism == "geoind")


def test_a_damaged_release_gets_no_dossier(released, tmp_path):
    import shutil

    home, *_ = released
    copy = tmp_path / "copy"
    shutil.copytree(home / "release", copy)
    (copy / "statement.md").write_text("Trust me.")
    with pytest.raises(VerifyError, match=r"statement\.md"):
        gather(copy)
    (tmp_path / "there").mkdir()
    with pytest.raises(OutputError, match="exists already"):
        write_dossier(gather(home / "release"), tmp_path / "there")


def test_epsilon_is_told_as_odds():
    promise = mm.DP(epsilon=0.0001, unit=mm.Unit(name="trip"))
    assert "50.0 %" in meaning(promise)
    assert "88.1 %" in meaning(replace(promise, epsilon=2.0))


def test_the_bill_of_materials_names_what_is_installed():
    import numpy

    parts = {one["name"]: one["version"] for one in sbom()["components"]}
    assert parts["numpy"] == numpy.__version__
    assert "pytest" not in parts


REGISTRY = {
    "basic": {"name", "data_curators", "intended_use", "data_product_type", "data_product_region", "description",
              "publication_date", "data_product_sector"},
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details"},
    "deployment_model": {"model_name", "model_name_details", "actors", "release_type", "release_type_details",
                         "data_source_type", "data_source_type_details", "access_type", "access_type_details"},
    "accounting": {"post_processing", "composition"},
    "implementation": {"preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"},
    "administrative": {"sources", "notes", "registry_authors"},
}  # fmt: skip
"""Sections and fields that the schema of OpenDP's deployments registry allows (opendp/deployments-registry-data, 2026)."""


def test_the_registry_takes_the_record(released):
    """Other fields are refused there; tier 3 is the highest and has something in every section."""
    record = gather(released[3].folder).public["deployment"]
    assert record.keys() == {"url_slug", "status", "tier", "deployment"}
    assert (record["tier"], record["status"]) == (3, "Draft")
    sections = record["deployment"]
    assert sections.keys() == REGISTRY.keys()
    for name, fields in sections.items():
        assert fields.keys() <= REGISTRY[name]
        assert all(fields.values())
    assert REGISTRY["basic"] - sections["basic"].keys() == {"data_product_sector"}
    assert sections["basic"]["data_product_type"] == "Synthetic data"
    assert sections["dp_variant"]["variant_name"] == "Approximate DP"
    assert sections["privacy_loss"]["privacy_parameters"] == {"epsilon": 2.0, "delta": 1e-6}


def test_yaml_reads_back(released):
    yaml = pytest.importorskip("yaml")
    record = gather(released[3].folder).public["deployment"]
    assert yaml.safe_load(to_yaml(record)) == record
    assert module.EUROPEAN
