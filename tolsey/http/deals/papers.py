"""Render the legal documents of a deal from versioned templates (rules/marketplace#signatures)."""

from typing import Final

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined

from tolsey.actors.listing.deals.marks import INSPECTION_DAYS
from tolsey.actors.listing.deals.metrics import compared
from tolsey.actors.listing.deals.signatures.signing import DocumentDraft, WriteNda
from tolsey.http.answers.market.deals import DealFiguresAnswer
from tolsey.http.layout.catalogue import ENGLISH, read_in
from tolsey.http.layout.words import money
from tolsey.storage.database import Database
from tolsey.storage.people import accounts
from tolsey.storage.records.selling.deals import DealOffer, DealThread
from tolsey.storage.records.selling.listing import ListingRecord

VERSIONS: Final = {"NDA": "nda-2026-11-b", "LOI": "loi-2026-11-c", "APA": "apa-2026-11-c"}
"""The template version of new documents. New wording is a new file; published files never change."""
# The wording is what gets signed, so it is never translated.
TEMPLATES: Final = Environment(
    loader=PackageLoader("tolsey.http.deals", "documents"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)


async def nda_writer(database: Database, base_url: str, seller_id: str, buyer_id: str) -> WriteNda:
    """Read the names of a deal's parties, and return the function that renders its NDA."""
    names = await accounts.names_of(database, [seller_id, buyer_id])

    def write_nda(deal: DealThread, listing: ListingRecord, signature_id: str) -> DocumentDraft:
        text = render_document(
            "NDA", deal, listing, seller_name=names[seller_id], buyer_name=names[buyer_id]
        )
        return DocumentDraft(
            text=text,
            template_version=VERSIONS["NDA"],
            hosted_url=document_url(base_url, signature_id),
        )

    return write_nda


def document_url(base_url: str, signature_id: str) -> str:
    """Return the address at which the parties read a document."""
    return f"{base_url}/api/marketplace/signatures/{signature_id}/document"


@read_in(ENGLISH)
def render_document(
    document_type: str,
    deal: DealThread,
    listing: ListingRecord,
    *,
    offer: DealOffer | None = None,
    seller_name: str,
    buyer_name: str,
    figures: DealFiguresAnswer | None = None,
    agreed: DealFiguresAnswer | None = None,
) -> str:
    """Render a document in its present template version as one self-contained HTML page, in English."""
    version = VERSIONS[document_type]
    price = money(deal.price, deal.currency) if deal.price and deal.currency else ""
    return TEMPLATES.get_template(f"{version}.html").render(
        version=version,
        deal=deal,
        offer=offer,
        listing=listing,
        seller_name=seller_name,
        buyer_name=buyer_name,
        price=price,
        terms=_list_terms(offer) if offer else [],
        contingencies=orjson.loads(offer.contingencies) if offer else [],
        assets=orjson.loads(listing.included_assets),
        excluded=orjson.loads(listing.excluded_assets),
        inspection_days=INSPECTION_DAYS,
        revenue=_describe_revenue(figures),
        agreed=_describe_revenue(agreed),
        move=compared(agreed.model_dump(by_alias=False), figures.model_dump(by_alias=False))
        if figures is not None and agreed is not None
        else None,
    )


def _describe_revenue(figures: DealFiguresAnswer | None) -> str:
    """Return the verified revenue with its period, source, definition and status; empty if no revenue is verified."""
    if figures is None or figures.revenue30d is None or figures.currency is None:
        return ""
    end = figures.window_end.strftime("%Y-%m-%d %H:%M UTC") if figures.window_end else ""
    amount = money(figures.revenue30d, figures.currency)
    return (
        f"{amount} in the 30 days before {end} (source: {figures.source};"
        f" definition: {figures.definition}; status: {figures.state})"
    )


def _list_terms(offer: DealOffer) -> list[tuple[str, str]]:
    """List an offer's payment terms as pairs of label and value."""
    terms = orjson.loads(offer.terms)
    found = []
    if financing := terms.get("sellerFinancing"):
        found += [
            ("Down payment", money(financing["downPayment"], offer.currency)),
            ("Financing term", f"{financing['months']} months"),
            ("Interest rate", f"{financing['rate']:g}% per year"),
        ]
    if earnout := terms.get("earnout"):
        found += [
            ("Earnout metric", earnout["metric"]),
            ("Earnout cap", money(earnout["cap"], offer.currency)),
            ("Earnout term", f"{earnout['months']} months"),
        ]
    return found
