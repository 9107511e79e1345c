"""How an obligation's clock stands, and which addresses stand in people's words."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tolsey.http.answers.people.compliance import ObligationClock
from tolsey.http.privacy.answering import addresses_in
from tolsey.storage.records.commerce.compliance import ComplianceRequest, ComplianceTopic

NOON = datetime(2036, 6, 15, 12, tzinfo=UTC)


def asked(handled_at: datetime | None = None) -> ComplianceRequest:
    return ComplianceRequest(
        id="req_1",
        topic=ComplianceTopic.DATA_REQUEST,
        shop_domain="demo.myshopify.com",
        delivery_id="d",
        body_digest="b",
        email_hash=None,
        stores=(),
        shop_keys=(),
        received_at=NOON,
        pending_steps=(),
        handled_at=handled_at,
    )


@pytest.mark.parametrize(
    ("days", "state"),
    [
        (0, "running"),
        (21, "running"),
        (22, "warning"),
        (28, "warning"),
        (29, "urgent"),
        (31, "overdue"),
    ],
)
def test_a_clock_warns_after_three_weeks_and_is_red_before_the_shortest_month_is_over(
    days: int, state: str
) -> None:
    shown = ObligationClock.clock_of(asked(), NOON + timedelta(days=days))
    assert (shown["clock"], shown["overdue"]) == (state, state == "overdue")
    assert shown["due_at"] == NOON + timedelta(days=30)


def test_only_an_operators_word_stops_a_clock() -> None:
    late = ObligationClock.clock_of(asked(handled_at=NOON), NOON + timedelta(days=40))
    assert (late["clock"], late["overdue"]) == ("stopped", False)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("Write to Dora@Example.com.", ["Dora@Example.com"]),
        (
            "<dora@example.com>, mailto:ann+shop@example.com!",
            ["dora@example.com", "ann+shop@example.com"],
        ),
        ('{"to": "dora@example.com"}', ["dora@example.com"]),
        ("Twitter: @dora, 3 @ 5", []),
        (
            {"a": ["x@example.com", {"b": "y@example.com"}], "c": 3},
            ["x@example.com", "y@example.com"],
        ),
        (None, []),
    ],
)
def test_addresses_are_found_as_people_write_them(words: Any, found: list[str]) -> None:
    assert list(addresses_in(words)) == found
