"""Months counted from a day: of a year that was paid at once, and of a contract."""

import calendar
from datetime import datetime
from typing import NamedTuple


class Month(NamedTuple):
    """One of the months that are counted from a moment; the first has the number 0."""

    number: int
    ends_at: datetime


def months_after(at: datetime, months: int) -> datetime:
    """Tell the same day of a later month, or that month's last when it has no such day."""
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return at.replace(year=year, month=month + 1, day=min(at.day, last))


def month_of(since: datetime, at: datetime) -> Month:
    """Tell the month, counted from `since`, that a moment is in; before it, the first.

    Each is counted from `since` itself, so that what began on a 31st goes on on the 31st.
    """
    number = max(0, (at.year - since.year) * 12 + at.month - since.month)
    if number and months_after(since, number) > at:
        number -= 1
    return Month(number, months_after(since, number + 1))
