"""What wants whoever is signed in, across the organizations and stores that they may see: derived, never stored."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from tolsey.http.answers.market.deals import DealAnswer
from tolsey.http.billing.views import address as billing_address
from tolsey.http.deals import threads
from tolsey.http.deals.bodies_of_deals import DealQuery
from tolsey.http.deals.pages import words
from tolsey.http.launch.standing import standing
from tolsey.http.layout.catalogue import _, counted
from tolsey.http.layout.standings import Want, by_urgency
from tolsey.http.layout.words import day
from tolsey.http.privacy.pages import address_of as privacy_address
from tolsey.http.selling import proofs
from tolsey.http.stores import health, proposals
from tolsey.http.web.access import RANKS
from tolsey.storage.commerce import agent_operations, compliance, connections, launches, stores
from tolsey.storage.commerce.compliance import OVERDUE_AFTER
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.database import Database
from tolsey.storage.money import subscriptions
from tolsey.storage.people import accounts
from tolsey.storage.people import inbox as inboxes
from tolsey.storage.people.accounts import OrganizationRow
from tolsey.storage.records.commerce.compliance import ComplianceRequest
from tolsey.storage.records.commerce.launches import Launch
from tolsey.storage.records.selling.deals import Side
from tolsey.storage.selling import listings

MOST: Final = 200
"""Of how many stores it is told."""
MOST_LISTINGS: Final = 50
MOST_DEALS: Final = 20


async def wanted(
    database: Database, user_id: str, own: Sequence[OrganizationRow], at: datetime
) -> list[Want]:
    """List what wants doing in somebody's organizations, what is broken first; each names whose it is."""
    rows = await stores.stores_for(database, user_id, None, "", MOST)
    ids = [row.id for row in rows]
    parts = await connections.load(database, ids)
    begun = await launches.load(database, ids)
    under_way = await agent_operations.load(database, ids)
    owed = await compliance.owed_to_customers(database, ids)
    listed = await listings.page_of_user(database, user_id, None, None, MOST_LISTINGS)
    deciders = {one.id for one in own if RANKS[one.role] >= RANKS["admin"]}
    found: list[tuple[str, Want]] = [
        (id, _unpaid(id)) for id in await subscriptions.unpaid(database, [one.id for one in own])
    ]
    for row in rows:
        proposed = proposals.those_of(under_way.get(row.id, ()))
        of_store = [
            *health.wanted_by_store(row, parts[row.id]),
            *(_of_launch(row, begun[row.id]) if row.id in begun else ()),
            *(_owed(row, request) for request in owed if row.id in request.stores),
        ]
        if proposed and row.organization_id in deciders:
            newest = max(one.created_at for one in proposed)
            of_store.append(_proposed(row, len(proposed), newest))
        found += ((row.organization_id, want) for want in of_store)
    for view in listed:
        of_listing = proofs.wanted_by_listing(view, at)
        found += ((view.listing.organization_id, want) for want in of_listing)
    found += await _of_deals(database, deciders)
    names = {one.id: one.name for one in own}
    seen = await accounts.inbox_seen_at(database, user_id)
    return by_urgency(
        replace(
            _named(want, names, organization_id),
            is_new=want.since is not None and (seen is None or want.since > seen),
        )
        for organization_id, want in found
    )


async def version(
    database: Database, store_ids: Sequence[str], organization_ids: Sequence[str]
) -> str:
    """Name how all stands that may want somebody: another text once any of it moved."""
    of_stores = await stores.version(database, store_ids)
    return f"{of_stores}.{await inboxes.version(database, organization_ids)}"


def _named(want: Want, names: Mapping[str, str], organization_id: str) -> Want:
    """Say whose it is, where one may see several organizations."""
    name = names.get(organization_id, "")
    if not want.subject:
        return replace(want, subject=name)
    return replace(want, subject=f"{name} · {want.subject}") if len(names) > 1 else want


def _unpaid(organization_id: str) -> Want:
    return Want(
        tone="bad",
        title=_("An invoice could not be collected"),
        advice=_("Pay it to keep your plan."),
        subject="",
        act=_("See the invoice"),
        address=billing_address(organization_id),
    )


async def _of_deals(database: Database, deciders: Collection[str]) -> list[tuple[str, Want]]:
    """Say in which of the newest deals somebody's organization moves next, and what lapses when nobody does."""
    newest = await threads.list_deals(query_args=DealQuery(limit=MOST_DEALS))
    own = [
        (
            deal.seller_organization_id if deal.role == Side.SELLER else deal.buyer_organization_id,
            deal,
        )
        for deal in newest.items
        if not deal.paused and deal.turn in (deal.role, "both")
    ]
    titles = await listings.titles_of(database, [deal.listing_id for _whose, deal in own])
    return [
        (
            whose,
            Want(
                tone="warn" if deal.due_at else "you",
                title=_("It is your turn in a deal: %(stage)s")
                % {"stage": words.stage(deal.stage)},
                advice=_lapse(deal),
                subject=titles.get(deal.listing_id, ""),
                act=_("See the deal"),
                address=f"/deals/{deal.id}",
                since=deal.entered_at,
            ),
        )
        for whose, deal in own
        if whose in deciders
    ]


def _lapse(deal: DealAnswer) -> str:
    """Say what is next, and by when."""
    said = _(words.NEXT.get(deal.stage, ""))
    if deal.due_at is None:
        return said
    until = _("Until %(day)s.") % {"day": day(deal.due_at)}
    return f"{until} {_(words.LAPSES.get(deal.due_event or '', ''))}".strip()


def _of_launch(row: StoreRow, launch: Launch) -> Iterator[Want]:
    """Say what holds a launch up, and what only people can do of it."""
    for milestone in launch.milestones.values():
        shown = standing(launch, milestone)
        if shown.is_held_up:
            yield Want(
                tone="bad",
                title=_("%(milestone)s cannot go on") % {"milestone": shown.title},
                advice=shown.why,
                subject=row.name,
                act=_("See the fix"),
                address=f"/stores/{row.id}/launch/{shown.id}",
                since=milestone.changed_at,
            )
        elif shown.kind == "you":
            yield Want(
                tone="you",
                title=_("%(milestone)s waits for you") % {"milestone": shown.title},
                advice=_("Only a person can do this. The launch finds it done, or you say so."),
                subject=row.name,
                act=_("Read what to do"),
                address=f"/stores/{row.id}/launch/{shown.id}",
                since=milestone.changed_at,
            )


def _owed(row: StoreRow, request: ComplianceRequest) -> Want:
    """Say that a customer waits for the data that is kept of them (GDPR article 12(3): a month)."""
    return Want(
        tone="warn",
        title=_("Send a customer the data you hold on them"),
        advice=_(
            "It is due on %(day)s. The file is ready when it can be fetched: look at it, then send it."
        )
        % {"day": day(request.received_at + OVERDUE_AFTER)},
        subject=row.name,
        act=_("Open the request"),
        address=privacy_address(row.id),
        since=request.received_at,
    )


def _proposed(row: StoreRow, count: int, newest: datetime) -> Want:
    said = counted("An agent asks you to decide", "Agents ask you to decide %(num)s times", count)
    return Want(
        tone="you",
        title=said % {"num": count},
        advice=_("Nothing is sent to the shop until you confirm it; after a day it lapses."),
        subject=row.name,
        act=_("Decide"),
        address=f"/stores/{row.id}/proposals",
        since=newest,
    )
