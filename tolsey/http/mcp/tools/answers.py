"""Shapes that answers share: money, ids and times as agents get them (product/mcp.md, 5.3)."""

from decimal import Decimal
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from tolsey.actors.refusals import NotFound
from tolsey.http.mcp.tools.building import Answer
from tolsey.storage.records.money.currencies import EXPONENTS

LARGEST: Final = 2**63 - 1
LONGEST: Final = 19
LONGEST_ID: Final = 64
MICRO_DIGITS: Final = 6
CENT: Final = Decimal("0.01")


def _short(id: str) -> str:
    """Refuse what is longer than any id; said here, since no agent makes ids up."""
    if len(id) > LONGEST_ID:
        raise ValueError("This is no id.")
    return id


Id = Annotated[str, AfterValidator(_short)]
"""An id as we gave it out; nothing is to be read from it."""
Pseudonym = Annotated[str, Field(pattern=r"^s1:[0-9a-f]{64}$")]
"""A buyer as this store knows them, and no other does."""


class Money(Answer):
    """An amount as decimal text, in its currency."""

    amount: str
    currency: str


def money(minor: int | None, currency: str | None) -> Money | None:
    """Write an amount of minor units; None where it or its currency is not known."""
    if minor is None or currency is None:
        return None
    return Money(amount=decimal(minor, currency), currency=currency)


def known_money(minor: int, currency: str) -> Money:
    """Write an amount of minor units."""
    return Money(amount=decimal(minor, currency), currency=currency)


def decimal(minor: int, currency: str) -> str:
    """Write minor units as decimal text."""
    return f"{Decimal(minor).scaleb(-EXPONENTS.get(currency, 2)):f}"


def dollars(micro: int) -> Money:
    """Write micro-USD with as many digits as it has, two at least."""
    amount = Decimal(micro).scaleb(-MICRO_DIGITS)
    cents = amount.quantize(CENT)
    return Money(amount=f"{cents if cents == amount else amount.normalize():f}", currency="USD")


def number_of(id: str, what: str) -> int:
    """Read the number behind an id; what is none is the id of nothing."""
    if id.isascii() and id.isdecimal() and len(id) <= LONGEST and int(id) <= LARGEST:
        return int(id)
    raise NotFound(f"There is no such {what}.")
