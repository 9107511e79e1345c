"""Signatures of the raw body."""

import json

import pytest

from tests.golden.cases import BESIDE
from tolsey.http.webhooks.headers import digest_of
from tolsey.http.webhooks.signatures import is_signed, sign

COMMERCE = BESIDE / "commerce"
VECTORS = COMMERCE / "signed_vectors.json"
BODY = b'{"id": 1}'


def digest(secret: str, body: bytes = BODY) -> bytes | None:
    return digest_of(sign(body, secret).encode())


@pytest.mark.skipif(not VECTORS.is_file(), reason="the shared data are not here")
def test_every_published_vector_is_signed_and_not_one_byte_less() -> None:
    given = json.loads(VECTORS.read_text())
    secret = given["secret"].encode()
    assert given["vectors"]
    for vector in given["vectors"]:
        body = (COMMERCE / vector["file"].removeprefix("given/")).read_bytes()
        claimed = digest_of(vector["hmac"].encode())
        assert is_signed(body, claimed, [b"another", secret]), vector["file"]
        assert not is_signed(body[:-1], claimed, [secret]), vector["file"]


def test_any_of_a_shops_secrets_may_sign() -> None:
    assert is_signed(BODY, digest("old"), [b"new", b"old"])
    assert not is_signed(BODY, digest("other"), [b"new", b"old"])


def test_an_empty_secret_signs_nothing() -> None:
    assert not is_signed(BODY, digest(""), [b""])
    assert not is_signed(BODY, digest("x"), [])


def test_the_key_of_the_dummy_signs_nothing() -> None:
    assert not is_signed(BODY, digest("\0" * 32), [])


def test_an_absent_signature_signs_nothing() -> None:
    assert not is_signed(BODY, None, [b"secret"])
