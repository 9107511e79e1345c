"""Amounts as people type them into forms."""

import re
from typing import Final

from tolsey.storage.records.money.currencies import EXPONENTS

AMOUNT: Final = re.compile(r"(-?)([0-9]{1,12})(?:\.([0-9]{1,4}))?")
"""An amount without its currency; blanks and the commas between thousands are taken out before."""


def in_minor(typed: str, currency: str) -> int | None:
    """Read an amount as minor units of its currency; None for what is none, or has too many digits."""
    found = AMOUNT.fullmatch(re.sub(r"[\s,]", "", typed).replace("\N{MINUS SIGN}", "-"))
    digits = EXPONENTS.get(currency, 2)
    if found is None or len(found[3] or "") > digits:
        return None
    minor = int(found[2] + (found[3] or "").ljust(digits, "0"))
    return -minor if found[1] else minor


def as_typed(minor: int | None, currency: str | None) -> str:
    """Write an amount as it could have been typed; nothing where there is none."""
    if minor is None:
        return ""
    digits = EXPONENTS.get(currency or "", 2)
    whole, rest = divmod(abs(minor), 10**digits)
    sign = "-" if minor < 0 else ""
    return f"{sign}{whole:,}.{rest:0{digits}}" if rest else f"{sign}{whole:,}"
