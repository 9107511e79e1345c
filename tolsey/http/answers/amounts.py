"""Money in whole units, to its last digit: what is kept as minor units or as micro-USD."""

from decimal import Decimal
from typing import Final

from tolsey.storage.records.money.currencies import EXPONENTS

CENT: Final = Decimal("0.01")


def in_units(minor: int, currency: str) -> Decimal:
    """Give an amount of minor units, with as many digits as the currency has."""
    return Decimal(minor).scaleb(-EXPONENTS.get(currency, 2))


def in_dollars(micro: int) -> Decimal:
    """Give micro-USD to the cent, and on to the last digit where fractions of a cent are left."""
    amount = Decimal(micro).scaleb(-6)
    cents = amount.quantize(CENT)
    return cents if cents == amount else amount.normalize()
