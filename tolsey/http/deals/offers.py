"""Offers: made by buyers, answered by sellers, and countered by either."""

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.listing.deals.messages import AnswerOffer, MakeOffer
from tolsey.actors.refusals import Forbidden, NotFound
from tolsey.http.answers.base import Created, ListAnswer, list_of
from tolsey.http.answers.market.deals import DealAnswer
from tolsey.http.answers.market.offers import OfferAnswer
from tolsey.http.deals.bodies_of_deals import NewOffer
from tolsey.http.deals.parties import Party, party_to, told
from tolsey.http.web.access import caller, session
from tolsey.http.web.context import new_id, now, service
from tolsey.http.web.paging import PageQuery
from tolsey.http.web.repeats.idempotency import idempotent
from tolsey.storage.records.selling.deals import Side
from tolsey.storage.selling import deals

routes = Blueprint("deal_offers", __name__, url_prefix="/api/marketplace")
tag_blueprint(routes, ["Deals"])


@routes.get("/deals/<deal_id>/offers")
@session
async def list_offers(deal_id: str, query_args: PageQuery) -> ListAnswer[OfferAnswer]:
    """List the offers of a deal, the newest first; what can be done with the open one, the deal says."""
    await party_to(deal_id)
    found = await deals.offers(
        service().database, deal_id, query_args.after or None, query_args.limit + 1
    )
    return list_of(
        found,
        query_args.limit,
        key=lambda offer: offer.id,
        answer=lambda offer: OfferAnswer.of(offer, ()),
    )


@routes.post("/deals/<deal_id>/offers")
@session
@idempotent
async def make_offer(deal_id: str, data: NewOffer) -> tuple[DealAnswer, Created]:
    """Offer to buy, once the NDA is signed."""
    party = await party_to(deal_id)
    if party.side() is not Side.BUYER:
        raise Forbidden(
            "A seller can't make the first offer. Wait for the buyer's offer, then make a"
            " counteroffer."
        )
    message = MakeOffer(
        deal_id=deal_id,
        offer_id=new_id("offer"),
        terms=data.offer_terms(),
        by=caller().user_id,
        at=now(),
    )
    return await told(party, message), 201


@routes.post("/offers/<offer_id>/<any(accept, reject, withdraw):verb>")
@session
@idempotent
async def answer_offer(offer_id: str, verb: str) -> DealAnswer:
    """Accept or reject the other party's offer, or withdraw one's own."""
    party = await party_to_offer(offer_id)
    message = AnswerOffer(
        deal_id=party.deal.id,
        offer_id=offer_id,
        verb=verb,
        side=party.side(),
        by=caller().user_id,
        at=now(),
    )
    return await told(party, message)


@routes.post("/offers/<offer_id>/counter")
@session
@idempotent
async def counter_offer(offer_id: str, data: NewOffer) -> tuple[DealAnswer, Created]:
    """Answer an offer with one of one's own."""
    party = await party_to_offer(offer_id)
    message = AnswerOffer(
        deal_id=party.deal.id,
        offer_id=offer_id,
        verb="counter",
        side=party.side(),
        by=caller().user_id,
        at=now(),
        counter_id=new_id("offer"),
        counter=data.offer_terms(),
    )
    return await told(party, message), 201


async def party_to_offer(offer_id: str) -> Party:
    """Tell who the caller is in the deal of an offer; 404 for who is nobody in it."""
    found = await deals.deal_of_offer(service().database, offer_id)
    if found is None:
        raise NotFound(
            "This offer doesn't exist, or you don't have access to it. Check the link or the id."
        )
    try:
        return await party_to(found[0].id)
    except NotFound as error:
        raise NotFound(
            "This offer doesn't exist, or you don't have access to it. Check the link or the id."
        ) from error
