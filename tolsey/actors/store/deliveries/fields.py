"""Single fields of a platform's body: what we keep of it, or why it cannot be read.

The platform sends nulls where its documents promise values, numbers where they promise text, and
identifiers beyond 2**53. Absent and null are the same; a wrong type is refused by name.
"""

from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import partial

from tolsey.actors import bodies
from tolsey.actors.bodies import Body, Unreadable, short_texts
from tolsey.storage.records.money.currencies import to_minor

BIGINT = 1 << 63
MONEY_DIGITS = 15
"""Amounts of more digits before the point are no money; 10**15 minor units still fit a bigint."""
YEARS = range(1990, 2200)
CURRENCY_LETTERS = 3

text = bodies.text
clean = partial(bodies.clean, limit=bodies.TEXT_CHARACTERS)


def number(body: Body, field: str) -> int | None:
    """Read a whole number that fits a bigint."""
    value = body.get(field)
    if value is None:
        return None
    if type(value) is not int or not -BIGINT <= value < BIGINT:
        raise Unreadable(field, "not a 64-bit integer")
    return value


def identifier(body: Body, field: str) -> int:
    """Read the platform's id of a thing."""
    value = body.get(field)
    if type(value) is not int or not 0 < value < BIGINT:
        raise Unreadable(field, "not an id")
    return value


def flag(body: Body, field: str) -> bool | None:
    """Read a yes or no."""
    value = body.get(field)
    if value is None or type(value) is bool:
        return value
    raise Unreadable(field, "not true or false")


def moment(body: Body, field: str) -> datetime | None:
    """Read a time; one without a zone is refused, since it names no instant."""
    value = body.get(field)
    return None if value is None else instant(value, field)


def instant(value: object, field: str) -> datetime:
    """Read RFC 3339 text, with more digits than microseconds if it likes."""
    if type(value) is not str:
        raise Unreadable(field, "not a time")
    try:
        read = datetime.fromisoformat(value)
        if read.tzinfo is None or read.year not in YEARS:
            raise Unreadable(field, "not an instant")
        return read.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Unreadable(field, "not a time") from error


def currency(body: Body, field: str) -> str | None:
    """Read a currency code of ISO 4217."""
    value = body.get(field)
    if value is None:
        return None
    if (
        type(value) is not str
        or len(value) != CURRENCY_LETTERS
        or not (value.isascii() and value.isalpha() and value.isupper())
    ):
        raise Unreadable(field, "not a currency")
    return value


def amount(value: object, field: str) -> Decimal:
    """Read an amount, which the platform writes as text in one place and as number in another."""
    kind = type(value)
    if kind is str or kind is int or kind is float:
        try:
            read = Decimal(str(value))
        except InvalidOperation as error:
            raise Unreadable(field, "is not a valid amount") from error
        # Checked before any arithmetic: 1E+999999999 is short text and a huge number.
        if read.is_finite() and -MONEY_DIGITS <= read.adjusted() < MONEY_DIGITS:
            return read
    raise Unreadable(field, "is not a valid amount")


def minor(body: Body, field: str, code: str | None) -> int | None:
    """Read an amount in minor units of a currency; None where it or the currency is absent."""
    value = body.get(field)
    if value is None or code is None:
        return None
    return to_minor(amount(value, field), code)


def texts(body: Body, field: str, limit: int) -> tuple[str, ...]:
    """Read a list of short texts."""
    return tuple(bodies.clean(one, 100) for one in short_texts(body, field)[:limit])
