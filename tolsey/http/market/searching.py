"""What a buyer looks for among listings on the market, and what is found."""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from tolsey.http.answers.base import ListAnswer
from tolsey.http.answers.market.selling import PublicListingAnswer
from tolsey.http.selling.bodies import LARGEST_AMOUNT, Country, Currency
from tolsey.http.selling.listing_views import to_anyone
from tolsey.http.web.context import now, service
from tolsey.http.web.paging import InvalidCursor, PageQuery, cut
from tolsey.storage.selling import market
from tolsey.storage.selling.market import MarketHit, MarketSearch

Amount = Annotated[int, Field(ge=0, le=LARGEST_AMOUNT)]
Typed = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]
Order = Literal["newest", "price_asc", "price_desc", "revenue_asc", "revenue_desc"]


class MarketQuery(PageQuery):
    """What to look for; amounts are minor units of `currency`, revenue is the verified one of 30 days as it is shown."""

    q: Typed | None = None
    status: Literal["ACTIVE", "UNDER_OFFER", "PAUSED", "SOLD"] | None = None
    category: Typed | None = None
    business_model: Typed | None = None
    country: Country | None = None
    currency: Currency | None = None
    min_price: Amount | None = None
    max_price: Amount | None = None
    min_revenue: Amount | None = None
    max_revenue: Amount | None = None
    verified: bool | None = None
    financing: bool | None = None
    sort: Order = "newest"

    @model_validator(mode="after")
    def _amounts_of_a_currency(self) -> Self:
        given = (self.min_price, self.max_price, self.min_revenue, self.max_revenue)
        # No amount is converted without a rate (rules/revenue#currencies).
        if self.currency is None and (
            self.sort != "newest" or any(one is not None for one in given)
        ):
            raise ValueError("amounts can be compared only in one currency; send currency")
        return self

    @property
    def search(self) -> MarketSearch:
        """Say it in the service's own words."""
        return MarketSearch(
            words=self.q or None,
            status=self.status,
            category=self.category or None,
            business_model=self.business_model or None,
            country=self.country,
            currency=self.currency,
            least_price=self.min_price,
            most_price=self.max_price,
            least_revenue=self.min_revenue,
            most_revenue=self.max_revenue,
            verified=self.verified,
            financing=self.financing,
            order=self.sort,
        )

    @property
    def after_hit(self) -> tuple[int | None, str] | None:
        """The key and the id of the last listing of the page before; None for the first page."""
        if not self.after:
            return None
        key, _, id = self.after.rpartition("|")
        if (self.sort == "newest") is bool(key):
            raise InvalidCursor
        try:
            return (int(key) if key else None), id
        except ValueError as error:
            raise InvalidCursor from error


async def page(wanted: MarketQuery) -> tuple[Sequence[MarketHit], str | None]:
    """Find a page of listings on the market, and the cursor of the next."""
    found = await market.search(
        service().database,
        wanted.search,
        after=wanted.after_hit,
        at=now(),
        limit=wanted.limit + 1,
    )
    return cut(found, wanted.limit, key=_key)


async def listed(wanted: MarketQuery) -> ListAnswer[PublicListingAnswer]:
    """Answer with a page of listings on the market."""
    hits, cursor = await page(wanted)
    at = now()
    return ListAnswer(items=[to_anyone(hit.view, at) for hit in hits], next_cursor=cursor)


def _key(hit: MarketHit) -> str:
    id = hit.view.listing.id
    return id if hit.key is None else f"{hit.key}|{id}"
