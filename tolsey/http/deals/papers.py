"""The text of what parties sign: versioned templates, filled with the deal as it stands."""

from typing import Final

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined

from tolsey.actors.listing.deals.marks import INSPECTION_DAYS
from tolsey.actors.listing.deals.messages import DealView
from tolsey.http.layout.words import money
from tolsey.storage.records.selling.listing import ListingRecord

VERSIONS: Final = {"NDA": "nda-2026-11", "LOI": "loi-2026-11", "APA": "apa-2026-11"}
"""The form that is signed now; a change of words is a new file, and the old ones stay."""
# Their words are signed, so no catalogue translates them.
FORMS: Final = Environment(
    loader=PackageLoader("tolsey.http.deals", "documents"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)


def written(
    document_type: str,
    view: DealView,
    listing: ListingRecord,
    *,
    seller_name: str,
    buyer_name: str,
) -> str:
    """Write a document of a deal, as one self-contained page of HTML."""
    deal, offer, version = view.deal, view.offer, VERSIONS[document_type]
    price = money(deal.price, deal.currency) if deal.price and deal.currency else ""
    return FORMS.get_template(f"{version}.html").render(
        version=version,
        deal=deal,
        offer=offer,
        listing=listing,
        seller_name=seller_name,
        buyer_name=buyer_name,
        price=price,
        terms=_flat(offer.terms if offer else "{}"),
        contingencies=orjson.loads(offer.contingencies) if offer else [],
        assets=orjson.loads(listing.included_assets),
        excluded=orjson.loads(listing.excluded_assets),
        inspection_days=INSPECTION_DAYS,
    )


def _flat(terms: str) -> list[tuple[str, str]]:
    return [
        (f"{kind}.{name}", str(value))
        for kind, fields in orjson.loads(terms).items()
        for name, value in fields.items()
    ]
