"""The page of what a store remembers: told, corrected, looked through and forgotten with forms."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from quart import Blueprint, Response, request

from tolsey.actors.refusals import Refusal
from tolsey.http.answers.stores.memory import (
    FactAnswer,
    MessageAnswer,
    RememberedAnswer,
    VectorsAnswer,
)
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.memory import routes as memories
from tolsey.http.memory.routes import (
    MESSAGE_CHARACTERS,
    MOST_FOUND,
    QUERY_CHARACTERS,
    VALUE_CHARACTERS,
    FactBody,
    MessageBody,
    MessageCorrection,
    NamedFact,
)
from tolsey.http.web import limits, policies
from tolsey.http.web.access import RANKS, member_of, page, store_of
from tolsey.http.web.context import service
from tolsey.http.web.paging import cut, key_in
from tolsey.storage.chat import memory
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.records.memory import MemorySource

PART: Final = 25
"""How many facts, and how many messages, are on a page."""

routes = Blueprint("memory_pages", __name__)
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class MemoryPage(Page):
    """What a store remembers, and what was found of it."""

    template = "memory/memory.html"
    store: StoreRow
    role: str
    facts: Sequence[FactAnswer]
    more_facts: str | None
    messages: Sequence[MessageAnswer]
    more_messages: str | None
    vectors: VectorsAnswer
    query: str = ""
    found: Sequence[RememberedAnswer] = ()
    filled: Filled = field(default_factory=Filled)
    done: str = ""
    value_characters = VALUE_CHARACTERS
    message_characters = MESSAGE_CHARACTERS
    query_characters = QUERY_CHARACTERS

    @property
    def address(self) -> str:
        """The address of the page."""
        return address_of(self.store.id)

    @property
    def may_act(self) -> bool:
        """Whether who looks may tell and forget."""
        return RANKS[self.role] >= RANKS["admin"]

    def told_by(self, source: MemorySource) -> str:
        """Say who told something."""
        return {
            MemorySource.MERCHANT: _("a person of the shop"),
            MemorySource.LAUNCH: _("the launch"),
            MemorySource.AGENT: _("an agent"),
        }[source]


def address_of(store_id: str) -> str:
    """Give the address of the page of what a store remembers."""
    return f"/stores/{store_id}/memory"


@routes.get("/stores/<store_id>/memory")
@page
async def show_memory(store_id: str) -> Response:
    """Show what a store remembers; with a query, what is found of it."""
    return shown(await _memory(store_id))


@routes.post("/stores/<store_id>/memory/facts")
@page
async def tell_fact(store_id: str) -> Response:
    """Remember a fact, or correct it."""
    values = await forms.sent()
    try:
        told = forms.read(NamedFact, values)
        await memories.put_fact(store_id, told.key, data=FactBody(value=told.value))
    except (Misfilled, Refusal) as wrong:
        return await _again(store_id, values, wrong)
    return sent_on(f"{address_of(store_id)}?done=kept")


@routes.post("/stores/<store_id>/memory/facts/<key>/forget")
@page
async def forget_fact(store_id: str, key: str) -> Response:
    """Forget a fact."""
    await memories.delete_fact(store_id, key)
    return sent_on(f"{address_of(store_id)}?done=forgotten")


@routes.post("/stores/<store_id>/memory/messages")
@page
async def tell_message(store_id: str) -> Response:
    """Remember what was said."""
    values = await forms.sent()
    try:
        await memories.post_message(store_id, data=forms.read(MessageBody, values))
    except (Misfilled, Refusal) as wrong:
        return await _again(store_id, values, wrong)
    return sent_on(f"{address_of(store_id)}?done=kept")


@routes.post("/stores/<store_id>/memory/messages/<message_id>")
@page
async def correct_message(store_id: str, message_id: str) -> Response:
    """Correct what was said."""
    values = await forms.sent()
    try:
        corrected = forms.read(MessageCorrection, values)
        await memories.put_message(store_id, message_id, data=corrected)
    except (Misfilled, Refusal) as wrong:
        return await _again(store_id, {}, wrong)
    return sent_on(f"{address_of(store_id)}?done=kept")


@routes.post("/stores/<store_id>/memory/messages/<message_id>/forget")
@page
async def forget_message(store_id: str, message_id: str) -> Response:
    """Forget what was said."""
    await memories.delete_message(store_id, message_id)
    return sent_on(f"{address_of(store_id)}?done=forgotten")


async def _again(store_id: str, values: dict[str, str], wrong: Misfilled | Refusal) -> Response:
    """Show the page with a form as it was sent, and what is wrong with it."""
    return shown(await _memory(store_id, filled_again(values, wrong)), refusal=wrong)


async def _memory(store_id: str, filled: Filled | None = None) -> MemoryPage:
    row, database = await store_of(store_id), service().database
    query = request.args.get("query", "").strip()[:QUERY_CHARACTERS]
    facts = await memory.facts_of(database, store_id, _before("facts"), PART + 1)
    said = await memory.messages_of(database, store_id, _before("messages"), PART + 1)
    shown_facts, more_facts = cut(facts, PART, key=lambda one: one.id)
    shown_said, more_said = cut(said, PART, key=lambda one: one.id)
    if query:
        await limits.admit(policies.MEMORY)
    return MemoryPage(
        store=row,
        role=await member_of(row.organization_id),
        facts=[FactAnswer.of(one) for one in shown_facts],
        more_facts=more_facts,
        messages=[MessageAnswer.read(one) for one in shown_said],
        more_messages=more_said,
        vectors=await memories.get_vectors(store_id),
        query=query,
        found=await service().memory.find(row.organization_id, store_id, query, MOST_FOUND)
        if query
        else (),
        filled=filled or Filled(),
        done=request.args.get("done", ""),
    )


def _before(name: str) -> str | None:
    """Read from the address where a part of a list begins."""
    cursor = request.args.get(name)
    return key_in(cursor) if cursor else None
