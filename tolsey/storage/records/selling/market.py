"""What is kept beside listings for whoever looks for one: an index of them, and who watches."""

from datetime import datetime
from typing import Annotated, Final

from tolsey.storage.owners import OF_LISTINGS, OF_LISTINGS_OF_STORE, OF_USER
from tolsey.storage.tables import Personal, SearchedWords, bare

ENTRIES: Final = bare(
    "market_entries",
    {
        "listing_id": str,
        "words": Annotated[str, SearchedWords],
        "status": str,
        "category": str | None,
        "business_model": str | None,
        "country": str | None,
        "currency": str,
        "price": int,
        "financing": bool,
        "verified_until": datetime | None,
        "revenue_until": datetime | None,
        "revenue_currency": str | None,
        "revenue_low": int | None,
        "revenue_high": int | None,
    },
    key=("listing_id",),
    belongs=(OF_LISTINGS, OF_LISTINGS_OF_STORE),
    unexported="An index of listings, which an export has.",
)
WATCHERS: Final = bare(
    "listing_watchers",
    {"listing_id": str, "user_id": Annotated[str, Personal.USER], "since": datetime},
    key=("listing_id", "user_id"),
    belongs=(OF_USER, OF_LISTINGS, OF_LISTINGS_OF_STORE),
    export="watchedListings",
)
VIEWS: Final = bare(
    "listing_views",
    {"listing_id": str, "views": int},
    key=("listing_id",),
    belongs=(OF_LISTINGS, OF_LISTINGS_OF_STORE),
    export="listingViews",
)
