"""Decisions about what is remembered of a store (rules/shops#memory)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from tolsey.actors.refusals import Conflict, NotFound
from tolsey.actors.store.memory.messages import (
    CorrectMessage,
    EmbedMemory,
    EmbedRest,
    FactKept,
    ForgetFact,
    ForgetMemory,
    ForgetMessage,
    KeepFact,
    KeepMessage,
    MemoryEmbedded,
)
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Perform
from tolsey.storage.records.memory import MemorySource, StoreFact, StoreMessage

MOST_FACTS: Final = 500
MOST_MESSAGES: Final = 1_000
"""Of a store, so that all of it can be looked through."""
EMBEDDING_TAKES: Final = timedelta(minutes=10)
"""A batch that was not heard of for so long is begun anew."""
OUTRANKS: Final[Mapping[MemorySource, frozenset[MemorySource]]] = {
    MemorySource.MERCHANT: frozenset(),
    MemorySource.LAUNCH: frozenset({MemorySource.MERCHANT}),
    MemorySource.AGENT: frozenset({MemorySource.MERCHANT, MemorySource.LAUNCH}),
}
"""Whose words each may not write over (rules/shops#memory)."""

Facts = Mapping[str, StoreFact]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownMessage:
    """What is on disk of a message, and how many the store has."""

    message: StoreMessage | None
    count: int


def keep_fact(state: StoreState, message: KeepFact, facts: Facts) -> Decision[StoreState, FactKept]:
    """Remember a fact, in the place of what was known under its key."""
    before = facts.get(message.key)
    if before is not None:
        _require_own(before.source, message.source)
        made = replace(
            before,
            value=message.value,
            source=message.source,
            user_id=message.user_id,
            updated_at=message.at,
        )
    else:
        _require_room(len(facts), MOST_FACTS, "facts")
        made = StoreFact(
            id=message.fact_id,
            organization_id=_organization_of(state),
            store_id=state.store_id,
            name=message.key,
            value=message.value,
            source=message.source,
            user_id=message.user_id,
            created_at=message.at,
            updated_at=message.at,
        )
    after = replace(state, facts={**facts, made.name: made})
    return Decision(after, reply=FactKept(fact=made, before=before), records=(made,))


def forget_fact(
    state: StoreState, message: ForgetFact, facts: Facts
) -> Decision[StoreState, StoreFact]:
    """Forget a fact."""
    known = facts.get(message.key)
    if known is None:
        raise NotFound(
            "This memory entry doesn't exist, or you don't have access to it. Check its id."
        )
    _require_own(known.source, message.source)
    left = {name: one for name, one in facts.items() if name != message.key}
    gone = _forgotten_fact(known, message.at)
    return Decision(replace(state, facts=left), reply=known, records=(gone,))


def keep_message(
    state: StoreState, message: KeepMessage, known: KnownMessage
) -> Decision[StoreState, StoreMessage]:
    """Remember what was said."""
    if known.message is not None:
        return Decision(state, reply=known.message)
    _require_room(known.count, MOST_MESSAGES, "messages")
    made = StoreMessage(
        id=message.message_id,
        organization_id=_organization_of(state),
        store_id=state.store_id,
        role=message.role,
        text=message.text,
        source=message.source,
        user_id=message.user_id,
        created_at=message.at,
        updated_at=message.at,
    )
    return Decision(state, reply=made, records=(made,))


def correct_message(
    state: StoreState, message: CorrectMessage, known: KnownMessage
) -> Decision[StoreState, StoreMessage]:
    """Remember what was said in other words."""
    before = _found(known)
    _require_own(before.source, message.source)
    made = replace(
        before,
        text=message.text,
        source=message.source,
        user_id=message.user_id,
        updated_at=message.at,
    )
    return Decision(state, reply=made, records=(made,))


def forget_message(
    state: StoreState, message: ForgetMessage, known: KnownMessage
) -> Decision[StoreState, StoreMessage]:
    """Forget what was said."""
    before = _found(known)
    _require_own(before.source, message.source)
    return Decision(state, reply=before, records=(_forgotten_message(before, message.at),))


def forget_all(
    state: StoreState, message: ForgetMemory, kept: tuple[Facts, Sequence[StoreMessage]]
) -> Decision[StoreState, int]:
    """Forget everything, whoever told it: the store is being deleted, or its shop wants it erased."""
    facts, said = kept
    records = (
        *(_forgotten_fact(one, message.at) for one in facts.values()),
        *(_forgotten_message(one, message.at) for one in said),
    )
    return Decision(replace(state, facts={}), reply=len(records), records=records)


def embed_rest(state: StoreState, message: EmbedRest) -> Decision[StoreState, bool]:
    """Have the rest of the memory embedded, unless that goes on already."""
    since = state.embedding_since
    if since is not None and message.at - since < EMBEDDING_TAKES:
        return Decision(state, reply=False)
    call, after = _embedding(state, message.at)
    return Decision(after, reply=True, effects=(call,))


def embedded(state: StoreState, message: MemoryEmbedded) -> Decision[StoreState, None]:
    """Go on with the next batch, or end."""
    if not message.left:
        return Decision(replace(state, embedding_since=None), reply=None)
    call, after = _embedding(state, message.at)
    return Decision(after, reply=None, effects=(call,))


def _embedding(state: StoreState, at: datetime) -> tuple[Perform, StoreState]:
    call = EmbedMemory(store_id=state.store_id, organization_id=_organization_of(state))
    # One key a batch: the next begins in the very commit that ends the one before.
    perform = Perform(call, key=f"embed:{state.store_id}:{at.isoformat()}")
    return perform, replace(state, embedding_since=at)


def _organization_of(state: StoreState) -> str:
    if state.organization_id is None:
        raise NotFound(
            "This store doesn't exist, or you don't have access to it. Check the link or the id."
        )
    return state.organization_id


def _found(known: KnownMessage) -> StoreMessage:
    if known.message is None:
        raise NotFound("This message doesn't exist, or you don't have access to it. Check its id.")
    return known.message


def _require_own(told_by: MemorySource, source: MemorySource) -> None:
    # An agent never writes over what a merchant or the launch told (rules/shops#memory).
    if told_by in OUTRANKS[source]:
        raise refusal_of(told_by, source)


def refusal_of(told_by: MemorySource, source: MemorySource) -> Conflict:
    """Say that somebody may not write over what somebody else told."""
    return Conflict(
        f"This memory entry was written by the {told_by}, so the {source} can't change it. Ask a store admin to change it.",
        code="written_by_merchant",
        source=str(told_by),
    )


def _require_room(count: int, most: int, what: str) -> None:
    if count >= most:
        raise Conflict(
            f"The store's memory is full: it holds {most} {what}. Delete some first.",
            code="memory_full",
            limit=most,
        )


def _forgotten_fact(fact: StoreFact, at: datetime) -> StoreFact:
    return replace(fact, name=fact.id, value="null", user_id=None, updated_at=at, deleted_at=at)


def _forgotten_message(message: StoreMessage, at: datetime) -> StoreMessage:
    return replace(message, text="", user_id=None, updated_at=at, deleted_at=at)
