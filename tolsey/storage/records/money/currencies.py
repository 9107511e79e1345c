"""How many digits a currency has after the point, and amounts with as many."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

WHOLE: Final = (
    "BIF",
    "CLP",
    "DJF",
    "GNF",
    "ISK",
    "JPY",
    "KMF",
    "KRW",
    "PYG",
    "RWF",
    "UGX",
    "UYI",
    "VND",
    "VUV",
    "XAF",
    "XOF",
    "XPF",
)
EXPONENTS: Final[Mapping[str, int]] = {
    **dict.fromkeys(WHOLE, 0),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
    **dict.fromkeys(("CLF", "UYW"), 4),
}
"""Where they are not two (ISO 4217, list one)."""


def in_units(minor: int, currency: str) -> Decimal:
    """Give an amount of minor units, with as many digits as the currency has."""
    return Decimal(minor).scaleb(-EXPONENTS.get(currency, 2))


def to_minor(value: Decimal, currency: str) -> int:
    """Round an amount to whole minor units of its currency, half to even."""
    return round(value.scaleb(EXPONENTS.get(currency, 2)))
