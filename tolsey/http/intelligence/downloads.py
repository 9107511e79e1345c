"""Downloads of what is known of a competitor, sent as it is read: as CSV for people, as JSON for programs."""

import csv
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

import orjson
from quart import Blueprint, Response
from quart_schema import tag_blueprint

from tolsey.http.answers.base import ApiAnswer, Media
from tolsey.http.files.documents import in_chunks
from tolsey.http.intelligence.competitors import competitor_of
from tolsey.http.intelligence.known import change_after, change_key
from tolsey.http.web.access import session, store_of
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import now, service
from tolsey.storage.database import Row
from tolsey.storage.intelligence import reading

PAGE: Final = 500
KEPT: Final = timedelta(days=400)
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""With what a cell begins that a spreadsheet may run; the last four are full-width forms (OWASP: CSV injection)."""

routes = Blueprint(
    "competitor_downloads", __name__, url_prefix="/api/stores/<store_id>/competitors/<domain>"
)
tag_blueprint(routes, ["Intelligence"])

Subject = Literal["products", "changes", "snapshots"]


class CompetitorDownloadAnswer(ApiAnswer):
    """All that is known of one sort, each entry by the names of its columns."""

    items: list[dict[str, Any]]


class DownloadQuery(ApiModel):
    """What is wanted of the competitor."""

    of: Subject = "changes"


@routes.get("/download.csv")
@session
async def download_competitor_as_csv(
    store_id: str, domain: str, query_args: DownloadQuery
) -> Annotated[Response, Media("text/csv")]:
    """Download what a competitor sells, what changed there, or its snapshots, as a table."""
    return await _download(store_id, domain, query_args.of, "csv", _as_csv)


@routes.get("/download.json")
@session
async def download_competitor_as_json(
    store_id: str, domain: str, query_args: DownloadQuery
) -> Annotated[Response, Media("application/json", shape=CompetitorDownloadAnswer)]:
    """Download what a competitor sells, what changed there, or its snapshots, as a list."""
    return await _download(store_id, domain, query_args.of, "json", _as_json)


async def _download(
    store_id: str,
    domain: str,
    of: Subject,
    ending: str,
    written: Callable[[AsyncIterator[Row]], AsyncIterator[bytes]],
) -> Response:
    await store_of(store_id)
    named = (await competitor_of(store_id, domain)).domain
    kind = "text/csv; charset=utf-8" if ending == "csv" else "application/json"
    response = Response(in_chunks(written(_rows(named, of))), content_type=kind)
    response.headers["Content-Disposition"] = f'attachment; filename="{named}-{of}.{ending}"'
    return response


def _rows(domain: str, of: Subject) -> AsyncIterator[Row]:
    """Read all of one sort, page by page."""
    database, since = service().database, now() - KEPT

    async def products(last: Row | None) -> list[Row]:
        return await reading.products(database, domain, PAGE, last["product_id"] if last else None)

    async def changes(last: Row | None) -> list[Row]:
        before = change_after(change_key(last)) if last else None
        return await reading.changes(database, since, PAGE, domains=[domain], before=before)

    async def snapshots(last: Row | None) -> list[Row]:
        return await reading.snapshots(database, domain, PAGE, last["taken_at"] if last else None)

    pages: Mapping[Subject, Callable[[Row | None], Awaitable[list[Row]]]] = {
        "products": products,
        "changes": changes,
        "snapshots": snapshots,
    }
    return _paged(pages[of])


async def _paged(page: Callable[[Row | None], Awaitable[list[Row]]]) -> AsyncIterator[Row]:
    last: Row | None = None
    while True:
        found = await page(last)
        for row in found:
            yield row
        if len(found) < PAGE:
            return
        last = found[-1]


async def _as_json(rows: AsyncIterator[Row]) -> AsyncIterator[bytes]:
    yield b'{"items":['
    separator = b""
    async for row in rows:
        yield separator + orjson.dumps(dict(row), default=str)
        separator = b",\n"
    yield b"]}"


async def _as_csv(rows: AsyncIterator[Row]) -> AsyncIterator[bytes]:
    is_first = True
    async for row in rows:
        line = io.StringIO()
        writer = csv.writer(line)
        if is_first:
            writer.writerow(row.keys())
            is_first = False
        writer.writerow([harmless(value) for value in row.values()])
        yield line.getvalue().encode()


def harmless(value: Any) -> Any:
    """Keep a spreadsheet from running what a shop wrote; its numbers stay numbers."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
