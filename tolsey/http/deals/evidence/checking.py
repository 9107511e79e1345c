"""Computes a bundle of evidence again, and names the first part that is not what was written.

It takes the files of a bundle and nothing else: what the service answers of itself is computed by the very
code that anyone runs on a bundle at home.
"""

import re
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from tolsey.actors.listing import evidence
from tolsey.actors.listing.deals import ledger
from tolsey.actors.listing.deals.signatures import chain
from tolsey.actors.listing.evidence import sha256
from tolsey.http.deals.evidence.merkle import LEFT, RIGHT, climbed
from tolsey.http.deals.sealing.seal import is_intact, place_of

Files = Mapping[str, bytes]
Line = dict[str, Any]

SUMMARY: Final = "signature.json"
README: Final = "README.txt"
DOCUMENT: Final = "document.html"
CONSENT: Final = "consent.txt"
EVENT: Final = "events/{:04}.json"
LEDGER_LINE: Final = "ledger/{:04}.json"
WAY, STATEMENT, STATEMENT_SIGNATURE, KEY = ROOT_FILES = (
    "root/way.txt",
    "root/statement.json",
    "root/statement.sig",
    "root/key.pem",
)
PDF, SEAL, CERTIFICATE = PDF_FILES = ("document.pdf", "seal/seal.p7s", "seal/certificate.pem")
PARTS: Final = (
    ("document", re.compile(r"document\.html")),
    ("event", re.compile(r"events/\d{4}\.json")),
    ("consent", re.compile(r"consent\.txt")),
    ("ledger", re.compile(r"ledger/\d{4}\.json")),
    ("root", re.compile(r"root/(way\.txt|statement\.json|statement\.sig|key\.pem)")),
    ("pdf", re.compile(r"document\.pdf|seal/(seal\.p7s|certificate\.pem)")),
    ("summary", re.compile(r"signature\.json|README\.txt")),
)
"""What a file of a bundle is a part of, in the order in which breaks are told."""
STATUSES: Final = {
    "requested": "PENDING",
    "viewed": "VIEWED",
    "declined": "DECLINED",
    "expired": "EXPIRED",
    "voided": "VOIDED",
    "failed": "FAILED",
    "completed": "SIGNED",
}
UNANCHORED: Final = "is under no root that was published: its day's root is signed at 00:15 UTC"


class EvidenceBroken(Exception):  # noqa: N818 - what evidence is
    """A part of the evidence is not what was written: `name` is its file in the bundle."""

    def __init__(self, part: str, name: str, why: str) -> None:
        super().__init__(f"{name} {why}")
        self.part = part
        self.name = name
        self.why = why


def check(files: Files) -> Line:
    """Compute a bundle again; answers its summary. Raises EvidenceBroken with the first part that is not right."""
    said = _summary_of(files)
    named = said["files"]
    found = {one: sha256(files[one]) for one in sorted(files) if one not in (SUMMARY, README)}
    # A break of a chain shows in the line after it: the summary knows the very file that was changed.
    for name in sorted({*named, *found}, key=_place):
        part = part_of(name)
        if part is None or name not in named:
            raise EvidenceBroken(part or "bundle", name, "is no part of the evidence")
        if name not in found:
            raise EvidenceBroken(part, name, "is missing")
        if named[name] != found[name]:
            raise EvidenceBroken(part, name, "is not what it was when the bundle was made")
    comes_to = {**_meaning(files), "files": found}
    for name, value in comes_to.items():
        if said.get(name) != value:
            raise EvidenceBroken("summary", SUMMARY, f"says another {name} than the evidence")
    return said


def written(summary: Mapping[str, Any]) -> bytes:
    """Write a summary in the one way that it is written, with a hash of itself."""
    own = {**summary, "sha256": sha256(evidence.canonical(summary))}
    return orjson.dumps(own, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)


def _summary_of(files: Files) -> Line:
    said = _json(files, "summary", SUMMARY)
    said.pop("sha256", None)
    if not isinstance(said.get("files"), dict) or written(said) != files[SUMMARY]:
        raise EvidenceBroken("summary", SUMMARY, "is not as it was written")
    return said


def part_of(name: str) -> str | None:
    """Say what a file is a part of; None for one that no bundle has."""
    return next((part for part, pattern in PARTS if pattern.fullmatch(name)), None)


def _place(name: str) -> tuple[int, str]:
    return next((n for n, (_, pattern) in enumerate(PARTS) if pattern.fullmatch(name)), -1), name


def _meaning(files: Files) -> Line:
    """Follow what the files say of each other; answers what it comes to, as a summary says it."""
    document = sha256(_content(files, "document", DOCUMENT))
    first = _json(files, "event", EVENT.format(1))
    if first.get("documentSha256") != document:
        raise EvidenceBroken("document", DOCUMENT, "is not the page that the events are about")
    id = str(first.get("signatureId"))
    events = _chain(
        files,
        "event",
        EVENT,
        chain.first_of(id, document),
        lambda line: (line.get("signatureId"), line.get("documentSha256")) == (id, document),
    )
    hashes = [sha256(files[EVENT.format(n + 1)]) for n in range(len(events))]
    try:
        _of_consent(files, events)
        kind, (status, signers) = first["data"]["documentType"], _outcome(events)
    except (KeyError, TypeError, AttributeError):
        name = EVENT.format(len(events))
        raise EvidenceBroken("event", name, "does not say what happened") from None
    has_ledger = status == "SIGNED" or LEDGER_LINE.format(1) in files
    lines = _of_ledger(files, hashes[-1]) if has_ledger else []
    root = root_of(files, hashes)
    _of_pdf(files)
    return {
        "v": 1,
        "id": id,
        "dealId": lines[0].get("dealId") if lines else None,
        "documentType": kind,
        "status": status,
        "documentSha256": document,
        "auditHash": hashes[-1],
        "signers": signers,
        "root": root,
    }


def _content(files: Files, part: str, name: str) -> bytes:
    if name not in files:
        raise EvidenceBroken(part, name, "is missing")
    return files[name]


def _json(files: Files, part: str, name: str) -> Line:
    try:
        line = orjson.loads(_content(files, part, name))
    except orjson.JSONDecodeError:
        raise EvidenceBroken(part, name, "cannot be read") from None
    if not isinstance(line, dict):
        raise EvidenceBroken(part, name, "cannot be read")
    return line


def _chain(
    files: Files, part: str, form: str, first: str, fits: Callable[[Line], bool]
) -> list[Line]:
    """Read lines of which each names the hash of the one before."""
    lines: list[Line] = []
    before, count = first, sum(part_of(one) == part for one in files)
    for seq in range(1, max(count, 1) + 1):
        name = form.format(seq)
        line = _json(files, part, name)
        if (line.get("seq"), line.get("prevHash")) != (seq, before):
            after = form.format(seq - 1) if lines else "its beginning"
            raise EvidenceBroken(part, name, f"does not follow {after}")
        if not fits(line) or evidence.canonical(line) != files[name]:
            raise EvidenceBroken(part, name, "is not a line of this chain")
        lines.append(line)
        before = sha256(files[name])
    return lines


def _of_consent(files: Files, events: list[Line]) -> None:
    """Check that whoever signed consented to the text that is in the bundle."""
    agreed = {line["data"]["consentTextSha256"] for line in events if line["type"] == "signed"}
    if agreed and agreed != {sha256(_content(files, "consent", CONSENT))}:
        raise EvidenceBroken("consent", CONSENT, "is not what the signers consented to")


def _outcome(events: list[Line]) -> tuple[str, list[Line]]:
    """Say what the events come to: the status, and who signed for which party."""
    signers = [
        _signer(line["actor"]["role"], line["actor"]["userId"], line["data"], line["at"])
        for line in events
        if line["type"] == "signed"
    ]
    for line in events:
        if line["type"] == "completed":
            signers += [
                _signer(role, one["userId"], one, one["signedAt"])
                for role, one in line["data"]["signers"].items()
            ]
    signers.sort(key=lambda one: one["role"])
    by_two = len({one["role"] for one in signers}) > 1
    ended = events[-1]["type"]
    return STATUSES.get(ended) or ("SIGNED" if by_two else "VIEWED"), signers


def _signer(role: str, user_id: str, said: Line, at: str) -> Line:
    return {"role": role, "userId": user_id, "name": said["name"], "signedAt": at}


def _of_ledger(files: Files, head: str) -> list[Line]:
    """Follow the deal's ledger, as far as the line that names the last event of what was signed."""
    first = _json(files, "ledger", LEDGER_LINE.format(1))
    deal_id = str(first.get("dealId"))
    lines = _chain(
        files,
        "ledger",
        LEDGER_LINE,
        ledger.first_of(deal_id),
        lambda line: line.get("dealId") == deal_id,
    )
    if lines[-1].get("facts", {}).get("auditHash") != head:
        name = LEDGER_LINE.format(len(lines))
        raise EvidenceBroken("ledger", name, "does not name the last event")
    return lines


def root_of(files: Files, hashes: list[str]) -> Line | None:
    """Say under which day's root which event is; None while it is under none."""
    if not any(one in files for one in ROOT_FILES):
        return None
    way, statement, signature, pem = (_content(files, "root", one) for one in ROOT_FILES)
    try:
        key = load_pem_public_key(pem)
    except ValueError:
        raise EvidenceBroken("root", KEY, "is no key") from None
    if not isinstance(key, Ed25519PublicKey):
        raise EvidenceBroken("root", KEY, "is no Ed25519 key")
    try:
        key.verify(signature, statement)
    except InvalidSignature:
        why = f"is not what {STATEMENT_SIGNATURE} and {KEY} are of"
        raise EvidenceBroken("root", STATEMENT, why) from None
    said = _json(files, "root", STATEMENT)
    steps = [tuple(line.split(" ")) for line in way.decode("ascii", "replace").splitlines()]
    if any(len(step) != 2 or step[0] not in (LEFT, RIGHT) for step in steps):  # noqa: PLR2004 - side and hash
        raise EvidenceBroken("root", WAY, "cannot be read")
    for seq, head in enumerate(hashes, 1):
        if climbed(head, [(side, other) for side, other in steps]) == said.get("root"):
            return {"day": said.get("day"), "keyId": said.get("keyId"), "seq": seq}
    raise EvidenceBroken("root", WAY, "leads from no event to the root")


def _of_pdf(files: Files) -> None:
    """Check the seal under the PDF, and that the one beside it is the same."""
    if not any(one in files for one in PDF_FILES):
        return
    pdf, seal, certificate = (_content(files, "pdf", one) for one in PDF_FILES)
    if not is_intact(pdf, certificate.decode("ascii", "replace")):
        raise EvidenceBroken("pdf", PDF, f"does not bear the seal of {CERTIFICATE} over all of it")
    if place_of(pdf).seal != seal:
        raise EvidenceBroken("pdf", SEAL, f"is not the seal of {PDF}")


def require_published(files: Files, listed: bytes) -> None:
    """Hold a bundle against `/.well-known/esign-roots.json` as it was fetched. Raises EvidenceBroken.

    Whoever can write a whole bundle anew, with a key of their own, cannot write what others keep.
    """
    roots = _published(listed)
    if STATEMENT not in files:
        raise EvidenceBroken("root", STATEMENT, UNANCHORED)
    day = orjson.loads(files[STATEMENT]).get("day")
    known = next((one for one in roots if one["day"] == day), None)
    if known is None:
        raise EvidenceBroken("root", STATEMENT, f"is of {day}, which the list does not have")
    padding = "=" * (-len(known["signature"]) % 4)
    pairs = (
        (STATEMENT, known["statement"].encode()),
        (KEY, known["publicKey"].encode()),
        (STATEMENT_SIGNATURE, urlsafe_b64decode(known["signature"] + padding)),
    )
    for name, content in pairs:
        if files[name] != content:
            raise EvidenceBroken("root", name, f"is not what was published for {day}")


def _published(listed: bytes) -> list[Any]:
    """Read a list of roots, each of which names the one before."""
    try:
        roots = orjson.loads(listed)["items"]
        for one, before in pairwise(roots):
            previous = orjson.loads(one["statement"])["previous"]
            if previous != sha256(before["statement"].encode()):
                why = f"has a root of {one['day']} that does not follow {before['day']}"
                raise EvidenceBroken("root", "the list of roots", why)
        return list(roots)
    except (orjson.JSONDecodeError, KeyError, TypeError, NotBase64):
        raise EvidenceBroken("root", "the list of roots", "cannot be read") from None
