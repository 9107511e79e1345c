"""What the store remembers: facts, and what was said."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Field

from tolsey.http.answers.stores.memory import value_of
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.building import ReadTools, ToolAnswer, ToolArguments, ToolPage, reads
from tolsey.http.mcp.tools.pages import PageArguments, Pages
from tolsey.http.mcp.tools.shop_words import ShopText
from tolsey.http.memory.routes import QUERY_CHARACTERS
from tolsey.storage.chat import memory
from tolsey.storage.records.memory import StoreFact, StoreMessage

SCOPES: Final = frozenset({"memory:read"})
MOST_FOUND: Final = 20


class MemoryPart(PageArguments):
    """Which part of what is remembered."""

    kind: Annotated[Literal["facts", "messages"], Field(description="What to list.")] = "facts"


class MemorySearchQuery(ToolArguments):
    """What to look for."""

    query: Annotated[
        str, Field(min_length=1, max_length=QUERY_CHARACTERS, description="Words, or a question.")
    ]


class MemoryEntry(ToolAnswer):
    """Something that is remembered, told by merchant, launch or agent; a fact has a key."""

    id: str
    key: ShopText | None
    text: ShopText
    source: str | None
    updated_at: datetime | None


class MemoryFindings(ToolAnswer):
    """What was found, the best first."""

    results: list[MemoryEntry]


class MemoryTools(ReadTools):
    """Reads what the store remembers for whoever the gate admitted."""

    pages = Pages("list_memory", str)

    @reads(
        "list_memory",
        "List memory",
        "Lists facts about the store, or what was said, newest first.",
        scopes=SCOPES,
    )
    async def list(self, principal: Principal, asked: MemoryPart) -> ToolPage[MemoryEntry]:
        """List what is remembered."""
        after = self.pages.after(asked)
        before = after[0] if after else None
        where = self._service.database, principal.store_id, before, asked.limit + 1
        found: Sequence[StoreFact | StoreMessage] = (
            await memory.facts_of(*where)
            if asked.kind == "facts"
            else await memory.messages_of(*where)
        )
        return self.pages.part(found, asked, key=lambda one: (one.id,), show=_entry)

    @reads(
        "search_memory",
        "Search memory",
        "Finds what people, the launch and agents told about the store.",
        scopes=SCOPES,
    )
    async def search(self, principal: Principal, asked: MemorySearchQuery) -> MemoryFindings:
        """Find what is remembered."""
        found = await self._service.memory.find(
            principal.organization_id, principal.store_id, asked.query, MOST_FOUND
        )
        return MemoryFindings(results=[MemoryEntry.read(one, updated_at=None) for one in found])


def _entry(kept: StoreFact | StoreMessage) -> MemoryEntry:
    if isinstance(kept, StoreFact):
        return MemoryEntry.read(kept, key=kept.name, text=value_of(kept))
    return MemoryEntry.read(kept, key=None)
