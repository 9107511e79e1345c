"""What is remembered of a store: facts and messages, and the embeddings that are made of them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from tolsey.storage.owners import (
    EVIDENCE_OF_USER,
    OF_ORGANIZATION,
    OF_STORE,
    Belongs,
    RowOwner,
)
from tolsey.storage.tables import Age, Jsonb, Personal, Vector, bare, stored

REPLACED: Final = ("source", "user_id", "updated_at", "deleted_at")
FORGOTTEN_KEPT: Final = "1 day"
"""So long the id of what was deleted is known: a correction on its way brings nothing back."""


class MemorySource(StrEnum):
    """Who wrote something that is remembered."""

    MERCHANT = "merchant"
    LAUNCH = "launch"
    AGENT = "agent"


@stored(
    "facts",
    key=("id",),
    newest=("deleted_at", "updated_at"),
    replaces=("name", "value", *REPLACED),
    when="facts.deleted_at IS NULL",
    retention=Age(column="deleted_at", interval=FORGOTTEN_KEPT),
    swept="memoryFacts",
    export="facts",
    belongs=(OF_ORGANIZATION, OF_STORE, EVIDENCE_OF_USER),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFact:
    """Something known of a store, or of all stores of an organization; `value` is JSON text.

    One that was deleted keeps its id and nothing else: its name is its id, so that the name is free.
    """

    id: str
    organization_id: str
    store_id: str | None
    name: str
    value: Annotated[str, Jsonb, Personal.FREE_TEXT]
    source: MemorySource
    user_id: Annotated[str | None, Personal.USER]
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None = None


@stored(
    "messages",
    key=("id",),
    newest=("deleted_at", "updated_at"),
    replaces=("text", *REPLACED),
    when="messages.deleted_at IS NULL",
    retention=Age(column="deleted_at", interval=FORGOTTEN_KEPT),
    swept="memoryMessages",
    export="messages",
    belongs=(OF_ORGANIZATION, OF_STORE, EVIDENCE_OF_USER),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class StoreMessage:
    """Something that was said and is remembered; one that was deleted keeps its id and no text."""

    id: str
    organization_id: str
    store_id: str | None
    role: str
    text: Annotated[str, Personal.FREE_TEXT]
    source: MemorySource
    user_id: Annotated[str | None, Personal.USER]
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None = None


VECTORS: Final = bare(
    "vectors",
    {
        "namespace": str,
        "id": str,
        "embedding": Annotated[str, Vector],
        "text": Annotated[str | None, Personal.FREE_TEXT],
        "metadata": Annotated[str, Jsonb],
        "model": str | None,
        "digest": str | None,
    },
    key=("namespace", "id"),
    belongs=Belongs(
        to=RowOwner.STORE, by="namespace IN ($1, 'messages:' || $1, 'facts:store:' || $1)"
    ),
    export="vectors",
)
"""Embeddings by namespace: `model` made each of the text whose md5 is `digest`."""
