"""Looks through what a store remembers: by its words, and by what they mean where a model makes embeddings."""

import re
from collections.abc import Sequence
from typing import Final

from tolsey.http.answers.memory import RememberedAnswer
from tolsey.storage.chat import memory
from tolsey.storage.database import Database

WORDS: Final = re.compile(r"\w{2,40}")
MOST_WORDS: Final = 24


class MemorySearch:
    """Finds what stores remember."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, store_id: str, query: str, limit: int) -> Sequence[RememberedAnswer]:
        """Find what a store remembers about a question, the best first."""
        found = await memory.worded(self._database, store_id, words_of(query), limit)
        return [
            RememberedAnswer(
                kind=row["kind"],
                id=row["id"],
                key=row["name"],
                text=row["text"],
                source=row["source"],
                by="words",
            )
            for row in found
        ]


def words_of(query: str) -> list[str]:
    """Pick the words that are looked for; one that the search itself reads is none."""
    found = dict.fromkeys(word.lower() for word in WORDS.findall(query))
    return [word for word in found if word != "or"][:MOST_WORDS]
