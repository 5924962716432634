"""Check that a release folder is what it says: files, promise, statement, debit."""

from __future__ import annotations

from pathlib import Path

from murmurate import __version__
from murmurate.core.ledger import Ledger
from murmurate.errors import LedgerError, MurmurateError, VerifyError
from murmurate.exports import is_export, verify_export
from murmurate.mechanisms import build
from murmurate.releases import kind_of
from murmurate.releases.folder import open_release
from murmurate.releases.manifest import FILE, Manifest, hash_file


def verify(folder: str | Path, *, ledger: Ledger | None = None) -> dict[str, str]:
    """Check a release: hashes and schema, the guarantee against its parameters, the debit where a ledger is given.

    `folder` is the release folder, or an export, which is checked against the file beside it. The findings are returned in
    words, by what was checked; a fault is raised.
    """
    if is_export(folder):
        return verify_export(folder)
    made = open_release(folder)
    manifest = made.manifest
    findings = {"files": f"{len(manifest.files)} match their hashes", "manifest": f"format {manifest.format}"}
    findings["guarantee"] = _follows(manifest, folder)
    notices = {
        "seeded (a test or demo)": manifest.seeded,
        "demo (no lasting ledger)": manifest.demo,
        "original identifiers": manifest.ids == "kept",
    }
    findings["marks"] = ", ".join(notice for notice, there in notices.items() if there) or "none"
    findings["debit"] = "not looked up; give --ledger" if ledger is None else debited(manifest, Path(folder), ledger)
    return findings


def _follows(manifest: Manifest, folder: str | Path) -> str:
    """Check that guarantee and statement are what the parameters give; only the version that wrote them can."""
    if manifest.murmurate != __version__:
        return f"written by Murmurate {manifest.murmurate}; not recomputed by {__version__}"
    try:
        carried = kind_of(manifest).carried_space(Path(folder))
        mechanism = build(manifest.mechanism, manifest.parameters | ({} if carried is None else {"space": carried}))
    except MurmurateError as error:
        return f"not recomputed here ({str(error).splitlines()[0]})"
    if mechanism.guarantee() != manifest.guarantee:
        raise VerifyError(
            f"{folder}: the guarantee in the manifest is not the one its parameters give: {mechanism.guarantee()}"
        )
    if tuple(mechanism.statement()) != manifest.statement:
        raise VerifyError(f"{folder}: the statement in the manifest is not the one its parameters give.")
    return f"follows from the parameters: {manifest.guarantee.words()}"


def debited(manifest: Manifest, folder: Path, ledger: Ledger) -> str:
    """Say what the ledger knows of this release, or of the model it was drawn from."""
    try:
        debit = ledger.debit(manifest.model_of or manifest.release_id)
    except LedgerError as error:
        raise VerifyError(f"{folder}: {error}") from None
    if (debit.guarantee, debit.mechanism) != (manifest.guarantee, manifest.mechanism):
        raise VerifyError(f"{folder}: the ledger was charged for {debit.mechanism} with {debit.guarantee}, which is not this.")
    charged = f"charged to population {debit.population!r} on {debit.at[:19]} UTC"
    if manifest.model_of is not None:
        if debit.parameters.get("kind") != "model":
            raise VerifyError(f"{folder}: it says it is a sample of {manifest.model_of}, but the ledger knows no such model.")
        return f"a sample of a model that was {charged}; which samples were drawn is not in the ledger"
    if debit.manifest_hash is None:
        return f"{charged}; that the release was finished is not noted"
    if debit.manifest_hash != hash_file(folder / FILE):
        raise VerifyError(f"{folder}: the manifest is not the one the ledger saw when the release was finished.")
    return charged
