"""What a store remembers, as its members see it."""

from typing import Any, Literal, Self

import orjson

from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.storage.records.memory import MemorySource, StoreFact


class FactAnswer(ApiAnswer):
    """A fact; `value` is text, or JSON in a text where a launch told a value of another kind."""

    id: str
    key: str
    value: str
    source: MemorySource
    created_at: Timestamp
    updated_at: Timestamp

    @classmethod
    def of(cls, fact: StoreFact) -> Self:
        """Show a fact."""
        return cls.read(fact, key=fact.name, value=value_of(fact))


class MessageAnswer(ApiAnswer):
    """What was said, and by which side of a conversation."""

    id: str
    role: str
    text: str
    source: MemorySource
    created_at: Timestamp
    updated_at: Timestamp


class RememberedAnswer(ApiAnswer):
    """Something that was found: a fact has a `key`. `by` says what found it."""

    kind: Literal["fact", "message", "passage"]
    id: str
    key: str | None
    text: str
    source: MemorySource | None
    by: Literal["words", "meaning", "both"]


class RememberedList(ApiAnswer):
    """What was found, the best first."""

    items: list[RememberedAnswer]


class VectorsAnswer(ApiAnswer):
    """How much of a store's memory has an embedding of the model in use; null where none is set."""

    model: str | None
    embedded: int
    waiting: int
    total: int


def value_of(fact: StoreFact) -> str:
    """Read a fact's value as text."""
    value: Any = orjson.loads(fact.value)
    return value if isinstance(value, str) else fact.value
