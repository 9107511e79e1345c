"""Looks through what a store remembers: by its words, and by what they mean where a model makes embeddings."""

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Final, Literal

import structlog

from tolsey.actors.refusals import Refusal
from tolsey.actors.store.memory.messages import EmbedRest
from tolsey.actors.store.messages import store
from tolsey.http.answers.stores.memory import RememberedAnswer
from tolsey.http.chat.credit_meter import AWAY
from tolsey.http.clients.model import ModelFailed
from tolsey.http.memory.embedding import MemoryEmbedder
from tolsey.runtime.messages import ActorId, Message
from tolsey.storage.chat import embeddings, memory
from tolsey.storage.chat.embeddings import EmbeddingProgress
from tolsey.storage.database import Database, Row

WORDS: Final = re.compile(r"\w{2,40}")
MOST_WORDS: Final = 24
NEAREST: Final = 8
"""So much is found by its meaning: something is always nearest."""
PLACES: Final = 60
"""What each list's first is ahead of its last by is damped by this (reciprocal rank fusion)."""

log = structlog.get_logger()


class MemorySearch:
    """Finds what stores remember; without an embedder by words alone."""

    def __init__(
        self,
        database: Database,
        ask: Callable[[ActorId, Message[Any]], Awaitable[Any]],
        clock: Callable[[], datetime],
        embedder: MemoryEmbedder | None = None,
    ) -> None:
        self._database = database
        self._ask = ask
        self._clock = clock
        self._embedder = embedder

    @property
    def model(self) -> str | None:
        """Name the model of embeddings, where one is set."""
        return self._embedder.model.name if self._embedder else None

    async def find(
        self, organization_id: str, store_id: str, query: str, limit: int
    ) -> Sequence[RememberedAnswer]:
        """Find what a store remembers about a question, the best first."""
        worded = await memory.worded(self._database, store_id, words_of(query), limit)
        near = await self._near(organization_id, store_id, query)
        return merged(worded, near)[:limit]

    async def progress(self, store_id: str) -> EmbeddingProgress:
        """Tell how much can be found by its meaning, and have the rest embedded."""
        if self._embedder is None:
            return EmbeddingProgress(embedded=0, total=0)
        found = await embeddings.progress(self._database, store_id, self._embedder.model.name)
        if found.waiting:
            try:
                await self._ask(store(store_id), EmbedRest(self._clock()))
            except AWAY as error:
                log.warning("memory.embedding_unasked", fault=type(error).__name__)
        return found

    async def _near(self, organization_id: str, store_id: str, query: str) -> Sequence[Row]:
        """Find by meaning; without credits or a model that answers, words have to do."""
        if self._embedder is None or not (await self.progress(store_id)).embedded:
            return ()
        try:
            (vector,) = await self._embedder.embed(organization_id, [query])
        except (ModelFailed, Refusal, *AWAY) as error:
            log.info("memory.found_by_words", why=type(error).__name__)
            return ()
        name = self._embedder.model.name
        return await embeddings.nearest(self._database, store_id, name, vector, NEAREST)


def words_of(query: str) -> list[str]:
    """Pick the words that are looked for; one that the search itself reads is none."""
    found = dict.fromkeys(word.lower() for word in WORDS.findall(query))
    return [word for word in found if word != "or"][:MOST_WORDS]


def merged(worded: Sequence[Row], near: Sequence[Row]) -> list[RememberedAnswer]:
    """Put both lists into one: what stands high in either stands high, in both the highest."""
    scores: dict[tuple[str, str], float] = {}
    rows: dict[tuple[str, str], Row] = {}
    for found in (worded, near):
        for place, row in enumerate(found):
            key = (row["kind"], row["id"])
            rows[key] = row
            scores[key] = scores.get(key, 0.0) + 1 / (PLACES + place)
    by_words, by_meaning = ({(row["kind"], row["id"]) for row in one} for one in (worded, near))

    def by(key: tuple[str, str]) -> Literal["words", "meaning", "both"]:
        if key in by_words and key in by_meaning:
            return "both"
        return "words" if key in by_words else "meaning"

    return [
        RememberedAnswer(
            kind=rows[key]["kind"],
            id=rows[key]["id"],
            key=rows[key]["name"],
            text=rows[key]["text"],
            source=rows[key]["source"],
            by=by(key),
        )
        for key in sorted(scores, key=lambda one: (-scores[one], one))
    ]
