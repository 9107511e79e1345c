"""The public catalogue of a storefront, page by page, in bounded memory.

A page may hold anything: what is no product is counted and left, and a body that would blow up when it
is parsed is refused by counting its brackets first, at the speed of memory.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import orjson

from tolsey.actors.bodies import clean
from tolsey.actors.storefront.observed import ObservedProduct, ObservedVariant

PER_PAGE: Final = 250
"""More the platform gives on no page."""
MOST_BRACKETS: Final = 200_000
MOST_COMMAS: Final = 1_000_000
MOST_VARIANTS: Final = 100_000
"""So many variants of one catalogue are kept in memory; what stands behind them is not read."""
VARIANTS_OF_ONE: Final = 2_048
TITLE_CHARACTERS: Final = 255
WORD_CHARACTERS: Final = 120
MOST_DIGITS: Final = 12
LARGEST: Final = 2**53


class NotACatalogue(Exception):  # noqa: N818 - what a body is
    """A body is no page of products; the sentence says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPage:
    """The products of a page, and how many entries were none."""

    products: tuple[ObservedProduct, ...]
    listed: int
    unread: int


def read_page(body: bytes) -> ProductPage:
    """Read a page of `products.json`. Raises NotACatalogue."""
    entries = _entries(body)
    products, unread = list[ObservedProduct](), 0
    for entry in entries[:PER_PAGE]:
        product = _product(entry)
        if product is None:
            unread += 1
        else:
            products.append(product)
    # A page holds 250 at the most: what stands behind them comes from nobody who means well.
    unread += max(0, len(entries) - PER_PAGE)
    return ProductPage(products=tuple(products), listed=len(entries), unread=unread)


def _entries(body: bytes) -> list[Any]:
    brackets = body.count(b"{") + body.count(b"[")
    if brackets > MOST_BRACKETS or body.count(b",") > MOST_COMMAS:
        raise NotACatalogue("It has more parts than a page of products may.")
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise NotACatalogue("It is not JSON.") from error
    entries = found.get("products") if isinstance(found, dict) else None
    if not isinstance(entries, list):
        raise NotACatalogue("It lists no products.")
    return entries


def _product(entry: Any) -> ObservedProduct | None:
    if not isinstance(entry, dict):
        return None
    id = _number(entry.get("id"))
    variants = entry.get("variants")
    if not id or not isinstance(variants, list):
        return None
    return ObservedProduct(
        id=id,
        title=_text(entry, "title", TITLE_CHARACTERS),
        handle=_text(entry, "handle", TITLE_CHARACTERS),
        vendor=_text(entry, "vendor", WORD_CHARACTERS),
        product_type=_text(entry, "product_type", WORD_CHARACTERS),
        published_at=_moment(entry.get("published_at")),
        updated_at=_moment(entry.get("updated_at")),
        variants=tuple(_variants(variants)),
    )


def _variants(entries: list[Any]) -> Iterator[ObservedVariant]:
    for entry in entries[:VARIANTS_OF_ONE]:
        id = _number(entry.get("id")) if isinstance(entry, dict) else None
        if id:
            available = entry.get("available")
            yield ObservedVariant(
                id=id,
                title=_text(entry, "title", TITLE_CHARACTERS),
                sku=_text(entry, "sku", WORD_CHARACTERS),
                price=_price(entry.get("price")),
                compare_at_price=_price(entry.get("compare_at_price")),
                available=available if isinstance(available, bool) else None,
                quantity=_number(entry.get("inventory_quantity"), least=-LARGEST),
            )


def _text(entry: Mapping[str, Any], name: str, most: int) -> str:
    value = entry.get(name)
    return clean(value, most) if isinstance(value, str) else ""


def _number(value: Any, least: int = 0) -> int | None:
    """Take a whole number that a column and JSON both hold."""
    return value if type(value) is int and least <= value <= LARGEST else None


def _price(value: Any) -> Decimal | None:
    """Take an amount as the public catalogue writes it: decimal text, in units of its currency."""
    if not isinstance(value, str) or len(value) > MOST_DIGITS + 4:
        return None
    try:
        price = Decimal(value)
    except InvalidOperation:
        return None
    return price if price.is_finite() and 0 <= price < 10**MOST_DIGITS else None


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, str) or len(value) > 40:  # noqa: PLR2004 - RFC 3339 is shorter
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return None
