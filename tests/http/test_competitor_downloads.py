"""Cells of a table that a spreadsheet will open."""

from decimal import Decimal
from typing import Any

import pytest

from tolsey.http.intelligence.downloads import harmless


@pytest.mark.parametrize(
    "begins", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
)
def test_what_a_shop_wrote_as_a_formula_is_a_text(begins: str) -> None:
    """A shop's own words reach the cell: OWASP names what a spreadsheet would run."""
    assert harmless(f"{begins}cmd|' /C calc'!A0") == f"'{begins}cmd|' /C calc'!A0"


@pytest.mark.parametrize("value", ["A kettle = 1.5 L", "", None, Decimal("-1.5"), -3, True])
def test_what_is_no_formula_stays_as_it_is(value: Any) -> None:
    assert harmless(value) is value
