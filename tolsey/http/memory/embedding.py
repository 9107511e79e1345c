"""Embeddings of what stores remember: made in batches, paid out of the organization's credits."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from tolsey.actors.chat import Prices, Usage, input_tokens
from tolsey.actors.refusals import PaymentRequired
from tolsey.actors.store.memory.messages import EmbedMemory, MemoryEmbedded
from tolsey.http.chat.credit_meter import CreditMeter
from tolsey.http.clients.embeddings import EmbeddingModel
from tolsey.runtime.ids import new_id
from tolsey.runtime.messages import ActorId, Call, Message
from tolsey.storage.chat import embeddings
from tolsey.storage.database import Database

BATCH: Final = 32
LEASE: Final = timedelta(minutes=5)

log = structlog.get_logger()


class MemoryEmbedder:
    """Makes embeddings with a model, each held for before it is asked and settled at what it cost."""

    def __init__(
        self,
        model: EmbeddingModel,
        prices: Prices,
        *,
        ask: Callable[[ActorId, Message[Any]], Awaitable[Any]],
        database: Database,
        clock: Callable[[], datetime],
    ) -> None:
        self.model = model
        self._prices = prices
        self._ask = ask
        self._database = database
        self._clock = clock

    def handlers(self) -> dict[type[Call[Any]], Any]:
        """Say which method answers which call."""
        return {EmbedMemory: self.embed_memory}

    async def embed_memory(self, call: EmbedMemory) -> Message[None]:
        """Embed a batch of what has none; without credits the rest waits until somebody looks again."""
        database, model = self._database, self.model.name
        rows = await embeddings.unembedded(database, call.store_id, model, BATCH)
        if rows:
            try:
                made = await self.embed(call.organization_id, [row["words"] for row in rows])
            except PaymentRequired:
                log.info("memory.embedding_unpaid", store_id=call.store_id)
                return MemoryEmbedded(left=0, at=self._clock())
            await embeddings.keep(database, rows, made, model)
        await embeddings.forget_left(database, call.store_id)
        found = await embeddings.progress(database, call.store_id, model)
        return MemoryEmbedded(left=found.waiting, at=self._clock())

    async def embed(self, organization_id: str, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Make a vector of each text, and charge for it. Raises PaymentRequired, ModelFailed."""
        bound = input_tokens(texts)
        credits = CreditMeter(
            new_id("embed"),
            organization_id,
            amount=self._prices.most(bound, 0),
            lease=LEASE,
            ask=self._ask,
            clock=self._clock,
        )
        await credits.pin()
        try:
            made = await self.model.embed(texts)
        except BaseException:
            await credits.free()
            raise
        used = bound if made.tokens is None else min(max(made.tokens, 0), bound * 3)
        await credits.settle(self._prices.cost(Usage(used)))
        return made.vectors
