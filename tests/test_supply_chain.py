"""What the package rests on, checked without any service: bounds, known weaknesses, licences."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ADVISORIES = tomllib.loads((ROOT / "scripts" / "advisories.toml").read_text())["advisory"]
USED = ("papers", "postgres", "studio", "geo", "dask", "spark", "valhalla")
"""Extras that run on a publisher's machine; `dev` and `docs` do not."""
ALLOWED = re.compile(
    r"0BSD|Apache|BSD|CC0|HPND|ISC|MIT|MPL|Mozilla Public|PSF|Python Software Foundation|Unlicense|Zlib|LGPL-3.0-only",
    re.IGNORECASE,
)
"""Licences under which a dependency may come; LGPL for psycopg alone, which is linked at run time."""


def requirements():
    listed = [*PROJECT["dependencies"], *(line for extra in USED for line in PROJECT["optional-dependencies"][extra])]
    return [Requirement(line) for line in listed]


def lower_bound(requirement):
    bounds = [Version(part.version) for part in requirement.specifier if part.operator in (">=", "==", "~=")]
    return max(bounds, default=None)


def installed(names):
    """Everything that is installed because of these packages."""
    found, todo = {}, [(name, frozenset(extras)) for name, extras in names]
    while todo:
        name, extras = todo.pop()
        try:
            one = distribution(name)
        except PackageNotFoundError:  # an extra that is not installed here
            continue
        if name.lower() in found:
            continue
        found[name.lower()] = one
        for line in one.requires or []:
            needed = Requirement(line)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in (extras or {""})):
                todo.append((needed.name, frozenset(needed.extras)))
    return found


def faults(requirement, advisories=ADVISORIES):
    bound = lower_bound(requirement)
    if bound is None:
        return [f"{requirement} has no lower bound"]
    mine = [advisory for advisory in advisories if advisory["package"].lower() == requirement.name.lower()]
    return [f"{requirement} allows {one['id']} ({one['what']})" for one in mine if bound < Version(one["fixed"])]


def licence(metadata):
    classes = [line.split("::")[-1] for line in metadata.get_all("Classifier") or [] if line.startswith("License ::")]
    return metadata.get("License-Expression") or " ".join(classes) or (metadata.get("License") or "")[:80]


def test_every_dependency_has_a_lower_bound_above_known_weaknesses():
    assert [fault for requirement in requirements() for fault in faults(requirement)] == []


@pytest.mark.parametrize("line", ["pyarrow", "pyarrow<15", "pyarrow>=14.0.0", "cryptography>=43"])
def test_a_bound_that_allows_a_known_weakness_is_found(line):
    assert faults(Requirement(line))


def test_what_is_installed_has_no_known_weakness_and_an_allowed_licence():
    found = installed([(requirement.name, requirement.extras) for requirement in requirements()])
    assert len(found) > 40
    bad = [
        f"{one['package']} {found[one['package']].version}: {one['id']}"
        for one in ADVISORIES
        if one["package"] in found and Version(found[one["package"]].version) < Version(one["fixed"])
    ]
    assert bad == []
    closed = {name: licence(one.metadata) for name, one in found.items() if not ALLOWED.search(licence(one.metadata))}
    closed |= {
        name: "LGPL" for name, one in found.items() if "LGPL" in licence(one.metadata) and not name.startswith("psycopg")
    }
    assert closed == {}


def test_every_advisory_is_about_something_that_is_used():
    names = {requirement.name.lower() for requirement in requirements()}
    assert {advisory["package"] for advisory in ADVISORIES} <= names
