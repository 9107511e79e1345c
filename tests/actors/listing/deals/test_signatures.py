"""Signatures: the published vector, and that no byte of a chain changes unseen."""

import itertools
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.cases import golden
from tolsey.actors.listing import evidence
from tolsey.actors.listing.deals.signatures import chain, signing
from tolsey.actors.refusals import InvalidTransition
from tolsey.storage.records.selling.deals import (
    DealStage,
    LegalSignature,
    SignatureEvent,
    SignatureStatus,
)

VECTOR: dict[str, Any] = golden("esign_vector.json")
DOCUMENT = evidence.sha256(bytes.fromhex(VECTOR["documentHex"]))
ID = VECTOR["events"][0]["signatureId"]
EVENTS = {"requested": "request", "viewed": "view", "signed": "sign"}


def asked() -> LegalSignature:
    return LegalSignature(
        id=ID,
        deal_id="deal_1",
        document_type="NDA",
        provider="PLATFORM",
        status=SignatureStatus.PENDING,
        hosted_url=None,
        template_version="nda-2026-01",
        document_sha256=DOCUMENT,
        audit_hash=chain.first_of(ID, DOCUMENT),
        requested_by="usr_seller",
        requested_at=datetime.fromisoformat(VECTOR["events"][0]["at"]),
        expires_at=datetime.fromisoformat(VECTOR["events"][0]["data"]["expiresAt"]),
    )


def chained() -> tuple[LegalSignature, list[SignatureEvent]]:
    signature, lines = asked(), []
    for event in VECTOR["events"]:
        signature, line = chain.happened(
            signature,
            EVENTS[event["type"]],
            at=datetime.fromisoformat(event["at"]),
            by=event["actor"]["userId"],
            role=event["actor"]["role"],
            data=event["data"],
        )
        lines.append(line)
    return signature, lines


def test_a_chain_is_the_published_one_to_the_last_hash() -> None:
    signature, lines = chained()

    assert chain.first_of(ID, DOCUMENT) == VECTOR["genesis"]
    assert [line.hash for line in lines] == [event["hash"] for event in VECTOR["events"]]
    assert signature.audit_hash == VECTOR["auditHash"]
    written = [
        {name: value for name, value in event.items() if name != "hash"}
        for event in VECTOR["events"]
    ]
    assert [orjson.loads(line.body) for line in lines] == written
    consent = evidence.sha256(chain.CONSENT.encode())
    assert consent == VECTOR["events"][2]["data"]["consentTextSha256"]
    assert chain.broken_at(signature, lines) is None


@given(st.integers(0, 2), st.integers(0, 10_000), st.integers(1, 255))
def test_whatever_byte_of_a_line_is_changed_the_line_is_named(n: int, at: int, by: int) -> None:
    signature, lines = chained()
    body = bytearray(lines[n].body.encode())
    body[at % len(body)] ^= by
    changed = replace(lines[n], body=body.decode(errors="replace"))

    assert chain.broken_at(signature, [*lines[:n], changed, *lines[n + 1 :]]) == n + 1


def test_a_line_that_is_cut_off_moved_or_hashed_anew_is_named() -> None:
    signature, lines = chained()
    forged = lines[1].body.replace("203.0.113.7", "203.0.113.8")
    anew = replace(lines[1], body=forged, hash=evidence.sha256(forged.encode()))

    assert chain.broken_at(signature, lines[:2]) == 3
    assert chain.broken_at(signature, [lines[0], lines[2]]) == 2
    assert chain.broken_at(signature, [lines[1], lines[0], lines[2]]) == 1
    assert chain.broken_at(signature, [lines[0], anew, lines[2]]) == 3


def test_a_signature_makes_no_move_that_its_machine_does_not_have() -> None:
    signature, _ = chained()
    ended, _ = chain.happened(
        signature, "decline", at=signature.requested_at, by="u", role="buyer", data={}
    )

    for event in ("sign", "view", "request", "decline", "void"):
        with pytest.raises(LookupError):
            chain.happened(ended, event, at=signature.requested_at, by="u", role="buyer", data={})


def test_a_document_is_requested_at_its_stages_alone() -> None:
    requested, allowed = set(), set()
    for stage, kind in itertools.product(DealStage, chain.SIGNED_BY_ALL):
        try:
            signing.require_stage(stage, kind, ["withdraw"])
            requested.add((kind, stage))
        except InvalidTransition as refused:
            allowed.add(tuple(refused.fields["allowed"]))

    assert requested == {
        ("NDA", "NDA_PENDING"),
        ("LOI", "UNDER_OFFER"),
        ("APA", "UNDER_OFFER"),
        ("APA", "DUE_DILIGENCE"),
    }
    assert allowed == {("withdraw",)}
