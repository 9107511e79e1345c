"""Amounts as people type them into forms: in the form of their language, which a page is filled with again."""

import re
from typing import Final

from babel.numbers import get_decimal_symbol, get_group_symbol

from tolsey.http.layout.catalogue import language
from tolsey.storage.records.money.currencies import EXPONENTS

BETWEEN: Final = re.compile(r"[\s'\N{RIGHT SINGLE QUOTATION MARK}]")
"""What stands between thousands in no language's way."""
WHOLE: Final = r"[0-9]{1,12}|[0-9]{1,3}(?:<group>[0-9]{3}){1,3}"
"""Marks between thousands stand before three digits each: so `190,00` is never read as 19,000."""


def plain(typed: str) -> str | None:
    """Write a number that somebody typed as programs read it, `-1234.50`; None for what is none.

    A point before one or two digits is the point of a program or a keypad, in every language.
    """
    group, point = (re.escape(one) for one in _symbols())
    said = BETWEEN.sub("", typed).replace("\N{MINUS SIGN}", "-")
    whole = WHOLE.replace("<group>", group)
    found = re.fullmatch(rf"(-?)({whole})(?:{point}([0-9]{{1,4}}))?", said) or re.fullmatch(
        r"(-?)([0-9]{1,12})\.([0-9]{1,2})", said
    )
    if found is None:
        return None
    rest = f".{found[3]}" if found[3] else ""
    return f"{found[1]}{re.sub(r'[^0-9]', '', found[2])}{rest}"


def localized(said: str) -> str:
    """Write a number of a program, `1234.50`, with the point of the reader's language."""
    return said.replace(".", _symbols()[1])


def in_minor(typed: str, currency: str) -> int | None:
    """Read an amount as minor units of its currency; None for what is none, or has too many digits."""
    whole, _point, rest = (plain(typed) or "").partition(".")
    digits = EXPONENTS.get(currency, 2)
    return int(whole + rest.ljust(digits, "0")) if whole and len(rest) <= digits else None


def as_typed(minor: int | None, currency: str | None) -> str:
    """Write an amount as it could have been typed; nothing where there is none."""
    if minor is None:
        return ""
    group, point = _symbols()
    digits = EXPONENTS.get(currency or "", 2)
    whole, rest = divmod(abs(minor), 10**digits)
    sign = "-" if minor < 0 else ""
    thousands = f"{whole:,}".replace(",", group)
    return f"{sign}{thousands}{point}{rest:0{digits}}" if rest else f"{sign}{thousands}"


def _symbols() -> tuple[str, str]:
    """Give what stands between thousands, and before cents, in the reader's language."""
    return get_group_symbol(language()), get_decimal_symbol(language())
