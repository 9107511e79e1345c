"""Asking for access on the page of a listing: how every deal begins."""

from quart import Blueprint, Response

from tolsey.actors.refusals import Refusal
from tolsey.http.deals import threads
from tolsey.http.deals.bodies_of_deals import AccessRequest
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, shown
from tolsey.http.layout.forms import Misfilled
from tolsey.http.market.visitors import visitor_of
from tolsey.http.selling.public import listing_at
from tolsey.http.selling.public_pages import listing_page
from tolsey.http.web.access import page

routes = Blueprint("access_pages", __name__, url_prefix="/listings/<slug>")
answer_with_pages(routes)


@routes.post("/access")
@page
async def ask_access(slug: str) -> Response:
    """Ask a seller to see more, and go on to the deal that this begins."""
    view, values = await listing_at(slug), await forms.sent()
    try:
        wanted = forms.read(AccessRequest, {name: said for name, said in values.items() if said})
        made, _status = await threads.request_access(view.listing.id, data=wanted)
    except (Misfilled, Refusal) as wrong:
        again = listing_page(view, await visitor_of(view, filled_again(values, wrong)))
        return shown(again, refusal=wrong)
    return sent_on(f"/deals/{made.id}")
