"""A person's account: all that is kept about it (rules/accounts#people-who-leave)."""

from collections.abc import AsyncIterator
from typing import Annotated

import orjson
from quart import Blueprint, Response
from quart_schema import tag_blueprint

from tolsey.actors.store.connection.messages import ReadConnection
from tolsey.actors.store.messages import store
from tolsey.http.answers.accounts import AccountExportAnswer
from tolsey.http.answers.base import Media
from tolsey.http.files.documents import in_chunks, of_store, sections_of
from tolsey.http.web.access import caller, session
from tolsey.http.web.context import Service, service
from tolsey.storage.chat import memory
from tolsey.storage.commerce import stores
from tolsey.storage.database import Reader
from tolsey.storage.owners import RowOwner
from tolsey.storage.people import accounts

routes = Blueprint("account", __name__, url_prefix="/api/account")
tag_blueprint(routes, ["Accounts"])


@routes.get("/export")
@session
async def export_account() -> Annotated[
    Response, Media("application/json", shape=AccountExportAnswer)
]:
    """Answer with one JSON document of all that is kept about the caller and the organizations they own."""
    user_id = caller().user_id
    owned = await accounts.owned_by(service().database, user_id)
    response = Response(
        in_chunks(_document(service(), user_id, owned)), content_type="application/json"
    )
    response.headers["Content-Disposition"] = f'attachment; filename="{user_id}.json"'
    return response


async def _document(running: Service, user_id: str, owned: list[str]) -> AsyncIterator[bytes]:
    reader = running.reports.of(user_id)
    yield b'{"user":'
    async for part in _rows_of(reader, RowOwner.USER, user_id):
        yield part
    before = b',"organizations":['
    for organization_id in owned:
        yield before
        async for part in _rows_of(reader, RowOwner.ORGANIZATION, organization_id):
            yield part
        before = b","
    yield b'],"stores":[' if owned else b',"organizations":[],"stores":['
    before = b""
    for organization_id in owned:
        for store_id in await memory.stores_of(running.database, organization_id):
            row = await stores.find(running.database, store_id)
            if row is None:  # deleted a moment ago
                continue
            connection = await running.runtime.ask(store(store_id), ReadConnection())
            yield before
            async for part in of_store(running.database, reader, row, connection):
                yield part
            before = b","
    yield b"]}"


async def _rows_of(reader: Reader, owner: RowOwner, whose: str) -> AsyncIterator[bytes]:
    yield b'{"id":' + orjson.dumps(whose)
    async for part in sections_of(reader, owner, whose):
        yield part
    yield b"}"
