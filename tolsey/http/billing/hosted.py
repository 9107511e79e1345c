"""Where the payment processor's own pages are, to which forms of ours lead."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from tolsey.http.web.context import service

HOSTED_PAGES: Final = (
    "https://checkout.stripe.com",
    "https://billing.stripe.com",
    "https://connect.stripe.com",
)
"""Buying, invoices and cards, and who is paid."""


def hosted_pages() -> Sequence[str]:
    """List where a form may be sent on to: browsers ask the page that holds the form."""
    base = service().settings.payments_api_base
    if base is None:
        return HOSTED_PAGES
    parts = urlsplit(base)
    return (f"{parts.scheme}://{parts.netloc}",)
