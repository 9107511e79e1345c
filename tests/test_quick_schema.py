"""The quick look at answers is sure of nothing that jsonschema refuses."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.quick_schema import Quick

CASES: Final[list[tuple[dict[str, Any], Any, Any]]] = [
    ({"type": "string"}, "a", 1),
    ({"type": "integer"}, 1, True),
    ({"type": "number"}, 1.5, "1"),
    ({"type": "boolean"}, False, 0),
    ({"type": "null"}, None, 0),
    ({"type": "array", "items": {"type": "integer"}}, [1, 2], [1, "2"]),
    ({"type": "array", "minItems": 1, "maxItems": 2}, [1], []),
    ({"type": "array", "maxItems": 2}, [1], [1, 2, 3]),
    ({"minLength": 1}, "a", ""),
    ({"maxLength": 1}, "a", "ab"),
    ({"minimum": 1}, 1, 0),
    ({"maximum": 1}, 1, 2),
    ({"exclusiveMinimum": 1}, 2, 1),
    ({"pattern": "^a"}, "ab", "ba"),
    ({"const": 1}, 1, True),
    ({"enum": ["a", "b"]}, "b", "c"),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, 1),
    ({"required": ["a"]}, {"a": 1}, {}),
    ({"properties": {"a": {"type": "string"}}}, {"a": "b"}, {"a": 1}),
    ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, {"b": 1}),
    ({"additionalProperties": {"type": "string"}}, {"a": "b"}, {"a": 1}),
    ({"$ref": "name"}, {"a": {"a": {}}}, {"a": {"a": 1}}),
    ({"format": "short"}, "a", "long"),
]
SCHEMAS: Final = {"name": {"type": "object", "additionalProperties": {"$ref": "name"}}}


@pytest.mark.parametrize(("schema", "right", "wrong"), CASES)
def test_what_fits_is_known_and_what_does_not_is_doubted(
    schema: dict[str, Any], right: Any, wrong: Any
) -> None:
    look = Quick(SCHEMAS, {"short": lambda value: len(value) < 3}).look(schema)
    assert look(right)
    assert not look(wrong)


def test_a_word_that_is_not_known_is_doubted() -> None:
    assert not Quick({}, {}).look({"oneOf": [{"type": "string"}, {"type": "null"}]})("a")


VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats(-2, 2) | st.sampled_from(["", "ab"]),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.sampled_from("ab"), one),
    max_leaves=5,
)


@given(
    st.sampled_from(
        [schema for schema, _, _ in CASES if schema.keys().isdisjoint({"$ref", "format"})]
    ),
    VALUES,
)
def test_nothing_is_sure_that_jsonschema_refuses(schema: dict[str, Any], value: Any) -> None:
    if Quick({}, {}).look(schema)(value):
        assert Draft202012Validator(schema).is_valid(value)
