"""What an operator has to decide: deals in dispute, and payments whose payers ask their bank for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from quart import Blueprint, Response, request
from quart_schema import tag_blueprint

from tolsey.http.answers.base import ListAnswer
from tolsey.http.answers.market.deals import DisputeAnswer
from tolsey.http.answers.money.credits import money
from tolsey.http.deals.pages import words
from tolsey.http.deals.pages.showing import amount
from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.operators.console.sections import ConsolePage
from tolsey.http.web.access import administrator, page, require_administrator
from tolsey.http.web.context import service
from tolsey.http.web.paging import InvalidCursor, PageQuery, cut
from tolsey.storage.money import disputes
from tolsey.storage.money.disputes import DEAL, DisputeRow
from tolsey.storage.people import accounts

PART: Final = 50

routes = Blueprint("disputes", __name__)
tag_blueprint(routes, ["Operators"])
pages = Blueprint("dispute_pages", __name__)
answer_with_pages(pages)


@dataclass(frozen=True, slots=True)
class DisputeLine:
    """Something in dispute on the operators' page."""

    dispute: DisputeAnswer
    parties: Sequence[str]

    @property
    def is_deal(self) -> bool:
        """Whether it is decided here; a payment is at the bank."""
        return self.dispute.kind == DEAL

    @property
    def state(self) -> str:
        """How it stands."""
        return words.stage(self.dispute.state) if self.is_deal else _("At the bank")

    @property
    def amount(self) -> str:
        """What it is about."""
        return amount(self.dispute.amount)


@dataclass(frozen=True, kw_only=True)
class DisputesPage(ConsolePage):
    """What waits for an operator."""

    template = "deals/disputes.html"
    section = "/admin/disputes"
    lines: Sequence[DisputeLine]
    following: str | None


@routes.get("/api/admin/disputes")
@administrator
async def list_disputes(query_args: PageQuery) -> ListAnswer[DisputeAnswer]:
    """List what is in dispute: deals that wait for an operator, the longest first, then payments at the bank."""
    kind, _bar, key = query_args.after.partition("|")
    database, most = service().database, query_args.limit + 1
    found: list[DisputeRow] = []
    if kind in ("", DEAL):
        found = await disputes.deals(database, _moment_and_id(key), most)
        key = ""
    if len(found) < most:
        ref, _bar, whose = key.partition("|")
        found += await disputes.payments(database, (ref, whose) if ref else None, most - len(found))
    part, following = cut(found, query_args.limit, key=_key)
    return ListAnswer(items=[_answer(one) for one in part], next_cursor=following)


def _moment_and_id(key: str) -> tuple[datetime, str] | None:
    if not key:
        return None
    at, _bar, id = key.partition("|")
    try:
        return datetime.fromisoformat(at), id
    except ValueError as error:
        raise InvalidCursor from error


def _key(row: DisputeRow) -> str:
    if row.since is not None:
        return f"{row.kind}|{row.since.isoformat()}|{row.id}"
    return f"{row.kind}|{row.id}|{row.organizations[0]}"


def _answer(row: DisputeRow) -> DisputeAnswer:
    return DisputeAnswer.read(
        row, amount=money(row.amount, row.currency), organization_ids=list(row.organizations)
    )


@pages.get("/admin/disputes")
@page
async def show_disputes() -> Response:
    """Show what waits for an operator; to administrators only."""
    await require_administrator()
    asked = PageQuery(limit=PART, cursor=request.args.get("cursor"))
    found = await list_disputes(query_args=asked)
    ids = [id for one in found.items for id in one.organization_ids]
    names = await accounts.names_of(service().database, ids)
    lines = [
        DisputeLine(one, [names[id] or id for id in one.organization_ids]) for one in found.items
    ]
    return shown(DisputesPage(lines=lines, following=found.next_cursor))
