"""`/stores` and `/selling`: all stores of an organization, and all its listings, to be sorted and filtered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from quart import Blueprint, Response, request

from tolsey.http.home.pages import ListingLine, StoreLine, listing_line, store_line
from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.tables import SortColumn, SortedTable, arranged
from tolsey.http.layout.templates import Page
from tolsey.http.web.access import (
    RANKS,
    caller,
    first_organization,
    organization_of,
    page,
)
from tolsey.http.web.context import now, service
from tolsey.storage.commerce import connections, stores
from tolsey.storage.people.accounts import OrganizationRow
from tolsey.storage.selling import listings

MOST: Final = 200
"""How many lines a page sorts; more than a plan of the catalogue holds."""

routes = Blueprint("list_pages", __name__)
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class ListPage(Page):
    """Stores or listings of an organization."""

    organization: OrganizationRow
    table: SortedTable[StoreLine] | SortedTable[ListingLine]
    states: Mapping[str, str]
    """The states that lines are in, to filter by."""

    @property
    def may_act(self) -> bool:
        """Whether who looks may add one."""
        return RANKS[self.organization.role] >= RANKS["admin"]


class StoresPage(ListPage):
    """All stores."""

    template = "home/stores.html"


class ListingsPage(ListPage):
    """All listings."""

    template = "home/listings.html"


async def _organization() -> OrganizationRow:
    return await organization_of(request.args.get("organizationId") or await first_organization())


def _states(lines: list[StoreLine] | list[ListingLine]) -> Mapping[str, str]:
    words = sorted({one.standing.word for one in lines})
    return {"": _("All")} | {word: word for word in words}


@routes.get("/stores")
@page
async def show_stores() -> Response:
    """Show all stores of an organization."""
    chosen, database = await _organization(), service().database
    rows = await stores.stores_for(database, caller().user_id, chosen.id, "", MOST)
    parts = await connections.load(database, [row.id for row in rows])
    lines = [store_line(row, parts[row.id]) for row in rows]
    columns = (
        SortColumn[StoreLine](_("Store"), "name", lambda one: one.name.casefold()),
        SortColumn[StoreLine](_("Shop"), "shop", lambda one: one.shop),
        SortColumn[StoreLine](_("State"), "state", lambda one: one.standing.word),
    )
    table = arranged(
        "/stores",
        columns,
        lines,
        request.args,
        filters={
            "q": lambda one, text: text.casefold() in f"{one.name} {one.shop}".casefold(),
            "state": lambda one, word: one.standing.word == word,
        },
        asked={"organizationId": chosen.id},
    )
    return shown(StoresPage(organization=chosen, table=table, states=_states(lines)))


@routes.get("/selling")
@page
async def show_listings() -> Response:
    """Show the newest listings of an organization."""
    chosen, at = await _organization(), now()
    found = await listings.page_of_user(service().database, caller().user_id, chosen.id, None, MOST)
    lines = [listing_line(view, at) for view in found]
    columns = (
        SortColumn[ListingLine](_("Listing"), "title", lambda one: one.title.casefold()),
        SortColumn[ListingLine](_("Revenue"), "state", lambda one: one.standing.word),
    )
    table = arranged(
        "/selling",
        columns,
        lines,
        request.args,
        filters={
            "q": lambda one, text: text.casefold() in one.title.casefold(),
            "state": lambda one, word: one.standing.word == word,
        },
        asked={"organizationId": chosen.id},
    )
    return shown(ListingsPage(organization=chosen, table=table, states=_states(lines)))
