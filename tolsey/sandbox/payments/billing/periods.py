"""Billing periods: where one ends that began at some moment."""

import calendar
from datetime import UTC, datetime, timedelta
from typing import Any

_DAYS = {"day": 1, "week": 7}


def end_of(start: int, recurring: dict[str, Any], anchor: int | None = None) -> int:
    """Give the end of the period from `start`; months keep the day of the anchor if they have it."""
    count = recurring["interval_count"]
    begun = datetime.fromtimestamp(start, UTC)
    if recurring["interval"] in _DAYS:
        return int((begun + timedelta(days=_DAYS[recurring["interval"]] * count)).timestamp())
    months = count * (12 if recurring["interval"] == "year" else 1)
    number = begun.year * 12 + begun.month - 1 + months
    year, month = divmod(number, 12)
    wanted = datetime.fromtimestamp(start if anchor is None else anchor, UTC).day
    day = min(wanted, calendar.monthrange(year, month + 1)[1])
    return int(begun.replace(year=year, month=month + 1, day=day).timestamp())


def share(amount: int, start: int, end: int, at: int) -> int:
    """Give the part of an amount that falls on what is left of a period."""
    left = min(max(end - at, 0), end - start)
    return round(amount * left / (end - start))
