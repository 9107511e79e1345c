"""Remembering and forgetting, on an agent's word: what a person of the shop told stays as it is."""

from typing import Annotated, Any, ClassVar, Final

import orjson
from pydantic import Field, model_validator

from tolsey.actors.refusals import NotFound
from tolsey.actors.store.memory.messages import (
    CorrectMessage,
    FactKept,
    ForgetFact,
    ForgetMessage,
    KeepFact,
    KeepMessage,
)
from tolsey.actors.store.memory.remembering import OUTRANKS, refusal_of
from tolsey.actors.store.messages import store
from tolsey.http.answers.stores.memory import value_of
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.writes.contract import WORDED, WriteArguments
from tolsey.http.mcp.tools.writes.recorded import Effected, RecordedWrite
from tolsey.http.memory.routes import KEY, MESSAGE_CHARACTERS, VALUE_CHARACTERS
from tolsey.runtime.messages import Message
from tolsey.storage.chat import memory
from tolsey.storage.records.memory import MemorySource, StoreFact, StoreMessage

SCOPE: Final = "memory:write"
BY_AGENTS: Final = MemorySource.AGENT


class MemoryWrite(WriteArguments):
    """A fact, or what was said."""

    key: Annotated[
        Annotated[str, Field(pattern=KEY)] | None,
        Field(description="Of a fact, such as brand.voice; none for something that was said."),
    ] = None
    id: Annotated[
        Annotated[str, Field(max_length=128)] | None,
        Field(description="Of what was said before, to correct it."),
    ] = None
    text: Annotated[
        Annotated[str, Field(min_length=1, max_length=MESSAGE_CHARACTERS), WORDED],
        Field(description=f"What is so, {VALUE_CHARACTERS} characters at most; or what was said."),
    ]

    @model_validator(mode="after")
    def _one_thing(self) -> "MemoryWrite":
        if self.key is not None and self.id is not None:
            raise ValueError("send key or id, not both")
        if self.key is not None and len(self.text) > VALUE_CHARACTERS:
            raise ValueError(f"must have at most {VALUE_CHARACTERS} characters")
        return self


class MemoryDeletion(WriteArguments):
    """What is to be forgotten."""

    id: Annotated[str, Field(max_length=128, description="Of what search_memory found.")]


class SaveMemory(RecordedWrite[MemoryWrite]):
    """Remembers a fact or what was said."""

    name: ClassVar[str] = "save_memory"
    title: ClassVar[str] = "Remember something"
    description: ClassVar[str] = (
        "Remembers a fact by its key, or something that was said; corrects what agents told."
        " What people told stays."
    )
    scope: ClassVar[str] = SCOPE
    arguments: ClassVar[type[WriteArguments]] = MemoryWrite

    def subject(self, given: MemoryWrite) -> str:
        """Name what it is about."""
        return f"memory:{given.key or given.id or 'message'}"

    async def plan(self, principal: Principal, given: MemoryWrite) -> Effected:
        """Say what would be remembered, and in place of what."""
        found = await self._known(principal, given)
        return Effected(_shown(found), {**_named(given), "text": given.text})

    async def carry_out(
        self, principal: Principal, given: MemoryWrite, operation_id: str
    ) -> Effected:
        """Remember it: the same key of the call makes the same id."""
        before = await self._known(principal, given)
        wish: Message[FactKept] | Message[StoreMessage] = self._wish(principal, given, operation_id)
        told: Any = await self._service.runtime.ask(store(principal.store_id), wish)
        after = told.fact if isinstance(told, FactKept) else told
        return Effected(_shown(before), _shown(after))

    def _wish(
        self, principal: Principal, given: MemoryWrite, operation_id: str
    ) -> KeepFact | KeepMessage | CorrectMessage:
        user_id, at = principal.user_id, self._service.clock()
        own = operation_id.removeprefix("op_")
        if given.key is not None:
            return KeepFact(
                fact_id=f"fact_{own}",
                key=given.key,
                value=orjson.dumps(given.text).decode(),
                source=BY_AGENTS,
                user_id=user_id,
                at=at,
            )
        if given.id is not None:
            return CorrectMessage(
                message_id=given.id, text=given.text, source=BY_AGENTS, user_id=user_id, at=at
            )
        return KeepMessage(
            message_id=f"msg_{own}",
            role="assistant",
            text=given.text,
            source=BY_AGENTS,
            user_id=user_id,
            at=at,
        )

    async def _known(
        self, principal: Principal, given: MemoryWrite
    ) -> StoreFact | StoreMessage | None:
        """Read what it is written over, which must be an agent's."""
        database, store_id = self._service.database, principal.store_id
        found: StoreFact | StoreMessage | None = None
        if given.key is not None:
            found = await memory.fact(database, store_id, given.key)
        elif given.id is not None:
            found = await memory.message(database, store_id, given.id)
            if found is None:
                raise NotFound(
                    "This message doesn't exist, or you don't have access to it. Check its id."
                )
        _require_agents(found)
        return found


class DeleteMemory(RecordedWrite[MemoryDeletion]):
    """Forgets what agents told."""

    name: ClassVar[str] = "delete_memory"
    title: ClassVar[str] = "Forget something"
    description: ClassVar[str] = "Forgets a fact or message that an agent told, by its id."
    scope: ClassVar[str] = SCOPE
    arguments: ClassVar[type[WriteArguments]] = MemoryDeletion
    is_destructive: ClassVar[bool] = True

    def subject(self, given: MemoryDeletion) -> str:
        """Name what it is about."""
        return f"memory:{given.id}"

    async def plan(self, principal: Principal, given: MemoryDeletion) -> Effected:
        """Say what would be forgotten."""
        return Effected(_shown(await self._found(principal, given)), {})

    async def carry_out(
        self, principal: Principal, given: MemoryDeletion, operation_id: str
    ) -> Effected:
        """Forget it."""
        del operation_id
        found = await self._found(principal, given)
        user_id, at = principal.user_id, self._service.clock()
        wish: Message[Any] = (
            ForgetFact(key=found.name, source=BY_AGENTS, user_id=user_id, at=at)
            if isinstance(found, StoreFact)
            else ForgetMessage(message_id=found.id, source=BY_AGENTS, user_id=user_id, at=at)
        )
        await self._service.runtime.ask(store(principal.store_id), wish)
        return Effected({"id": found.id}, {})

    async def _found(self, principal: Principal, given: MemoryDeletion) -> StoreFact | StoreMessage:
        database, store_id = self._service.database, principal.store_id
        found = await memory.fact(database, store_id, given.id) or await memory.message(
            database, store_id, given.id
        )
        if found is None:
            raise NotFound("No memory entry has this id. Use search_memory to find the id.")
        _require_agents(found)
        return found


def _require_agents(found: StoreFact | StoreMessage | None) -> None:
    """Refuse before the plan what the store would refuse then."""
    if found is not None and found.source in OUTRANKS[BY_AGENTS]:
        raise refusal_of(found.source, BY_AGENTS)


def _named(given: MemoryWrite) -> dict[str, Any]:
    return {name: one for name in ("key", "id") if (one := getattr(given, name)) is not None}


def _shown(found: StoreFact | StoreMessage | None) -> dict[str, Any]:
    """Show what is remembered; nothing where it is not."""
    if found is None:
        return {}
    if isinstance(found, StoreFact):
        return {"id": found.id, "key": found.name, "text": value_of(found)}
    return {"id": found.id, "text": found.text}
