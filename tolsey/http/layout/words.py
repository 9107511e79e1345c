"""Amounts and days as people read them; the filters of templates."""

from datetime import UTC, datetime
from typing import Final

from tolsey.actors.organization import plans
from tolsey.http.answers.money.credits import in_dollars
from tolsey.storage.records.money.currencies import in_units

CENT: Final = plans.MICRO_PER_CENT


def dollars(cents: int) -> str:
    """Write an amount of cents; whole dollars without any."""
    return whole_credit(cents * CENT)


def credit(micro: int) -> str:
    """Write credits: to the cent, and on to the last digit where fractions of a cent are left."""
    return f"{'-' if micro < 0 else ''}${in_dollars(abs(micro)):,f}"


def whole_credit(micro: int) -> str:
    """Write credits of a plan: whole dollars without any cents."""
    return credit(micro).removesuffix(".00")


def moved(micro: int) -> str:
    """Write by how much a balance moved."""
    return f"+{credit(micro)}" if micro > 0 else credit(micro)


def money(minor: int | None, currency: str | None) -> str:
    """Write an amount of minor units for people to read; nothing where there is none."""
    if minor is None or currency is None:
        return ""
    return f"{currency} {in_units(minor, currency):,f}"


def day(at: datetime) -> str:
    """Write the day of a moment, in UTC."""
    at = at.astimezone(UTC)
    return f"{at.day} {at:%b %Y}"


def moment(at: datetime) -> str:
    """Write a moment to the minute, in UTC."""
    at = at.astimezone(UTC)
    return f"{at.day} {at:%b %Y, %H:%M} UTC"


def iso(at: datetime) -> str:
    """Write a moment for programs, to the second, in UTC."""
    return at.astimezone(UTC).isoformat(timespec="seconds")
