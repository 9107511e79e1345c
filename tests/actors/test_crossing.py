"""What actors are asked and what they answer has to cross from process to process unharmed."""

import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest

import tolsey.service  # noqa: F401 - registers every message
from tolsey.actors import refusals
from tolsey.actors.store.connection.messages import ConnectionView, ReadConnection, Token, UseToken
from tolsey.runtime import errors
from tolsey.runtime.codec import decode_error, decode_reply, encode_error, encode_reply
from tolsey.runtime.messages import REGISTERED, Message

ASKED = sorted(
    (
        kind
        for kind in REGISTERED.values()
        if issubclass(kind, Message) and "tolsey." in kind.__module__
    ),
    key=lambda kind: str(kind.__qualname__),
)
AT = datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize("kind", ASKED, ids=lambda kind: str(kind.__name__))
def test_every_message_says_what_it_is_answered_with(kind: type[Message[Any]]) -> None:
    reply = next(base.__args__[0] for base in kind.__orig_bases__ if hasattr(base, "__args__"))  # type: ignore[attr-defined]  # every message is a generic's subclass
    assert reply is not Any
    if reply is type(None):
        assert decode_reply(kind, encode_reply(kind, None)) is None
    else:
        with pytest.raises(ValueError, match="validation error"):
            decode_reply(kind, '{"nobody": ["answers this"]}')


def test_a_token_crosses_whole() -> None:
    token = Token(
        store_id="store_1",
        shop_domain="a.example",
        access_token="v1.k1.sealed",
        expires_at=AT,
        scopes=("read_orders",),
    )
    assert decode_reply(UseToken, encode_reply(UseToken, token)) == token
    assert decode_reply(ReadConnection, encode_reply(ReadConnection, None)) is None
    assert {field.name for field in dataclasses.fields(ConnectionView)}


@pytest.mark.parametrize(
    "error",
    [
        refusals.NotFound(
            "This store doesn't exist, or you don't have access to it. Check the link or the id."
        ),
        refusals.Refusal("No.", status=418, code="teapot", retryAfter=3),
        refusals.InvalidTransition("Not from here.", ["live", "paused"]),
        refusals.MissingCredential("CRON_SECRET"),
        refusals.Unavailable("The shop is away.", retryAfter=5),
        errors.Overloaded("the mailbox", 2.5),
        errors.ShardUnavailable("cut off", outcome="unknown"),
        errors.NotOwner(),
        errors.Stopping(),
        errors.Duplicate("Deposit"),
        errors.TurnFailed("Add", "ZeroDivisionError"),
        errors.DeadlineExceeded("no answer in time"),
        errors.Cycle([("store", "a"), ("store", "b")]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_crosses_as_what_it_is(error: Exception) -> None:
    crossed = decode_error(encode_error(error))
    assert type(crossed) is type(error)
    assert str(crossed) == str(error)
    expected = {name: _plain(value) for name, value in vars(error).items()}
    assert {name: _plain(value) for name, value in vars(crossed).items()} == expected


def test_what_is_no_answer_of_ours_says_only_its_kind() -> None:
    crossed = decode_error(encode_error(KeyError("shpss_secret")))
    assert isinstance(crossed, errors.ShardUnavailable)
    assert "secret" not in str(crossed)
    unknown = decode_error({"name": "someone:Else", "args": [], "fields": {}})
    assert isinstance(unknown, errors.ShardUnavailable)
    assert unknown.outcome == "unknown"


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
