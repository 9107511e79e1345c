"""The evidence of a signature, checked without the service: by `tolsey verify-bundle`, and in a shell by its README."""

import subprocess
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio.to_thread
import orjson
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.http.deals.table import Table
from tolsey.actors.listing.evidence import canonical, genesis, sha256
from tolsey.commands.showing import verify_bundle
from tolsey.http.deals.evidence import bundle, checking
from tolsey.http.deals.evidence.checking import EvidenceBroken

Bundle = dict[str, bytes]
NOT_EVIDENCE = ("README.txt",)


def said_by_readme(files: Mapping[str, bytes], folder: Path) -> str:
    """Run exactly the lines of a README, in a folder with its files."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    lines = files["README.txt"].decode().splitlines()
    script = "\n".join(line for line in lines if line.startswith("    "))
    done = subprocess.run(
        ["/bin/sh", "-c", script], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr


def broken(files: Mapping[str, bytes]) -> tuple[str, str] | None:
    """Say which part is broken, and its name."""
    try:
        checking.check(files)
    except EvidenceBroken as found:
        return found.part, found.name
    return None


def flips(files: Bundle, name: str) -> Iterator[tuple[int, Bundle]]:
    """Change a file at its beginning, in its middle and at its end, by one bit each."""
    size = len(files[name])
    for place in sorted({0, size // 3, size // 2, size - 1}):
        changed = bytearray(files[name])
        changed[place] ^= 1
        yield place, {**files, name: bytes(changed)}


async def test_any_changed_byte_is_named_by_the_command_and_by_the_readme(
    files: Bundle, tmp_path: Path
) -> None:
    def tried() -> dict[str, Any]:
        wrong: dict[str, Any] = {}
        if broken(files) or (said := said_by_readme(files, tmp_path / "whole")) != "WHOLE":
            wrong["whole"] = (broken(files), said)
        for name in sorted(files.keys() - {*NOT_EVIDENCE}):
            for place, changed in flips(files, name):
                if (found := broken(changed)) is None or found[1] != name:
                    wrong[f"{name}[{place}]"] = found
                # The summary is for the command alone; a shell costs 20 ms, so it sees one place of each file.
                if name == "signature.json" or place != len(files[name]) // 2:
                    continue
                said = said_by_readme(changed, tmp_path / f"{name.replace('/', '-')}-{place}")
                if not (said.startswith("BROKEN: ") and name in said):
                    wrong[f"README of {name}[{place}]"] = said
        return wrong

    assert {name.split("/")[0] for name in files} == {
        *("README.txt", "document.html", "document.pdf", "consent.txt", "events", "ledger"),
        *("root", "seal", "signature.json"),
    }
    assert await anyio.to_thread.run_sync(tried) == {}


def without(files: Bundle, *names: str) -> Bundle:
    return {name: content for name, content in files.items() if name not in names}


def resummed(files: Bundle, **said: Any) -> Bundle:
    """Write the summary as a forger would, who knows how it is made."""
    rest = without(files, "signature.json", "README.txt")
    summary = orjson.loads(files["signature.json"]) | said
    del summary["sha256"]
    summary["files"] = {name: sha256(content) for name, content in rest.items()}
    return {**files, "signature.json": checking.written(summary)}


def renamed(files: Bundle) -> Bundle:
    """Write another name into the chain, and all that follows from it: events, ledger and summary."""
    made = dict(files)
    summary = orjson.loads(files["signature.json"])
    before = genesis("esign", "v1", summary["id"], summary["documentSha256"])
    for name in sorted(one for one in files if one.startswith("events/")):
        line = orjson.loads(files[name].replace(b'"Ben"', b'"Bob"')) | {"prevHash": before}
        made[name] = canonical(line)
        before = sha256(made[name])
    last = max(one for one in files if one.startswith("ledger/"))
    line = orjson.loads(files[last])
    line["facts"]["auditHash"] = before
    made[last] = canonical(line)
    for one in summary["signers"]:
        one["name"] = one["name"].replace("Ben", "Bob")
    return resummed(made, auditHash=before, signers=summary["signers"])


def rerooted(files: Bundle) -> Bundle:
    """Sign a root over what was forged, with a key of one's own."""
    made, key = renamed(files), Ed25519PrivateKey.generate()
    summary = orjson.loads(made["signature.json"])
    statement = orjson.loads(made["root/statement.json"]) | {"root": summary["auditHash"]}
    made["root/way.txt"] = b""
    made["root/statement.json"] = canonical(statement)
    made["root/statement.sig"] = key.sign(made["root/statement.json"])
    made["root/key.pem"] = key.public_key().public_bytes(
        Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
    )
    return resummed(made)


PLANTED: list[tuple[str, Callable[[Bundle], Bundle], tuple[str, str]]] = [
    ("the page is lost", lambda f: without(f, "document.html"), ("document", "document.html")),
    (
        "the page is another, in the summary too",
        lambda f: resummed({**f, "document.html": b"<p>Ten years.</p>"}),
        ("document", "document.html"),
    ),
    (
        "an event is left out",
        lambda f: without(f, "events/0002.json"),
        ("event", "events/0002.json"),
    ),
    (
        "two events change places",
        lambda f: {
            **f,
            "events/0002.json": f["events/0003.json"],
            "events/0003.json": f["events/0002.json"],
        },
        ("event", "events/0002.json"),
    ),
    (
        "an event is left out and the rest renumbered, in the summary too",
        lambda f: resummed(
            without({**f, "events/0002.json": f["events/0003.json"]}, "events/0003.json")
        ),
        ("event", "events/0002.json"),
    ),
    (
        "the last event is cut off, in the summary too",
        lambda f: resummed(without(f, max(n for n in f if n.startswith("events/")))),
        ("ledger", "ledger/"),
    ),
    (
        "an event is added",
        lambda f: {**f, "events/0006.json": f["events/0005.json"]},
        ("event", "events/0006.json"),
    ),
    (
        "an event has a hash too few",
        lambda f: resummed(
            {**f, "events/0003.json": f["events/0003.json"].replace(b"prevHash", b"prevHush")}
        ),
        ("event", "events/0003.json"),
    ),
    (
        "an event has blanks, in the summary too",
        lambda f: resummed({**f, "events/0005.json": f["events/0005.json"].replace(b":", b": ")}),
        ("event", "events/0005.json"),
    ),
    ("the consent is lost", lambda f: without(f, "consent.txt"), ("consent", "consent.txt")),
    (
        "the consent is another, in the summary too",
        lambda f: resummed({**f, "consent.txt": b"I agree to everything."}),
        ("consent", "consent.txt"),
    ),
    (
        "a line of the ledger is left out",
        lambda f: without(f, "ledger/0002.json"),
        ("ledger", "ledger/0002.json"),
    ),
    (
        "the ledger is left out, in the summary too",
        lambda f: resummed(without(f, *(n for n in f if n.startswith("ledger/")))),
        ("ledger", "ledger/0001.json"),
    ),
    ("the way is lost", lambda f: without(f, "root/way.txt"), ("root", "root/way.txt")),
    (
        "the root is left out",
        lambda f: without(f, *(n for n in f if n.startswith("root/"))),
        ("root", "root/key.pem"),
    ),
    (
        "the root says more, in the summary too",
        lambda f: resummed(
            {
                **f,
                "root/statement.json": f["root/statement.json"].replace(
                    b'"signatures":2', b'"signatures":3'
                ),
            }
        ),
        ("root", "root/statement.json"),
    ),
    (
        "the way is another's, in the summary too",
        lambda f: resummed({**f, "root/way.txt": b"left " + b"0" * 64 + b"\n"}),
        ("root", "root/way.txt"),
    ),
    ("a name is forged through and through", renamed, ("root", "root/way.txt")),
    (
        "the PDF is another's, in the summary too",
        lambda f: resummed({**f, "document.pdf": f["document.pdf"] + b"\n%more"}),
        ("pdf", "document.pdf"),
    ),
    (
        "the certificate is lost",
        lambda f: without(f, "seal/certificate.pem"),
        ("pdf", "seal/certificate.pem"),
    ),
    ("the summary is lost", lambda f: without(f, "signature.json"), ("summary", "signature.json")),
    (
        "the summary names another signer",
        lambda f: resummed(f, signers=[]),
        ("summary", "signature.json"),
    ),
    (
        "the summary says less",
        lambda f: resummed(f, status="VIEWED"),
        ("summary", "signature.json"),
    ),
    (
        "the summary is of another deal",
        lambda f: resummed(f, dealId="deal_2"),
        ("summary", "signature.json"),
    ),
    (
        "a file of nobody's is put in",
        lambda f: {**f, "root/../more": b""},
        ("bundle", "root/../more"),
    ),
]


async def test_every_kind_of_break_that_is_planted_is_named(files: Bundle) -> None:
    def tried() -> dict[str, Any]:
        wrong = {}
        for what, plant, (part, name) in PLANTED:
            found = broken(plant(dict(files)))
            if found is None or found[0] != part or not found[1].startswith(name):
                wrong[what] = found
        return wrong

    assert len({what for what, *_ in PLANTED}) == len(PLANTED)
    assert await anyio.to_thread.run_sync(tried) == {}


async def test_the_command_holds_a_bundle_against_the_roots_that_were_published(
    files: Bundle, table: Table, tmp_path: Path
) -> None:
    listed = (await table.eve.browser.get("/.well-known/esign-roots.json")).content
    (tmp_path / "roots.json").write_bytes(listed)
    (tmp_path / "none.json").write_bytes(b'{"items": [], "nextCursor": null}')

    def run(content: bytes, *options: str) -> tuple[int, str]:
        (tmp_path / "one.zip").write_bytes(content)
        done = CliRunner().invoke(verify_bundle, [str(tmp_path / "one.zip"), *options])
        # The service of this test may log meanwhile: it seals what was signed.
        said = [one for one in done.output.splitlines(keepends=True) if "effect=" not in one]
        return done.exit_code, "".join(said)

    def tried() -> None:
        roots, whole = f"--roots={tmp_path / 'roots.json'}", bundle.zipped(files)
        status, said = run(whole, roots)
        assert status == 0, said
        assert said.startswith("WHOLE: NDA sig_")
        assert "signed by Ben for the buyer" in said
        assert "which was published" in said
        # Who forges everything and signs it with a key of their own is found by the list alone.
        forged = bundle.zipped(rerooted(files))
        assert run(forged)[0] == 0
        assert "compare it with the list" in run(forged)[1]
        assert run(forged, roots)[0] == 1
        assert run(forged, roots)[1].startswith("BROKEN: root/statement.json is not what was pub")
        assert run(whole, f"--roots={tmp_path / 'none.json'}")[0] == 1
        assert run(whole[: len(whole) // 2])[1].startswith("BROKEN: the bundle cannot be read")
        assert run(b"nothing")[0] == 1
        changed = bundle.zipped({**files, "events/0003.json": b"{}"})
        assert run(changed) == (
            1,
            "BROKEN: events/0003.json is not what it was when the bundle was made\n",
        )

    await anyio.to_thread.run_sync(tried)


def test_a_bundle_that_has_a_file_twice_is_none() -> None:
    import zipfile  # noqa: PLC0415

    made = BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("document.html", b"one")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("document.html", b"two")
    with pytest.raises(EvidenceBroken, match="is there twice"):
        bundle.unzipped(made)
