"""Exports of a store: all that is kept about it, as one JSON document and as a file."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from quart import Blueprint, Response
from quart_schema import tag_blueprint

from tolsey.actors.organization.files.messages import AskForExport, ExportKept, KeepExport
from tolsey.actors.organization.messages import organization
from tolsey.actors.store.connection.messages import ReadConnection
from tolsey.actors.store.messages import store
from tolsey.http.answers.base import Created, ListAnswer, Media, list_of
from tolsey.http.answers.stores.connection import StoreExportAnswer
from tolsey.http.answers.stores.files import ExportAnswer, FileAnswer
from tolsey.http.files.documents import in_chunks, of_store
from tolsey.http.files.keeping import FileKeeper
from tolsey.http.operations import AcceptedOperation, answer_of, carried_out
from tolsey.http.web import limits, policies
from tolsey.http.web.access import caller, session, store_of
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.http.web.paging import PageQuery
from tolsey.http.web.repeats.idempotency import idempotent
from tolsey.storage import files
from tolsey.storage.commerce import stores
from tolsey.storage.database import Database
from tolsey.storage.records.files import FileRecord
from tolsey.storage.reports.pool import Reports

PURPOSE: Final = "store_export"
KEPT_FOR: Final = timedelta(days=7)
MOST_BYTES: Final = 20 * 1024**3

routes = Blueprint("exports", __name__, url_prefix="/api/stores")
tag_blueprint(routes, ["Stores"])


@routes.get("/<store_id>/export")
@session
async def export_store(
    store_id: str,
) -> Annotated[Response, Media("application/json", shape=StoreExportAnswer)]:
    """Answer with one JSON document of all that is kept about a store, sent as it is read."""
    row = await store_of(store_id, at_least="admin")
    connection = await ask(store(store_id), ReadConnection())
    response = Response(
        in_chunks(
            of_store(service().database, service().reports.of(row.organization_id), row, connection)
        ),
        content_type="application/json",
    )
    response.headers["Content-Disposition"] = f'attachment; filename="{row.id}.json"'
    return response


@routes.post("/<store_id>/exports")
@session
@limits.limited(policies.EXPORTS)
@idempotent
async def keep_export(store_id: str) -> tuple[ExportAnswer, Created] | AcceptedOperation:
    """Write the same document to a file that is kept for a week; a large store's takes a while."""
    row = await store_of(store_id, at_least="admin")
    message = AskForExport(
        operation_id=new_id("operation"), store_id=store_id, user_id=caller().user_id, at=now()
    )
    operation = await carried_out(organization(row.organization_id), message)
    return answer_of(operation, ExportAnswer, 201)


@routes.get("/<store_id>/exports")
@session
async def list_exports(store_id: str, query_args: PageQuery) -> ListAnswer[FileAnswer]:
    """List the exports of a store that are kept, newest first."""
    await store_of(store_id, at_least="admin")
    found = await files.page_of_store(
        service().database,
        store_id,
        PURPOSE,
        after=query_args.after or None,
        at=now(),
        limit=query_args.limit + 1,
    )
    return list_of(found, query_args.limit, key=lambda row: row.id, answer=FileAnswer.read)


class ExportWriter:
    """Writes the exports that organizations asked for."""

    def __init__(
        self,
        keeper: FileKeeper,
        database: Database,
        reports: Reports,
        ask: Callable[..., Awaitable[Any]],
        clock: Callable[[], datetime],
    ) -> None:
        self._keeper = keeper
        self._database = database
        self._reports = reports
        self._ask = ask
        self._clock = clock

    def handlers(self) -> Mapping[type[KeepExport], Any]:
        """Say which calls this performs."""
        return {KeepExport: self.keep}

    async def keep(self, call: KeepExport) -> ExportKept:
        """Write an export, unless an earlier try has."""
        file = await files.find(self._database, call.file_id)
        if file is None:
            file = await self._write(call)
        return ExportKept(
            operation_id=call.operation_id,
            file_id=file.id,
            sha256=file.sha256,
            size=file.size,
            at=self._clock(),
        )

    async def _write(self, call: KeepExport) -> FileRecord:
        row = await stores.find(self._database, call.store_id)
        if row is None:
            raise LookupError("the store is deleted")
        connection = await self._ask(store(call.store_id), ReadConnection())
        at = self._clock()

        def record(sha256: str, size: int) -> FileRecord:
            return FileRecord(
                id=call.file_id,
                organization_id=call.organization_id,
                store_id=call.store_id,
                purpose=PURPOSE,
                name=f"{call.store_id}.json",
                content_type="application/json",
                sha256=sha256,
                size=size,
                created_by=call.user_id,
                created_at=at,
                expires_at=at + KEPT_FOR,
            )

        parts = of_store(self._database, self._reports.of(call.organization_id), row, connection)
        return await self._keeper.keep(in_chunks(parts), MOST_BYTES, record)
