"""The proof of a call from our queue: what counts, and that nothing else does."""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from tolsey.http.web.callers.queue_proof import LONGEST, proven

NOW = datetime(2026, 7, 1, tzinfo=UTC)
AT = int(NOW.timestamp())
KEY, BODY = "a key of the queue", b'{"id":1}'
HEAD = {"alg": "HS256", "typ": "JWT"}


def encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def claims(**changed: Any) -> dict[str, Any]:
    made = {"jti": "one", "iat": AT, "body": encoded(hashlib.sha256(BODY).digest()), **changed}
    return {name: value for name, value in made.items() if value is not ...}


def token(said: Any, head: Any = HEAD, key: str = KEY) -> str:
    text = f"{encoded(orjson.dumps(head))}.{encoded(orjson.dumps(said))}"
    return f"{text}.{encoded(hmac.digest(key.encode(), text.encode(), 'sha256'))}"


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"iat": AT - 300},
        {"iat": AT + 60},
        {"exp": AT},
        {"exp": AT + 1},
        {"nbf": AT + 60},
        {"nbf": AT - 1, "exp": AT + 9},
        {"sub": "https://shop.example/internal/scan"},
    ],
)
def test_what_the_queue_signed_for_this_body_counts(changed: dict[str, Any]) -> None:
    said = claims(**changed)
    assert proven(token(said), BODY, KEY, NOW) == said


@pytest.mark.parametrize(
    "changed",
    [
        {"iat": AT - 301},
        {"iat": AT + 61},
        {"iat": str(AT)},
        {"iat": None},
        {"iat": ...},
        {"exp": AT - 1},
        {"exp": str(AT + 9)},
        {"nbf": AT + 61},
        {"nbf": str(AT)},
        {"jti": 1},
        {"jti": ...},
        {"body": encoded(hashlib.sha256(b"another").digest())},
        {"body": ...},
        {"body": 7},
        {"body": "é"},
    ],
)
def test_what_is_late_or_early_or_of_another_body_does_not(changed: dict[str, Any]) -> None:
    assert proven(token(claims(**changed)), BODY, KEY, NOW) is None


def test_another_algorithm_key_or_shape_does_not() -> None:
    whole = token(claims())
    first, second, third = whole.split(".")
    for sent in (
        "",
        f"{first}.{second}",
        f"{first}.{second}.",
        f"{whole}.{third}",
        f"{first}.{second}.é",
        f"{first}.{second}.{third[:-2]}",
        token(claims(), {"alg": "none"}),
        token(claims(), {"alg": "HS512"}),
        token(claims(), {}),
        token(claims(), []),
        token([]),
        token(claims(), key="another"),
    ):
        assert proven(sent, BODY, KEY, NOW) is None, sent
    assert proven(whole, BODY, "another", NOW) is None
    assert proven(whole, b"another", KEY, NOW) is None


def test_a_token_that_is_too_long_is_not_read() -> None:
    def padded(characters: int) -> str:
        said = claims(pad="")
        short = len(token(said))
        return token(claims(pad="a" * ((characters - short) * 3 // 4)))

    longest = max((padded(size) for size in range(LONGEST - 6, LONGEST + 1)), key=len)
    assert len(longest) == LONGEST
    assert proven(longest, BODY, KEY, NOW) is not None
    longer = next(
        made for size in range(LONGEST, LONGEST + 9) if len(made := padded(size)) > LONGEST
    )
    assert proven(longer, BODY, KEY, NOW) is None
