"""Draw the dossier of a release as one printable page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from murmurate.core.score import number
from murmurate.judging.dossier import Dossier, to_json_text, to_yaml
from murmurate.releases.folder import new_folder
from murmurate.report.render import render


def render_dossier(public: Mapping[str, Any], internal: Mapping[str, Any] | None) -> str:
    """Return the page of the public edition, or of the internal one where its values are given."""
    return render("dossier.html.j2", public=public, internal=internal, number=number)


def write_dossier(dossier: Dossier, out: Path) -> tuple[Path, Path]:
    """Write both editions: page, JSON, registry record, bill of materials and hashes; the internal one is closed."""
    with new_folder(out) as temporary:
        public, internal = temporary / "public", temporary / "internal"
        public.mkdir(mode=0o755)
        internal.mkdir(mode=0o700)
        for folder, values, mode in (
            (public, {"public": dossier.public, "internal": None}, 0o644),
            (internal, {"public": dossier.public, "internal": dossier.internal}, 0o600),
        ):
            files = {
                "dossier.html": render_dossier(**values),
                "dossier.json": to_json_text(values if values["internal"] is not None else dossier.public),
                "deployment.yaml": to_yaml(dossier.public["deployment"]),
                "sbom.json": to_json_text(dossier.public["sbom"]),
                "hashes.txt": "".join(f"{digest}  {name}\n" for name, digest in dossier.public["hashes"].items()),
            }
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
                (folder / name).chmod(mode)
        public.chmod(0o755)
    return out / "public", out / "internal"
