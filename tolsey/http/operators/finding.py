"""Operators find what somebody asks about, and why it does not work: as JSON and as a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import structlog
from pydantic import Field
from quart import Blueprint, Response, request
from quart_schema import tag_blueprint

from tolsey.http.answers.operators.diagnosis import DiagnosisAnswer, FindAnswer, FoundAnswer
from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.operators import diagnosis
from tolsey.http.operators.console.sections import ConsolePage
from tolsey.http.web.access import administrator, caller, page, require_administrator
from tolsey.http.web.api_model import NUL, ApiModel
from tolsey.http.web.context import service
from tolsey.storage import audit, finding
from tolsey.storage.errors import StorageUnavailable
from tolsey.storage.reports.pool import OPERATORS

MOST_TYPED: Final = 200

log = structlog.get_logger()

routes = Blueprint("finding", __name__, url_prefix="/api/admin")
tag_blueprint(routes, ["Operators"])
pages = Blueprint("operator_pages", __name__)
answer_with_pages(pages)


class FindQuery(ApiModel):
    """What is looked for: a mail address, an id, or how the name of a shop, store or organization begins."""

    q: Annotated[str, Field(min_length=1, max_length=MOST_TYPED)]


@dataclass(frozen=True)
class FindPage(ConsolePage):
    """A field to type into, and what was found."""

    template = "operators/find.html"
    section = "/admin/find"
    typed: str
    found: FindAnswer | None
    most_typed = MOST_TYPED


@routes.get("/find")
@administrator
async def find(query_args: FindQuery) -> FindAnswer:
    """Find users, organizations, stores and listings; where only one store is meant, say how it is."""
    return await _find(query_args.q)


@routes.get("/stores/<id>/diagnosis")
@administrator
async def diagnose(id: str) -> DiagnosisAnswer:
    """Say why a store does not work, worst first, and what to do about it."""
    return await diagnosis.of_store(id)


@pages.get("/admin/find")
@page
async def show_found() -> Response:
    """Show what was found, and of one store why it does not work; to administrators only."""
    await require_administrator()
    typed = request.args.get("q", "").replace(NUL, "")[:MOST_TYPED].strip()
    return shown(FindPage(typed, await _find(typed) if typed else None))


async def _put_on_record(found: Sequence[str]) -> None:
    """Write down who looked; where PostgreSQL takes nothing any more, which is what they look for, in the log."""
    user_id = caller().user_id
    try:
        async with service().database.transaction() as tx:
            await audit.write(tx, "admin.find", user_id, actor=user_id, found=found)
    except StorageUnavailable as error:
        log.warning("admin.find.unwritten", user_id=user_id, found=found, error=repr(error))


async def _find(typed: str) -> FindAnswer:
    found = await finding.find(service().reports.of(OPERATORS), typed)
    # Who looks people up is on record (rules/operators#acts); what was typed may be an address, and is not.
    await _put_on_record([one.id for one in found])
    stores = [one.id for one in found if one.kind == "store" and not one.is_deleted]
    return FindAnswer(
        items=[FoundAnswer.of(one) for one in found],
        diagnosis=await diagnosis.of_store(stores[0]) if len(stores) == 1 else None,
    )
