"""Single fields of the processor's objects: what is kept of them, or why they cannot be read.

Absent and null are the same; a wrong type is refused by name, since a wrong guess moves money.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Final

from tolsey.actors import bodies
from tolsey.actors.bodies import Body, Unreadable, short_texts, table

ID: Final = re.compile(r"[!-~]{1,255}")
CURRENCY: Final = re.compile(r"[a-z]{3}")
MOST_CENTS: Final = 10**12
"""An amount beyond this is no payment of ours; every amount fits a bigint of micro-USD."""
MOMENTS: Final = range(7_258_118_400)
"""Seconds from 1970 to 2200."""
TEXT_CHARACTERS: Final = 500
MOST_ROWS: Final = 1_000

rows = partial(bodies.rows, most=MOST_ROWS)


@contextmanager
def within(where: str) -> Iterator[None]:
    """Name where in an object the fields stand that are read in the block."""
    try:
        yield
    except Unreadable as error:
        raise Unreadable(f"{where}.{error.field}", error.wanted) from error


def reference(body: Body, field: str) -> str | None:
    """Read the id of another object, which stands there alone or with the whole object."""
    value = body.get(field)
    if type(value) is dict:
        value = value.get("id")
    if value is None or value == "":
        return None
    if type(value) is not str or not ID.fullmatch(value):
        raise Unreadable(field, "not an id")
    return value


def identifier(body: Body, field: str = "id") -> str:
    """Read the id of the object itself, or of one that must be there."""
    found = reference(body, field)
    if found is None:
        raise Unreadable(field, "missing")
    return found


def text(body: Body, field: str, limit: int = TEXT_CHARACTERS) -> str | None:
    """Read a text, cut at a limit; NUL becomes U+FFFD, since no text column holds it."""
    return bodies.text(body, field, limit)


def word(body: Body, field: str) -> str:
    """Read a text that must be there, as a status."""
    found = text(body, field, 100)
    if not found:
        raise Unreadable(field, "missing")
    return found


def currency(body: Body) -> str:
    """Read a currency code of ISO 4217, in lower case as the processor writes it."""
    found = word(body, "currency").lower()
    if not CURRENCY.fullmatch(found):
        raise Unreadable("currency", "not a currency")
    return found


def number(body: Body, field: str) -> int | None:
    """Read a whole number."""
    value = body.get(field)
    if value is None:
        return None
    if type(value) is not int or abs(value) > MOST_CENTS:
        raise Unreadable(field, "not a whole number")
    return value


def cents(body: Body, field: str) -> int:
    """Read an amount in minor units that must be there; it may be below zero."""
    found = number(body, field)
    if found is None:
        raise Unreadable(field, "missing")
    return found


def paid_cents(body: Body, field: str) -> int:
    """Read an amount in minor units that cannot be below zero."""
    found = cents(body, field)
    if found < 0:
        raise Unreadable(field, "below zero")
    return found


def flag(body: Body, field: str, *, absent: bool | None = None) -> bool:
    """Read a yes or no; one that must be there unless it says what its absence means."""
    value = body.get(field, absent)
    if value is None:
        value = absent
    if type(value) is not bool:
        raise Unreadable(field, "not true or false")
    return value


def moment(body: Body, field: str) -> datetime | None:
    """Read a time, which the processor writes as seconds since 1970."""
    value = body.get(field)
    if value is None:
        return None
    if type(value) is not int or value not in MOMENTS:
        raise Unreadable(field, "not a time")
    return datetime.fromtimestamp(value, UTC)


def instant(body: Body, field: str) -> datetime:
    """Read a time that must be there."""
    found = moment(body, field)
    if found is None:
        raise Unreadable(field, "missing")
    return found


def listed(body: Body, field: str) -> tuple[list[Body], bool]:
    """Read a list object that must be there: what it holds, and whether that is all of it."""
    found = table(body, field)
    if type(found.get("data")) is not list:
        raise Unreadable(field, "not a list object")
    with within(field):
        return rows(found, "data"), not flag(found, "has_more", absent=False)


def words(body: Body, field: str) -> tuple[str, ...]:
    """Read a list of short texts; empty when absent."""
    found = short_texts(body, field)
    return tuple(bodies.clean(one, 200) for one in found[:MOST_ROWS])


def present(*references: str | None) -> tuple[str, ...]:
    """List the references that there are, each once."""
    return tuple(dict.fromkeys(one for one in references if one))
