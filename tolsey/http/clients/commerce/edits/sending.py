"""Changes of shops on their way: each is looked at and sent as its kind says.

Beside the platform's answers nothing is taken for granted: a change whose answer cannot be read may
have been made.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from tolsey.actors.bodies import lenient
from tolsey.actors.edit import Edit
from tolsey.actors.ports import EditRefused, PlatformUnreachable, Shop
from tolsey.actors.store.editing import edits
from tolsey.http.clients.commerce.answers import GraphqlAnswer, plain
from tolsey.http.clients.commerce.calls import Calls
from tolsey.http.clients.commerce.edits.discounts import DiscountWay
from tolsey.http.clients.commerce.edits.drafts import CollectionWay, PageWay
from tolsey.http.clients.commerce.edits.fulfilment import FulfilWay, TrackWay
from tolsey.http.clients.commerce.edits.orders import NoteWay, TagsWay
from tolsey.http.clients.commerce.edits.products import PriceWay, ProductWay, StockWay
from tolsey.http.clients.commerce.edits.refunds import RefundWay
from tolsey.http.clients.commerce.edits.setup import FileWay, LocationWay, MarketWay, RatesWay
from tolsey.http.clients.commerce.edits.things import catalogue, growth, storefront
from tolsey.http.clients.commerce.edits.way import EditWay
from tolsey.runtime.tasks import together

if TYPE_CHECKING:
    from tolsey.http.clients.commerce.edits.batching import LookBatch

WAYS: Final[Mapping[str, EditWay]] = {
    edits.PRODUCT: ProductWay(),
    edits.PRICE: PriceWay(),
    edits.STOCK: StockWay(),
    edits.NOTE: NoteWay(),
    edits.TAGS: TagsWay(),
    edits.FULFILMENT: FulfilWay(),
    edits.TRACKING: TrackWay(),
    edits.REFUND: RefundWay(),
    edits.DISCOUNT: DiscountWay(),
    edits.COLLECTION: CollectionWay(),
    edits.PAGE: PageWay(),
    edits.LOCATION: LocationWay(),
    edits.MARKET: MarketWay(),
    edits.RATES: RatesWay(),
    edits.FILE: FileWay(),
    edits.NEW_PRODUCT: catalogue.NewProductWay(),
    edits.OPENING_STOCK: catalogue.OpeningStockWay(),
    edits.NEW_COLLECTION: catalogue.NewCollectionWay(),
    edits.PUBLISHED: catalogue.PublishedWay(),
    edits.CORE_PAGE: storefront.CorePageWay(),
    edits.POLICY: storefront.PolicyWay(),
    edits.MENU: storefront.MenuWay(),
    edits.THEME: storefront.ThemeWay(),
    edits.THEME_FILES: storefront.ThemeFilesWay(),
    edits.PRODUCT_SEO: growth.ProductSeoWay(),
    edits.SEO_FIELDS: growth.SeoFieldsWay(),
    edits.ALT_TEXT: growth.AltTextWay(),
    edits.REDIRECT: growth.RedirectWay(),
    edits.CONSENT: growth.ConsentWay(),
    edits.PIXEL: growth.PixelWay(),
    edits.WELCOME_CODE: growth.WelcomeCodeWay(),
    edits.SEGMENT: growth.SegmentWay(),
}
STALE: Final = "CHANGE_FROM_QUANTITY_STALE"
UNDER_WAY: Final = "IDEMPOTENCY_CONCURRENT_REQUEST"
"""The same key is being worked on: what became of it is not known yet."""
DENIED: Final = "ACCESS_DENIED"


async def look(calls: Calls, shop: Shop, edit: Edit) -> dict[str, Any] | None:
    """Read what an edit is about as it is now; None when the shop has no such thing."""
    way = WAYS[edit.kind]
    asked = way.look(edit)
    return way.found(edit, await calls.ask(shop, asked.text, asked.variables))


async def look_all(
    calls: Calls, shop: Shop, some: Sequence[Edit], *, at_once: int
) -> list[dict[str, Any] | None]:
    """Read what many edits are about, in as few requests as that takes, so many of them at once."""
    places = anyio.CapacityLimiter(at_once)
    found: list[dict[str, Any] | None] = [None] * len(some)

    async def ask(batch: "LookBatch") -> None:
        async with places:
            data = await calls.ask(shop, batch.document.text, batch.document.variables)
        for place, own in batch.answers(data):
            found[place] = WAYS[some[place].kind].found(some[place], own)

    asked = [WAYS[one.kind].look(one) for one in some]
    from tolsey.http.clients.commerce.edits.batching import batches  # noqa: PLC0415 - imports graphql, which is slow

    await together([partial(ask, batch) for batch in batches(asked)])
    return found


async def change(calls: Calls, shop: Shop, edit: Edit, key: str) -> dict[str, Any]:
    """Make the change of an edit and answer what the thing is then; sent once, whatever becomes of it."""
    way = WAYS[edit.kind]
    sent = way.change(edit, key)
    answer = await calls.ask_partly(shop, sent.text, sent.variables, repeatable=False)
    return way.made(edit, _payload(answer, sent.field))


def _payload(answer: GraphqlAnswer, field: str) -> Mapping[str, Any]:
    """Take what a mutation answered, or raise what the platform says against it."""
    payload = answer.data.get(field)
    if not isinstance(payload, dict):
        for fault in answer.faults:
            if fault.code == DENIED:
                raise fault.denied(403)
            if not fault.path:
                raise fault.denied(400)
        raise PlatformUnreachable(
            "Shopify's response doesn't state the outcome. Check the shop before you repeat the"
            " change."
        )
    errors = payload.get("userErrors")
    for error in errors if isinstance(errors, list) else ():
        said = lenient(error)
        if said.get("code") == UNDER_WAY:
            raise PlatformUnreachable(
                "Shopify is still processing the same change. Try again in a moment."
            )
        message = plain(
            str(
                said.get("message")
                or "Shopify rejected the change. Check its values and try again."
            )
        )
        raise EditRefused(message, stale=said.get("code") == STALE, code=said.get("code"))
    return payload
