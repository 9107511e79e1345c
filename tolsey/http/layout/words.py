"""Amounts, numbers and moments as the reader writes them: in their language, and in their time zone."""

from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from babel.dates import format_date, format_datetime
from babel.numbers import format_currency, format_decimal, get_decimal_symbol

from tolsey.actors.organization import plans
from tolsey.http.answers.money.credits import in_dollars
from tolsey.http.layout.catalogue import language
from tolsey.storage.records.money.currencies import in_units

CENT: Final = plans.MICRO_PER_CENT
DOLLAR: Final = 100 * CENT
DAYS: Final = {"en": "d MMM y", "de": "d. MMM y"}
MOMENTS: Final = {"en": "d MMM y, HH:mm z", "de": "d. MMM y, HH:mm z"}
MONEY: Final = {"en": "{code} {number}", "de": "{number} {code}"}
"""How an amount and the code of its currency stand beside each other."""

_zone: ContextVar[tzinfo] = ContextVar("zone", default=UTC)


def tell_time_in(name: str) -> None:
    """Tell times in a zone until the request ends; in UTC where there is no such zone."""
    _zone.set(ZoneInfo(name) if name in _zones() else UTC)


@cache
def _zones() -> frozenset[str]:
    """Read once which zones this machine knows: what a browser says is no path to a file."""
    return frozenset(available_timezones())


def dollars(cents: int) -> str:
    """Write an amount of cents; whole dollars without any."""
    return whole_credit(cents * CENT)


def credit(micro: int) -> str:
    """Write credits: to the cent, and on to the last digit where fractions of a cent are left."""
    amount = in_dollars(abs(micro)) * (-1 if micro < 0 else 1)
    return format_currency(amount, "USD", locale=language(), decimal_quantization=False)


def whole_credit(micro: int) -> str:
    """Write credits of a plan: whole dollars without any cents."""
    written = credit(micro)
    return written if micro % DOLLAR else written.replace(f"{get_decimal_symbol(language())}00", "")


def moved(micro: int) -> str:
    """Write by how much a balance moved."""
    return f"+{credit(micro)}" if micro > 0 else credit(micro)


def money(minor: int | None, currency: str | None) -> str:
    """Write an amount of minor units for people to read; nothing where there is none."""
    if minor is None or currency is None:
        return ""
    return _written(in_units(minor, currency), currency)


def whole_money(minor: int | None, currency: str | None) -> str:
    """Write an amount as `money` does, but whole units without a fraction of zeros."""
    if minor is None or currency is None:
        return ""
    amount = in_units(minor, currency)
    is_whole = amount == amount.to_integral_value()
    return _written(amount.to_integral_value() if is_whole else amount, currency)


def _written(amount: Decimal, currency: str) -> str:
    digits = max(-int(amount.as_tuple().exponent), 0)
    pattern = "#,##0" + ("." + "0" * digits if digits else "")
    written = format_decimal(amount, pattern, locale=language())
    return MONEY[language()].format(number=written, code=currency)


def number(value: float | Decimal) -> str:
    """Write a number to six digits, with its thousands apart."""
    return format_decimal(float(f"{value:.6g}"), "#,##0.######", locale=language())


def day(at: datetime) -> str:
    """Write the day of a moment, in the reader's zone."""
    return format_date(at.astimezone(_zone.get()).date(), DAYS[language()], locale=language())


def moment(at: datetime) -> str:
    """Write a moment to the minute, in the reader's zone, which it names."""
    return format_datetime(at, MOMENTS[language()], tzinfo=_zone.get(), locale=language())


def iso(at: datetime) -> str:
    """Write a moment for programs, to the second, in UTC."""
    return at.astimezone(UTC).isoformat(timespec="seconds")
