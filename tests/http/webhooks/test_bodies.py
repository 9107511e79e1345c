"""The body of a delivery as JSON."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tolsey.http.webhooks.payloads import DEEPEST, MalformedPayload, is_too_deep, parse


def nested(levels: int, opening: str = "[", closing: str = "]") -> bytes:
    """Make an object with so many levels in all."""
    return f'{{"a":{opening * (levels - 1)}1{closing * (levels - 1)}}}'.encode()


def depth(value: Any) -> int:
    children = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(depth, children), default=0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b"1",
        b"null",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'\xef\xbb\xbf{"a": 1}',
        b'{"a": "\\ud800"}',
        b'{"a": "\xed\xa0\x80"}',
        b'{"a": "\xff"}',
        '{"a": 1}'.encode("utf-16"),
        b'{"a": 1',
        b"[" * 100_000,
        nested(DEEPEST + 1),
        nested(1000),
        nested(2000),
        nested(DEEPEST + 1, '{"b":', "}"),
    ],
    ids=lambda body: repr(body[:20]),
)
def test_what_is_not_a_json_object_of_64_levels_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedPayload):
        parse(body)


def test_64_levels_are_read() -> None:
    assert parse(nested(DEEPEST)) == orjson.loads(nested(DEEPEST))


@pytest.mark.parametrize("levels", [DEEPEST, DEEPEST + 1])
def test_large_bodies_are_measured_too(levels: int) -> None:
    body = b'{"x":"' + b"[" * 100_000 + b'","y":' + nested(levels - 1) + b"}"

    assert is_too_deep(body, orjson.loads(body)) == (levels > DEEPEST)


@given(
    st.integers(1, 90),
    st.lists(st.sampled_from(["]", "[", "}", "{", '"', "\\", "\n" + " " * 140]), max_size=5),
)
def test_brackets_and_indents_inside_texts_change_nothing(levels: int, texts: list[str]) -> None:
    inner: Any = texts
    for at in range(levels):
        inner = {"k": inner, "t": texts} if at % 2 else [inner, *texts]
    body = orjson.dumps({"a": inner})
    parsed = orjson.loads(body)

    assert is_too_deep(body, parsed) == (depth(parsed) > DEEPEST)
