"""What is remembered of a store: read when it is first asked for, and written by its turns."""

from collections.abc import Sequence
from typing import ClassVar

from tolsey.actors.store.memory import remembering
from tolsey.actors.store.memory.messages import (
    CorrectMessage,
    EmbedRest,
    ForgetFact,
    ForgetMemory,
    ForgetMessage,
    KeepFact,
    KeepMessage,
    MemoryEmbedded,
)
from tolsey.actors.store.memory.remembering import Facts, KnownMessage
from tolsey.actors.store.state import StoreState
from tolsey.runtime.actor import KindPart, gathers, on
from tolsey.storage.chat import memory
from tolsey.storage.database import Database
from tolsey.storage.records.memory import StoreMessage


class StoreMemory(KindPart[StoreState]):
    """Facts and messages; `facts` are None until a turn needs them, so that they cost other stores nothing."""

    owns: ClassVar[tuple[str, ...]] = ("facts", "embedding_since")

    def __init__(self, database: Database) -> None:
        self._database = database
        self.decides = (
            gathers(KeepFact, self._facts, remembering.keep_fact),
            gathers(ForgetFact, self._facts, remembering.forget_fact),
            gathers(KeepMessage, self._known, remembering.keep_message),
            gathers(CorrectMessage, self._known, remembering.correct_message),
            gathers(ForgetMessage, self._known, remembering.forget_message),
            on(EmbedRest, remembering.embed_rest),
            on(MemoryEmbedded, remembering.embedded),
            gathers(ForgetMemory, self._everything, remembering.forget_all),
        )

    async def _facts(self, state: StoreState, message: object) -> Facts:
        """Read the facts once: from then on the state has what is on disk, and what is on its way there."""
        del message
        if state.facts is not None:
            return state.facts
        return await memory.facts_by_key(self._database, state.store_id)

    async def _known(
        self, state: StoreState, message: KeepMessage | CorrectMessage | ForgetMessage
    ) -> KnownMessage:
        """Read a message. Its id is told after its commit, so that what is on disk is all that can be asked of."""
        found = await memory.message(self._database, state.store_id, message.message_id)
        count = await memory.count_messages(self._database, state.store_id)
        return KnownMessage(message=found, count=count)

    async def _everything(
        self, state: StoreState, message: ForgetMemory
    ) -> tuple[Facts, Sequence[StoreMessage]]:
        said = await memory.messages_of(
            self._database, state.store_id, None, remembering.MOST_MESSAGES
        )
        return await self._facts(state, message), said
