"""The verified figures that documents of a deal name."""

from tolsey.actors.listing.deals.metrics import COMPARED_BY, FROZEN_BY
from tolsey.http.answers.market.deals import DealFiguresAnswer, DealMetricsAnswer
from tolsey.http.selling.attestation import verification_of
from tolsey.http.web.context import now, service
from tolsey.storage.selling import deals
from tolsey.storage.selling.listings import ListingView

NamedFigures = tuple[DealFiguresAnswer | None, DealFiguresAnswer | None]


def exact_figures(view: ListingView) -> DealFiguresAnswer:
    """Give the verified figures of now, exact however the public is shown them."""
    return DealFiguresAnswer.read(verification_of(view, now(), owner=True))


async def named_figures(document_type: str, deal_id: str, view: ListingView) -> NamedFigures:
    """Give the figures that a document names as they are now, and those of the letter of intent beside them."""
    if document_type not in (FROZEN_BY, COMPARED_BY):
        return None, None
    figures = exact_figures(view)
    if document_type == FROZEN_BY:
        return figures, None
    kept = await deals.agreed_metrics(service().database, deal_id)
    return figures, DealMetricsAnswer.of(kept).figures if kept is not None else None
