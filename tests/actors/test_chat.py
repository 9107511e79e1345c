import pytest
from hypothesis import given
from hypothesis import strategies as st

from tolsey.actors.chat import Meter, Prices, Usage, input_tokens, tokens

PRICES = Prices(input=3_000_000, output=15_000_000, reasoning=15_000_000)
counts = st.integers(0, 100_000)
cents = st.integers(0, 100_000_000)
prices = st.builds(
    Prices, input=cents, output=cents, reasoning=cents, margin_percent=st.integers(0, 300)
)


def test_a_text_is_bounded_by_a_token_for_three_bytes() -> None:
    assert [tokens(text) for text in ("", "a", "abc", "abcd", "é", "日本")] == [0, 1, 1, 2, 1, 2]
    assert input_tokens(["abc", "abcd"]) == 1 + 8 + 2 + 8


def test_a_cost_is_exact_and_rounded_up_once() -> None:
    assert PRICES.cost(Usage(100, 40)) == 900
    assert Prices(input=1, output=1, reasoning=1).cost(Usage(1, 1)) == 1
    dear_thoughts = Prices(
        input=1_000_000, output=2_000_000, reasoning=5_000_000, margin_percent=10
    )
    assert dear_thoughts.cost(Usage(10, 10, 4)) == 47  # (10 + 12 + 20) x 1.1 = 46.2


@given(prices, counts, counts, st.integers(0, 100))
def test_the_most_an_answer_costs_covers_whatever_it_is_made_of(
    prices: Prices, given_tokens: int, made: int, reasoned_percent: int
) -> None:
    reasoned = made * reasoned_percent // 100
    assert prices.cost(Usage(given_tokens, made, reasoned)) <= prices.most(given_tokens, made)


@given(prices, counts, st.integers(-100, 10**9), st.integers(0, 8_192))
def test_what_is_affordable_is_the_most_that_is_covered(
    prices: Prices, given_tokens: int, available: int, most: int
) -> None:
    found = prices.affordable(given_tokens, available, most)
    assert 0 <= found <= most
    if found:
        assert prices.most(given_tokens, found) <= available
    if found < most:
        assert prices.most(given_tokens, found + 1) > available


def test_a_meter_estimates_from_the_last_exact_word_on() -> None:
    meter = Meter(50, 100)
    assert (meter.usage, meter.estimated) == (Usage(50), True)
    meter.receive("abcd", "xyz")
    assert meter.usage == Usage(50, 3, 1)
    meter.report(Usage(40, 2, 1))
    assert (meter.usage, meter.estimated) == (Usage(40, 2, 1), False)
    meter.receive("abc")
    assert (meter.usage, meter.estimated) == (Usage(40, 3, 1), True)


def test_a_meter_adds_up_the_requests_of_one_answer() -> None:
    meter = Meter(50, 100)
    meter.receive("abc")
    meter.report(Usage(40, 7, 2))
    meter.go_on(90, 100)
    assert (meter.usage, meter.estimated) == (Usage(130, 7, 2), True)
    meter.receive("abcd")
    assert meter.usage == Usage(130, 9, 2)
    meter.report(Usage(60, 1))
    assert (meter.usage, meter.estimated) == (Usage(100, 8, 2), False)
    guessed = Meter(50, 100)
    guessed.receive("abc")
    guessed.go_on(90, 100)
    guessed.report(Usage(60, 1))
    assert (guessed.usage, guessed.estimated) == (Usage(110, 2), True), "of the first it is a guess"


def test_a_model_that_takes_back_what_it_used_is_not_believed() -> None:
    meter = Meter(50, 100)
    meter.report(Usage(40, 20))
    meter.report(Usage(0, 0))
    assert meter.usage == Usage(40, 20)


@pytest.mark.parametrize("impossible", [Usage(151, 5), Usage(40, 11), Usage(10**8, 10**8)])
def test_a_model_that_used_more_than_can_be_is_not_believed(impossible: Usage) -> None:
    meter = Meter(50, 10)
    meter.receive("abcdef")
    meter.report(impossible)
    assert (meter.usage, meter.estimated) == (Usage(50, 2), True)
    meter.receive("g" * 6)
    meter.report(Usage(150, 11))  # it overran its limit, and that much did come
    assert (meter.usage, meter.estimated) == (Usage(150, 11), False)


@given(st.lists(st.text(max_size=20), max_size=20))
def test_text_in_pieces_counts_as_much_as_in_one(pieces: list[str]) -> None:
    meter = Meter(0, 100)
    for piece in pieces:
        meter.receive(piece)
    assert meter.usage.output_tokens == tokens("".join(pieces))
