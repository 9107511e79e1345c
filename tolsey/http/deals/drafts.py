"""What agents prepared as answers to offers: a person of the party looks, and sends it as theirs or discards it."""

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.listing.deals.messages import DiscardOfferDraft
from tolsey.actors.listing.messages import listing
from tolsey.actors.refusals import NotFound
from tolsey.http.answers.base import NoBody, NoContent
from tolsey.http.answers.market.offers import OfferDraftAnswer
from tolsey.http.deals.offers import party_to_offer
from tolsey.http.deals.parties import Party
from tolsey.http.web.access import caller, session
from tolsey.http.web.context import ask, now, service
from tolsey.storage.records.selling.deals import OfferDraft
from tolsey.storage.selling import deals

routes = Blueprint("offer_drafts", __name__, url_prefix="/api/marketplace")
tag_blueprint(routes, ["Deals"])


@routes.get("/offers/<offer_id>/draft")
@session
async def get_offer_draft(offer_id: str) -> OfferDraftAnswer:
    """Read what an agent of one's own side prepared as the answer to an offer; the other side gets 404."""
    return OfferDraftAnswer.of(await _draft(await party_to_offer(offer_id), offer_id))


@routes.delete("/offers/<offer_id>/draft")
@session
async def discard_offer_draft(offer_id: str) -> tuple[NoBody, NoContent]:
    """Discard what an agent prepared."""
    party = await party_to_offer(offer_id)
    party.side()
    found = await _draft(party, offer_id)
    wish = DiscardOfferDraft(draft=found, by=caller().user_id, at=now())
    await ask(listing(party.deal.listing_id), wish)
    return "", 204


async def _draft(party: Party, offer_id: str) -> OfferDraft:
    for side in party.roles:
        found = await deals.draft_of(service().database, offer_id, side)
        if found is not None:
            return found
    raise NotFound(
        "No answer has been prepared for this offer. Answer the offer yourself, or ask an agent"
        " to prepare one."
    )
