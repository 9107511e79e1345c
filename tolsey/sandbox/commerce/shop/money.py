"""Amounts of money: whole minor units inside the platform, text at its edge."""

from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

# ISO 4217 minor units that differ from two.
_DIGITS = {"JPY": 0, "KRW": 0, "VND": 0, "CLP": 0, "ISK": 0, "BHD": 3, "JOD": 3, "KWD": 3, "TND": 3}


class Money(NamedTuple):
    """An amount in minor units of one currency."""

    minor: int
    currency: str


def digits(currency: str) -> int:
    """Tell how many decimal places the currency has."""
    return _DIGITS.get(currency, 2)


def minor(written: object, currency: str) -> int:
    """Read an amount that was given as decimal text."""
    return round(Decimal(str(written)).scaleb(digits(currency)))


def plain(minor: int, currency: str) -> str:
    """Write an amount as webhook bodies do: `12.50`, or `1250` where there are no minor units."""
    places = digits(currency)
    if places == 0:
        return str(minor)
    sign = "-" if minor < 0 else ""
    whole, rest = divmod(abs(minor), 10**places)
    return f"{sign}{whole}.{rest:0{places}}"


@lru_cache(maxsize=16_384)
def decimal(minor: int, currency: str) -> str:
    """Write an amount as GraphQL answers do: no trailing zeros but always one place, `12.5`."""
    places = digits(currency)
    if places == 0:
        return f"{minor}.0"
    sign = "-" if minor < 0 else ""
    whole, rest = divmod(abs(minor), 10**places)
    return f"{sign}{whole}.{f'{rest:0{places}}'.rstrip('0') or '0'}"
