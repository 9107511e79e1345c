"""Documents of all that is kept of a store, a user or an organization, written as they are read."""

from collections.abc import AsyncIterator
from typing import Any, Final

import orjson
from pydantic.alias_generators import to_camel

from tolsey.actors.store.connection.messages import ConnectionView
from tolsey.http.answers.base import ApiAnswer
from tolsey.http.answers.stores.connection import (
    ConnectionAnswer,
    ConnectionPeriodAnswer,
    StoreAnswer,
    StoreExportAnswer,
)
from tolsey.storage.commerce import connections
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.database import Database, Reader
from tolsey.storage.lifecycle import exports
from tolsey.storage.owners import RowOwner

CHUNK_BYTES: Final = 64 * 1024


async def of_store(
    database: Database, reader: Reader, row: StoreRow, connection: ConnectionView | None
) -> AsyncIterator[bytes]:
    """Write all that is kept about a store and its shop as JSON, a row after the other."""
    head = StoreExportAnswer(
        connections=[
            ConnectionPeriodAnswer.of(one) for one in await connections.history(database, row.id)
        ],
        store=StoreAnswer.read(row),
        integrations=[ConnectionAnswer.of(connection)] if connection else [],
    )
    yield head_of(head)
    async for part in sections_of(reader, RowOwner.STORE, row.id):
        yield part
    shop = await connections.shop_key_of(database, row.id)
    async for part in sections_of(reader, RowOwner.SHOP, shop):
        yield part
    yield b"}"


async def sections_of(reader: Reader, owner: RowOwner, whose: str) -> AsyncIterator[bytes]:
    """Write what each table has of an owner, as further fields of an object that has one."""
    for table, belongs in exports.sections(owner):
        async for part in section(table.export, exports.rows(reader, table, belongs, whose)):
            yield part


def head_of(answer: ApiAnswer) -> bytes:
    """Write an object that `section` adds fields to."""
    return orjson.dumps(answer.model_dump(mode="json"))[:-1]


async def section(name: str, items: AsyncIterator[Any]) -> AsyncIterator[bytes]:
    """Write rows as a further field of an object that has one."""
    before = b"," + orjson.dumps(to_camel(name)) + b":["
    async for item in items:
        yield before + orjson.dumps({to_camel(column): item[column] for column in item})
        before = b","
    yield b"]" if before == b"," else before + b"]"


async def in_chunks(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Gather small pieces: whoever takes one has as much to do for it as for many."""
    waiting = bytearray()
    async for part in parts:
        waiting += part
        if len(waiting) >= CHUNK_BYTES:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting)
