"""Routes of what a store remembers (rules/shops#memory)."""

import re
from typing import Annotated, Literal

import orjson
from pydantic import Field, StringConstraints
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import Unprocessable
from tolsey.actors.store.memory.messages import (
    CorrectMessage,
    ForgetFact,
    ForgetMessage,
    KeepFact,
    KeepMessage,
)
from tolsey.actors.store.messages import store
from tolsey.http.answers.base import Created, ListAnswer, NoBody, NoContent, list_of
from tolsey.http.answers.stores.memory import (
    FactAnswer,
    MessageAnswer,
    RememberedList,
    VectorsAnswer,
)
from tolsey.http.web import limits, policies
from tolsey.http.web.access import caller, session, store_of
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.http.web.paging import PageQuery
from tolsey.http.web.repeats.idempotency import idempotent
from tolsey.storage.chat import memory
from tolsey.storage.records.memory import MemorySource

KEY: str = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
VALUE_CHARACTERS = 2_000
MESSAGE_CHARACTERS = 8_000
QUERY_CHARACTERS = 200
MOST_FOUND = 50

routes = Blueprint("memory", __name__, url_prefix="/api/stores/<store_id>/memory")
tag_blueprint(routes, ["Memory"])

Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MESSAGE_CHARACTERS)
]


class FactBody(ApiModel):
    """What a fact says."""

    value: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=VALUE_CHARACTERS)
    ]


class NamedFact(FactBody):
    """A fact with the key that it is found by, such as `brand.voice`."""

    key: Annotated[str, Field(pattern=KEY)]


class MessageCorrection(ApiModel):
    """What was said, in other words."""

    text: Text


class MessageBody(MessageCorrection):
    """What was said, and by which side of a conversation."""

    role: Literal["user", "assistant"] = "user"


class MemoryQuery(ApiModel):
    """What to look for."""

    query: Annotated[str, Field(min_length=1, max_length=QUERY_CHARACTERS)]
    limit: Annotated[int, Field(ge=1, le=MOST_FOUND)] = 10


@routes.get("/facts")
@session
async def list_facts(store_id: str, query_args: PageQuery) -> ListAnswer[FactAnswer]:
    """List what is known of a store, newest first."""
    await store_of(store_id)
    found = await memory.facts_of(
        service().database, store_id, query_args.after or None, query_args.limit + 1
    )
    return list_of(found, query_args.limit, key=lambda one: one.id, answer=FactAnswer.of)


@routes.put("/facts/<key>")
@session
@limits.limited(policies.MEMORY)
async def put_fact(store_id: str, key: str, data: FactBody) -> FactAnswer:
    """Tell a fact, in the place of what was known under its key."""
    await store_of(store_id, at_least="admin")
    if not re.fullmatch(KEY, key):
        said = "The key is invalid. Use letters, digits, dots, hyphens and underscores, at most 100 characters."
        raise Unprocessable(
            said, code="invalid_request", errors=[{"field": "key", "message": said}]
        )
    kept = await ask(
        store(store_id),
        KeepFact(
            fact_id=new_id("fact"),
            key=key,
            value=orjson.dumps(data.value).decode(),
            source=MemorySource.MERCHANT,
            user_id=caller().user_id,
            at=now(),
        ),
    )
    return FactAnswer.of(kept.fact)


@routes.delete("/facts/<key>")
@session
async def delete_fact(store_id: str, key: str) -> tuple[NoBody, NoContent]:
    """Forget a fact, whoever told it."""
    await store_of(store_id, at_least="admin")
    wish = ForgetFact(key=key, source=MemorySource.MERCHANT, user_id=caller().user_id, at=now())
    await ask(store(store_id), wish)
    return "", 204


@routes.get("/messages")
@session
async def list_messages(store_id: str, query_args: PageQuery) -> ListAnswer[MessageAnswer]:
    """List what was said and is remembered, newest first."""
    await store_of(store_id)
    found = await memory.messages_of(
        service().database, store_id, query_args.after or None, query_args.limit + 1
    )
    return list_of(found, query_args.limit, key=lambda one: one.id, answer=MessageAnswer.read)


@routes.post("/messages")
@session
@limits.limited(policies.MEMORY)
@idempotent
async def post_message(store_id: str, data: MessageBody) -> tuple[MessageAnswer, Created]:
    """Remember what was said."""
    await store_of(store_id, at_least="admin")
    kept = await ask(
        store(store_id),
        KeepMessage(
            message_id=new_id("msg"),
            role=data.role,
            text=data.text,
            source=MemorySource.MERCHANT,
            user_id=caller().user_id,
            at=now(),
        ),
    )
    return MessageAnswer.read(kept), 201


@routes.put("/messages/<message_id>")
@session
@limits.limited(policies.MEMORY)
async def put_message(store_id: str, message_id: str, data: MessageCorrection) -> MessageAnswer:
    """Correct what is remembered of what was said."""
    await store_of(store_id, at_least="admin")
    wish = CorrectMessage(
        message_id=message_id,
        text=data.text,
        source=MemorySource.MERCHANT,
        user_id=caller().user_id,
        at=now(),
    )
    return MessageAnswer.read(await ask(store(store_id), wish))


@routes.delete("/messages/<message_id>")
@session
async def delete_message(store_id: str, message_id: str) -> tuple[NoBody, NoContent]:
    """Forget what was said."""
    await store_of(store_id, at_least="admin")
    wish = ForgetMessage(
        message_id=message_id,
        source=MemorySource.MERCHANT,
        user_id=caller().user_id,
        at=now(),
    )
    await ask(store(store_id), wish)
    return "", 204


@routes.get("/vectors")
@session
async def get_vectors(store_id: str) -> VectorsAnswer:
    """Tell how much can be found by its meaning; what is not is being embedded from now on."""
    await store_of(store_id)
    search = service().memory
    return VectorsAnswer.read(await search.progress(store_id), model=search.model)


@routes.get("/search")
@session
@limits.limited(policies.MEMORY)
async def search_memory(store_id: str, query_args: MemoryQuery) -> RememberedList:
    """Find what a store remembers, the best first."""
    row = await store_of(store_id)
    found = await service().memory.find(
        row.organization_id, store_id, query_args.query, query_args.limit
    )
    return RememberedList(items=list(found))
