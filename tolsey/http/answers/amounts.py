"""Money in whole units, to its last digit: what is kept as minor units or as micro-USD."""

from decimal import Decimal

from tolsey.storage.records.money.currencies import EXPONENTS


def in_units(minor: int, currency: str) -> Decimal:
    """Give an amount of minor units, with as many digits as the currency has."""
    return Decimal(minor).scaleb(-EXPONENTS.get(currency, 2))


def in_digits_of(amount: Decimal, currency: str) -> Decimal:
    """Write an amount of whole units with the digits of its currency, or with those that it has beyond."""
    exact = amount.quantize(Decimal(1).scaleb(-EXPONENTS.get(currency, 2)))
    return exact if exact == amount else amount.normalize()


def in_dollars(micro: int) -> Decimal:
    """Give micro-USD to the cent, and on to the last digit where fractions of a cent are left."""
    return in_digits_of(Decimal(micro).scaleb(-6), "USD")
