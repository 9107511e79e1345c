"""Shapes that tools share: money, ids and times as agents get and give them (rules/agents#tools)."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import orjson
from pydantic import AfterValidator, BeforeValidator, Field

from tolsey.actors.refusals import NotFound
from tolsey.http.answers.money.credits import MoneyAnswer, in_dollars, written_out
from tolsey.http.mcp.tools.building import ToolAnswer
from tolsey.http.mcp.tools.shop_words import ShopText, ShopValues
from tolsey.storage.records.money.currencies import in_units

LARGEST: Final = 2**63 - 1
LONGEST: Final = 19
GID: Final = re.compile(r"gid://shopify/(\w+)/([0-9]+)", re.ASCII)
"""How the platform itself writes the id of a thing: with what it is."""
RFC_3339: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def _of(kind: str) -> AfterValidator:
    """Take the platform's own id of such a thing as ours; of anything else it is no id."""

    def read(id: str) -> str:
        found = GID.fullmatch(id)
        if found is None:
            return id
        if found[1] != kind:
            raise ValueError(f"must be an id of type {kind}, but this id has the type {found[1]}")
        return found[2]

    return AfterValidator(read)


def _instant(given: object) -> datetime:
    """Read a time of RFC 3339; one without a zone names no instant."""
    try:
        if isinstance(given, str) and RFC_3339.fullmatch(given):
            return datetime.fromisoformat(given.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        pass  # a date that is in no calendar
    raise ValueError("must be a time with a time zone, for example 2026-11-01T00:00:00Z")


def one_of(known: Mapping[str, str]) -> AfterValidator:
    """Take one of the platform's words in any case as our own, and refuse others with all of them."""

    def read(given: str) -> str:
        found = known.get(given.strip().lower())
        if found is None:
            raise ValueError(f"must be one of {', '.join(known)}")
        return found

    return AfterValidator(read)


def said_of(known: Mapping[str, str]) -> Any:
    """Name the words that are taken."""
    return Field(description=f"{', '.join(known)}; in any case.")


OrderId = Annotated[str, _of("Order")]
ProductId = Annotated[str, _of("Product")]
VariantId = Annotated[str, _of("ProductVariant")]
FulfilmentOrderId = Annotated[str, _of("FulfillmentOrder")]
FulfilmentId = Annotated[str, _of("Fulfillment")]
LineId = Annotated[str, _of("LineItem")]
ItemId = Annotated[str, _of("InventoryItem")]
LocationId = Annotated[str, _of("Location")]
Instant = Annotated[datetime, BeforeValidator(_instant)]
Pseudonym = Annotated[
    str, Field(pattern=r"^s1:[0-9a-f]{64}$", description="The buyer's pseudonym.")
]
"""A buyer as this store knows them, and no other does."""


def _id_of(number: int | None) -> str | None:
    """Write an id, where there is one."""
    return None if number is None else str(number)


def _tags_of(said: str | None) -> list[str]:
    """Read tags as the platform writes them, between commas."""
    return [tag.strip() for tag in (said or "").split(",") if tag.strip()]


Id = Annotated[str, BeforeValidator(str)]
"""An id as agents get it; kept as a number."""
MaybeId = Annotated[str | None, BeforeValidator(_id_of)]
Tags = Annotated[list[ShopText], BeforeValidator(_tags_of)]


def _values_of(written: str | None) -> Any:
    """Read what was kept as JSON, where there is any, with its amounts as agents get them."""
    return None if written is None else written_out(orjson.loads(written))


Values = Annotated[ShopValues | None, BeforeValidator(_values_of)]


class DecimalMoney(ToolAnswer):
    """An amount as decimal text, in its currency."""

    amount: str
    currency: str


def money(minor: int | None, currency: str | None) -> DecimalMoney | None:
    """Write an amount of minor units; None where it or its currency is not known."""
    if minor is None or currency is None:
        return None
    return known_money(minor, currency)


def written_money(amount: str | None, currency: str | None) -> DecimalMoney | None:
    """Take an amount that is decimal text already; None where it or its currency is not known."""
    if amount is None or currency is None:
        return None
    return DecimalMoney(amount=amount, currency=currency)


def known_money(minor: int, currency: str) -> DecimalMoney:
    """Write an amount of minor units."""
    return DecimalMoney(amount=f"{in_units(minor, currency):f}", currency=currency)


def _amount_of(known: MoneyAnswer | None) -> DecimalMoney | None:
    """Write an amount as agents get it."""
    return None if known is None else known_money(known.amount, known.currency)


Amount = Annotated[DecimalMoney | None, BeforeValidator(_amount_of)]


def _dollars(micro: int) -> DecimalMoney:
    """Write micro-USD with as many digits as it has, two at least."""
    return DecimalMoney(amount=f"{in_dollars(micro):f}", currency="USD")


Dollars = Annotated[DecimalMoney, BeforeValidator(_dollars)]
"""Micro-USD, as agents get them."""


def number_of(id: str, what: str) -> int:
    """Read the number behind an id; what is none is the id of nothing."""
    if id.isascii() and id.isdecimal() and len(id) <= LONGEST and int(id) <= LARGEST:
        return int(id)
    raise NotFound(f"This {what} doesn't exist, or you don't have access to it. Check the id.")
