"""`/`: what tolsey is for whoever is not signed in; for the others what wants them, their stores and credits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from quart import Blueprint, Response, request

from tolsey.actors.listing.verification import transitions
from tolsey.actors.organization import plans
from tolsey.actors.organization.billing.messages import ReadSubscription, SubscriptionView
from tolsey.actors.organization.ledger.messages import ReadCredits
from tolsey.actors.organization.messages import organization
from tolsey.http.answers.money.credits import CreditsAnswer
from tolsey.http.billing.views import address as billing_address
from tolsey.http.home import inbox
from tolsey.http.layout.answers import answer_with_pages, sent_on, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.live import followed
from tolsey.http.layout.standings import ShownState, Want, worst
from tolsey.http.layout.templates import Page
from tolsey.http.selling import proofs
from tolsey.http.selling.attestation import badge
from tolsey.http.stores import health
from tolsey.http.web.access import (
    RANKS,
    caller,
    identify,
    is_administrator,
    organization_of,
    page,
    public,
)
from tolsey.http.web.context import ask, now, service
from tolsey.storage.commerce import connections, stores
from tolsey.storage.commerce.connections import StoreParts
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.people import accounts
from tolsey.storage.people.accounts import OrganizationRow
from tolsey.storage.selling import listings
from tolsey.storage.selling.listings import ListingView

MOST: Final = 50
"""How many stores and listings the page shows; a plan of the catalogue holds no more stores."""
MOST_ORGANIZATIONS: Final = 200

routes = Blueprint("home_page", __name__)
answer_with_pages(routes)


class WelcomePage(Page):
    """What tolsey is."""

    template = "home/welcome.html"


@dataclass(frozen=True, slots=True)
class StoreLine:
    """A store on the page: its name, where it is shown, the shop, and how it is."""

    name: str
    address: str
    shop: str
    standing: ShownState


@dataclass(frozen=True, slots=True)
class ListingLine:
    """A listing on the page: its title, where it is shown, and its badge."""

    title: str
    address: str
    standing: ShownState


@dataclass(frozen=True, kw_only=True)
class HomePage(Page):
    """What wants whoever is signed in, and what there is of an organization."""

    template = "home/home.html"
    organization: OrganizationRow
    wants: Sequence[Want]
    stores: Sequence[StoreLine]
    listings: Sequence[ListingLine]
    credits: CreditsAnswer
    held: SubscriptionView
    is_operator: bool
    version: str

    @property
    def address(self) -> str:
        """The address of the page."""
        return billing_address(self.organization.id, "/")

    @property
    def events(self) -> str:
        """Where the page is told that something changed."""
        return f"{billing_address(self.organization.id, '/inbox/events')}&seen={self.version}"

    @property
    def fresh(self) -> int:
        """How much of what wants them the reader has not seen."""
        return sum(want.is_new for want in self.wants)

    @property
    def may_act(self) -> bool:
        """Whether who looks may add stores and spend money."""
        return RANKS[self.organization.role] >= RANKS["admin"]

    @property
    def billing(self) -> str:
        """The address of the billing page."""
        return billing_address(self.organization.id)

    @property
    def plan(self) -> str:
        """The name of the plan in effect."""
        return plans.BY_CODE[self.held.plan].name


class NowherePage(Page):
    """Someone who is signed in belongs to no organization."""

    template = "home/nowhere.html"


@routes.get("/")
@public
async def home() -> Response:
    """Show what wants whoever is signed in; what tolsey is to whoever is not."""
    if await identify() is None:
        return shown(WelcomePage())
    database, user_id = service().database, caller().user_id
    own = await accounts.organizations_of(database, user_id, "", MOST_ORGANIZATIONS)
    if not own:
        return shown(NowherePage())
    wanted = request.args.get("organizationId", own[0].id)
    chosen = next((one for one in own if one.id == wanted), None)
    if chosen is None:
        return sent_on("/")
    return shown(await _home(chosen, own))


@routes.post("/inbox/seen")
@page
async def see_inbox() -> Response:
    """Keep that the reader has seen what wants them, and show it again."""
    async with service().database.transaction() as tx:
        await accounts.see_inbox(tx, caller().user_id, now())
    return sent_on("/")


@routes.get("/inbox/events")
@page
async def follow_inbox() -> Response:
    """Tell `changed` each time that something moved that may want the reader, for half a minute."""
    await organization_of(request.args.get("organizationId", ""))
    own, seen_stores = await _seen()
    return followed(partial(inbox.version, service().database, seen_stores, own))


async def _seen() -> tuple[list[str], list[str]]:
    """Name the organizations and stores that somebody may see."""
    database, user_id = service().database, caller().user_id
    own = await accounts.organizations_of(database, user_id, "", MOST_ORGANIZATIONS)
    rows = await stores.stores_for(database, user_id, None, "", inbox.MOST)
    return [one.id for one in own], [row.id for row in rows]


async def events_of_all() -> str:
    """Say where a page is told what moves of anything that the caller may see; empty where there is nothing to see."""
    own, seen_stores = await _seen()
    if not own:
        return ""
    version = await inbox.version(service().database, seen_stores, own)
    return f"{billing_address(own[0], '/inbox/events')}&seen={version}"


async def _home(chosen: OrganizationRow, own: Sequence[OrganizationRow]) -> HomePage:
    database, at, to = service().database, now(), organization(chosen.id)
    # First of all: what moves while the rest is read shows at once.
    organizations, seen_stores = await _seen()
    version = await inbox.version(database, seen_stores, organizations)
    rows = await stores.stores_for(database, caller().user_id, chosen.id, "", MOST)
    parts = await connections.load(database, [row.id for row in rows])
    listed = await listings.page_of_user(database, caller().user_id, chosen.id, None, MOST)
    held = await ask(to, ReadSubscription(at))
    credits = await ask(to, ReadCredits(at))
    return HomePage(
        organization=chosen,
        wants=[
            *await inbox.wanted(database, caller().user_id, own, at),
            *first_steps(chosen, [(row, parts[row.id]) for row in rows], listed),
        ],
        stores=[store_line(row, parts[row.id]) for row in rows],
        listings=[listing_line(view, at) for view in listed],
        credits=CreditsAnswer.of(credits),
        held=held,
        is_operator=await is_administrator(),
        version=version,
    )


def first_steps(
    chosen: OrganizationRow,
    owned: Sequence[tuple[StoreRow, StoreParts]],
    listed: Sequence[ListingView],
) -> list[Want]:
    """Say how an organization begins: with a store, then with the badge of what it earns."""
    if not owned:
        return [
            Want(
                tone="you",
                title=_("Add your first store"),
                advice=_(
                    "Give it a name, then connect the shop. You need the keys of an app in it."
                ),
                subject=chosen.name,
                act=_("Add a store"),
                address=billing_address(chosen.id, "/stores/new"),
            )
        ]
    if not listed and any(health.connection_of(parts).tone == "good" for _row, parts in owned):
        return [
            Want(
                tone="you",
                title=_("Show what your store earns"),
                advice=_("A badge that nobody can type in: its number is read from the shop."),
                subject=chosen.name,
                act=_("Get a badge"),
                address=f"{billing_address(chosen.id, '/selling/new')}&storeId={owned[0][0].id}",
            )
        ]
    return []


def store_line(row: StoreRow, parts: StoreParts) -> StoreLine:
    """Tell of a store what a list shows."""
    connection = parts.connection
    standing = worst([health.connection_of(parts), health.webhooks_of(parts)])
    shop = connection.shop_domain if connection else _("No shop yet")
    return StoreLine(row.name, health.address_of(row), shop, standing)


def listing_line(view: ListingView, at: datetime) -> ListingLine:
    """Tell of a listing what a list shows."""
    settled = [transitions.settle(proof.verification, at) for proof in view.proofs]
    chosen = transitions.primary(settled, at)
    standing = proofs.proof_of(chosen)
    if badge(view, at) is transitions.Badge.GREEN:
        standing = ShownState("good", _("Verified"))
    return ListingLine(view.listing.title, f"/selling/{view.listing.id}", standing)
