"""Deals: asking for access, seeing how they stand, moving them on, and their ledgers."""

from collections import defaultdict

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.listing.deals import ledger
from tolsey.actors.listing.deals.messages import AdvanceDeal, ReadDeals, RequestAccess
from tolsey.actors.listing.messages import listing
from tolsey.actors.refusals import NotFound
from tolsey.http.answers.base import Created, ListAnswer, list_of
from tolsey.http.answers.market.deals import DealAnswer, DealEventAnswer, LedgerCheckAnswer
from tolsey.http.deals.bodies_of_deals import (
    AccessRequest,
    DealMove,
    DealQuery,
    TransferVerdict,
)
from tolsey.http.deals.parties import may_sell, party_to, told
from tolsey.http.web import limits, policies
from tolsey.http.web.access import caller, member_of, session
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.http.web.paging import PageQuery
from tolsey.http.web.repeats.idempotency import idempotent
from tolsey.storage.records.selling.deals import DealEvent, Side
from tolsey.storage.records.selling.listing import PUBLIC_STATUSES
from tolsey.storage.selling import deals, listings

routes = Blueprint("deals", __name__)
tag_blueprint(routes, ["Deals"])

LEDGER_PAGE = 500


@routes.post("/api/marketplace/listings/<listing_id>/access")
@session
@limits.limited(policies.DEAL_ACCESS)
@idempotent
async def request_access(listing_id: str, data: AccessRequest) -> tuple[DealAnswer, Created]:
    """Ask a seller to see more of a listing."""
    await member_of(data.organization_id, at_least="admin")
    view = await listings.find(service().database, listing_id)
    if view is None or view.listing.status not in PUBLIC_STATUSES:
        raise NotFound(
            "This listing doesn't exist, or you don't have access to it. Check the link or the id."
        )
    message = RequestAccess(
        deal_id=new_id("deal"),
        buyer_id=data.organization_id,
        by=caller().user_id,
        message=data.message,
        may_sell=await may_sell(view.listing.organization_id),
        at=now(),
    )
    made = await ask(listing(listing_id), message)
    return DealAnswer.of(made, Side.BUYER), 201


@routes.get("/api/vendor/marketplace/deals")
@session
async def list_deals(query_args: DealQuery) -> ListAnswer[DealAnswer]:
    """List the deals that the caller's organizations are party to, on either side."""
    if query_args.organization_id is not None:
        await member_of(query_args.organization_id)
    database, user_id = service().database, caller().user_id
    found = await deals.page_of_user(
        database,
        user_id,
        query_args.organization_id,
        query_args.after or None,
        query_args.limit + 1,
    )
    by_listing = defaultdict(list)
    for deal, _ in found:
        by_listing[deal.listing_id].append(deal.id)
    views = {
        view.deal.id: view
        for listing_id, ids in by_listing.items()
        for view in await ask(listing(listing_id), ReadDeals(tuple(ids), now()))
    }
    return list_of(
        found,
        query_args.limit,
        key=lambda pair: pair[0].id,
        answer=lambda pair: DealAnswer.of(views[pair[0].id], pair[1]),
    )


@routes.get("/api/marketplace/deals/<deal_id>")
@session
async def get_deal(deal_id: str) -> DealAnswer:
    """Read how a deal stands."""
    party = await party_to(deal_id)
    (view,) = await ask(listing(party.deal.listing_id), ReadDeals((deal_id,), now()))
    return DealAnswer.of(view, party.role)


@routes.post("/api/marketplace/deals/<deal_id>/advance")
@session
@idempotent
async def advance_deal(deal_id: str, data: DealMove) -> DealAnswer:
    """Make a move; the seller advances stages by hand."""
    party = await party_to(deal_id)
    message = AdvanceDeal(
        deal_id=deal_id,
        event=data.event,
        expected_stage=data.expected_stage,
        actor=party.acting(data.event),
        by=caller().user_id,
        at=now(),
        fields=data.fields(),
        may_sell=await may_sell(party.deal.seller_id),
        documents=await deals.kinds_of_files(service().database, deal_id),
    )
    return await told(party, message)


@routes.post("/api/marketplace/deals/<deal_id>/transfer-items/<item>")
@session
@idempotent
async def judge_item(deal_id: str, item: str, data: TransferVerdict) -> DealAnswer:
    """Accept or reject an item that was handed over."""
    party = await party_to(deal_id)
    message = AdvanceDeal(
        deal_id=deal_id,
        event="transfer.confirm",
        expected_stage=None,
        actor=party.acting("transfer.confirm"),
        by=caller().user_id,
        at=now(),
        fields=data.fields(item),
    )
    return await told(party, message)


@routes.get("/api/marketplace/deals/<deal_id>/events")
@session
async def list_deal_events(deal_id: str, query_args: PageQuery) -> ListAnswer[DealEventAnswer]:
    """List a deal's ledger, from its first line on: each is its exact text, to be checked by anyone."""
    await party_to(deal_id)
    found = await deals.events(
        service().database, deal_id, query_args.after_number, query_args.limit + 1
    )
    return list_of(
        found, query_args.limit, key=lambda event: str(event.seq), answer=DealEventAnswer.of
    )


@routes.get("/api/marketplace/deals/<deal_id>/verify")
@session
async def verify_deal(deal_id: str) -> LedgerCheckAnswer:
    """Read a deal's ledger again: whether it is what was written, and the deal what follows from it."""
    party = await party_to(deal_id)
    database, deal = service().database, party.deal
    found: list[DealEvent] = []
    while len(found) < deal.seq:
        page = await deals.events(database, deal_id, len(found), LEDGER_PAGE)
        found += page
        if not page:
            break
    found = found[: deal.seq]
    broken = ledger.broken_at(deal_id, found, deal.hash)
    follows = broken is None and ledger.replayed(found).deal == ledger.told(deal)
    return LedgerCheckAnswer(
        valid=broken is None and follows,
        first_break=broken,
        follows=follows,
        events=deal.seq,
        genesis=ledger.first_of(deal_id),
        head=deal.hash,
    )
