"""Signatures of the payment processor's events."""

import hashlib
import json
from typing import Any

import pytest

from tests.golden.cases import HERE, golden
from tolsey.http.webhooks.payments.signatures import sign, verify
from tolsey.http.webhooks.signatures import Forged, Stale, secrets_of

BODY = b'{"id": "evt_1"}'
NOW = 1_793_600_000
PLATFORM, CONNECT = b"whsec_platform", b"whsec_connect"


def body_of(vector: dict[str, Any]) -> bytes:
    """Give the bytes that a vector is about; where it names a changed file, some change of it."""
    written: str = vector["body"]
    if not written.startswith("@"):
        return written.encode()
    body = (HERE / "payments" / written[1:]).read_bytes()
    if hashlib.sha256(body).hexdigest() == vector["body_sha256"]:
        return body
    changed = {
        "tampered body": body.replace(b"7900", b"7901", 1),
        "re-serialised body": json.dumps(json.loads(body)).encode(),
    }
    return changed[vector["name"]]


@pytest.mark.parametrize(
    "vector", golden("payments/signature-vectors.json"), ids=lambda vector: vector["name"]
)
def test_every_published_vector_has_its_verdict(vector: dict[str, Any]) -> None:
    assert vector["tolerance"] == 300
    secrets = [secret.encode() for secret in vector["secrets"]]
    given = (body_of(vector), vector["header"].encode(), secrets, vector["now"])
    if vector["accept"]:
        verify(*given)
    else:
        with pytest.raises((Forged, Stale)):
            verify(*given)


def test_the_processors_own_package_signs_as_we_verify() -> None:
    from stripe import WebhookSignature  # noqa: PLC0415 - one second to import

    header = WebhookSignature.generate_signature_header(BODY.decode(), CONNECT.decode(), NOW)
    verify(BODY, header.encode(), [PLATFORM, CONNECT], NOW)
    assert header.encode() == sign(BODY, CONNECT, NOW)


def test_any_secret_and_any_signature_may_match() -> None:
    rolled = sign(BODY, PLATFORM, NOW) + b",v1=" + sign(BODY, CONNECT, NOW).split(b"v1=")[1]
    for secrets in ([PLATFORM], [CONNECT], [b"whsec_new", CONNECT]):
        verify(BODY, rolled, secrets, NOW)


@pytest.mark.parametrize("seconds", [-301, 301, -86_400, 86_400])
def test_what_was_signed_at_another_time_is_stale(seconds: int) -> None:
    with pytest.raises(Stale):
        verify(BODY, sign(BODY, PLATFORM, NOW + seconds), [PLATFORM], NOW)


@pytest.mark.parametrize("seconds", [-300, 0, 300])
def test_300_seconds_either_way_are_tolerated(seconds: int) -> None:
    verify(BODY, sign(BODY, PLATFORM, NOW + seconds), [PLATFORM], NOW)


@pytest.mark.parametrize("at", range(len(BODY)))
def test_one_changed_byte_is_forged(at: int) -> None:
    changed = bytearray(BODY)
    changed[at] ^= 1
    with pytest.raises(Forged):
        verify(bytes(changed), sign(BODY, PLATFORM, NOW), [PLATFORM], NOW)


@pytest.mark.parametrize("secrets", [[], [b""], [b"whsec_other"], [b"", b"whsec_other"]])
def test_no_other_secret_and_no_empty_one_signs(secrets: list[bytes]) -> None:
    for signer in (PLATFORM, b""):
        with pytest.raises(Forged):
            verify(BODY, sign(BODY, signer, NOW), secrets, NOW)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"t=1",
        b"v1=",
        b"t=,v1=00",
        b"t=-1,v1=00",
        b"t=1_0,v1=00",
        b"t=" + b"9" * 5000 + b",v1=00",
        "t=\u0661,v1=00".encode(),
        b"\xff\xfe",
        b"=,=,=",
        b"t=1,t=2,v1=00",
        b"T=1,V1=00",
    ],
)
def test_a_header_that_claims_nothing_is_forged(header: bytes) -> None:
    with pytest.raises(Forged):
        verify(BODY, header, [PLATFORM], NOW)


def test_a_second_time_cannot_make_an_old_signature_new() -> None:
    old = sign(BODY, PLATFORM, NOW - 9_999)
    with pytest.raises(Forged):
        verify(BODY, old + b",t=%d" % NOW, [PLATFORM], NOW)


def test_a_setting_may_hold_several_secrets_and_empty_ones_are_none() -> None:
    assert secrets_of("whsec_a, whsec_b,,whsec_c ") == (b"whsec_a", b"whsec_b", b"whsec_c")
    assert secrets_of(None) == secrets_of("") == secrets_of(" , ,") == ()
