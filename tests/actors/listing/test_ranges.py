"""A range says where a metric lies by steps that no seller chooses, and never where in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tolsey.actors.listing.ranges import Range, range_of, shown_as
from tolsey.storage.records.selling.listing import Visibility


@pytest.mark.parametrize(
    ("metric", "value", "currency", "low", "high"),
    [
        ("revenue30d", 0, "USD", 0, 1_000_00),
        ("revenue30d", 999_99, "USD", 0, 1_000_00),
        ("revenue30d", 1_000_00, "USD", 1_000_00, 1_500_00),
        ("revenue30d", 149_999_99, "USD", 100_000_00, 150_000_00),
        ("revenue30d", 150_000_00, "USD", 150_000_00, 200_000_00),
        ("mrr", 9_999_999_99, "EUR", 7_500_000_00, 10_000_000_00),
        ("mrr", 1_200_000, "JPY", 1_000_000, 1_500_000),
        ("mrr", 1_200_000, "KWD", 1_000_000, 1_500_000),
        ("subscribers", 9, "USD", 0, 10),
        ("subscribers", 14, None, 10, 15),
        ("subscribers", 75, None, 75, 100),
    ],
)
def test_the_steps_are_the_same_for_everyone(
    metric: str, value: int, currency: str | None, low: int, high: int
) -> None:
    assert range_of(metric, value, currency) == Range(low, high)


@given(st.integers(0, 10**15), st.sampled_from(["USD", "JPY", "KWD", "CLF"]))
def test_a_metric_lies_in_its_range_and_every_metric_there_has_the_same(
    value: int, currency: str
) -> None:
    found = range_of("mrr", value, currency)
    assert found.low <= value < found.high
    assert range_of("mrr", found.low, currency) == range_of("mrr", found.high - 1, currency)


def test_what_a_seller_never_chose_is_shown_as_it_is() -> None:
    assert shown_as("{}") == dict.fromkeys(("revenue30d", "mrr", "subscribers"), Visibility.EXACT)
    assert shown_as('{"mrr":"hidden"}')["mrr"] is Visibility.HIDDEN
