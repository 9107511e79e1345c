import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tolsey.http.web.json import MalformedJson, parse

NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.integers(2**63 - 3, 2**63 + 3).map(str),
    st.tuples(
        st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?", fullmatch=True),
        st.from_regex(r"[eE][+-]?0{0,2}[0-9]{1,3}", fullmatch=True),
    ).map("".join),
)
TEXTS = st.one_of(st.text(max_size=8), st.sampled_from(["\x00", "a\x00b", "\\u0000", "1e999"]))
VALUES: st.SearchStrategy[str] = st.recursive(
    st.one_of(NUMBERS, TEXTS.map(json.dumps), st.sampled_from(["null", "true"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"[{','.join(items)}]"),
        st.dictionaries(TEXTS.map(json.dumps), inner, max_size=3).map(
            lambda items: "{" + ",".join(f"{name}:{value}" for name, value in items.items()) + "}"
        ),
    ),
    max_leaves=12,
)


def outcome(body: bytes | str) -> Any:
    """Read a body; what is refused has no value."""
    try:
        return parse(body)
    except MalformedJson:
        return MalformedJson


@given(VALUES)
def test_what_bytes_alone_let_pass_is_what_a_look_at_every_value_lets_pass(text: str) -> None:
    # Only bytes take the short way; a text is walked through.
    assert repr(outcome(text.encode())) == repr(outcome(text))


@pytest.mark.parametrize("levels", [64, 65])
def test_brackets_inside_texts_are_no_levels(levels: int) -> None:
    value = ["[{" * levels]
    assert parse(json.dumps(value).encode()) == value
