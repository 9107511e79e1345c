"""An amount is read as its reader's language writes it, and never as a thousand times what was meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tolsey.http.launch.onboarding import questions
from tolsey.http.layout.amounts import as_typed, in_minor, plain
from tolsey.http.layout.catalogue import LANGUAGES, read_in
from tolsey.http.layout.words import money, whole_money


@pytest.mark.parametrize(
    ("language", "typed", "currency", "minor"),
    [
        ("en", "1,234.50", "EUR", 1_234_50),
        ("en", "190,000", "EUR", 190_000_00),
        ("en", "1 234.5", "EUR", 1_234_50),
        ("en", "190,00", "EUR", None),
        ("en", "1.234,50", "EUR", None),
        ("de", "1.234,50", "EUR", 1_234_50),
        ("de", "190.000", "EUR", 190_000_00),
        ("de", "190,00", "EUR", 190_00),
        ("de", "190.00", "EUR", 190_00),
        ("de", "1234.5", "EUR", 1_234_50),
        ("de", "1'234,50", "EUR", 1_234_50),
        ("de", "\N{MINUS SIGN}5.000", "EUR", -5_000_00),
        ("de", "1,234.50", "EUR", None),
        ("de", "1.23.456", "EUR", None),
        ("de", "12,345", "EUR", None),
        ("de", "1,234", "KWD", 1_234),
        ("de", "1.234", "JPY", 1_234),
        ("de", "1,5", "JPY", None),
        ("de", "", "EUR", None),
        ("de", ",50", "EUR", None),
    ],
)
def test_an_amount_is_read_in_the_form_of_its_language(
    language: str, typed: str, currency: str, minor: int | None
) -> None:
    with read_in(language):
        assert in_minor(typed, currency) == minor


@given(
    st.integers(-(10**11), 10**11),
    st.sampled_from(["EUR", "JPY", "KWD"]),
    st.sampled_from(LANGUAGES),
)
def test_what_a_form_is_filled_with_again_is_read_as_the_same(
    minor: int, currency: str, language: str
) -> None:
    with read_in(language):
        assert in_minor(as_typed(minor, currency), currency) == minor


def test_numbers_are_told_to_programs_with_a_point() -> None:
    with read_in("de"):
        assert [plain(one) for one in ("4,5", "37.5", "1.234,5", "x")] == [
            "4.5",
            "37.5",
            "1234.5",
            None,
        ]


def test_whole_amounts_have_no_cents_in_either_language() -> None:
    assert (money(100_00, "EUR"), whole_money(100_00, "EUR")) == ("EUR 100.00", "EUR 100")
    assert whole_money(100_50, "EUR") == "EUR 100.50"
    with read_in("de"):
        assert (money(1_000_00, "EUR"), whole_money(1_000_00, "EUR")) == (
            "1.000,00 EUR",
            "1.000 EUR",
        )
        assert whole_money(None, "EUR") == ""


def test_a_price_of_a_launch_is_kept_as_programs_read_it_and_shown_as_it_is_typed() -> None:
    typed = {"products": "Kettle; 1.234,50; 12,5\nPot; 9.90", "pricing.lowest": "19,90"}
    with read_in("de"):
        form = questions.form_of(typed)
        assert form["products"] == [
            {"title": "Kettle", "price": "1234.50", "cost": "12.5"},
            {"title": "Pot", "price": "9.90"},
        ]
        assert form["pricing"] == {"lowest": "19.90"}
        assert questions.answers_of(form) == {
            "products": "Kettle; 1234,50; 12,5\nPot; 9,90",
            "pricing.lowest": "19,90",
        }
