"""Where buyers came from, as the deliveries of their orders say."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.actors.store.test_payloads import KEY, order_said
from tolsey.actors.store.deliveries.identity import pseudonym
from tolsey.storage.records.commerce.deliveries import AttributionTouch

AT = datetime(2026, 6, 30, 9, tzinfo=UTC)


def came_from(landing: Any, referrer: Any = None) -> tuple[str | None, ...]:
    """Source, medium, campaign, page and referrer of an order with these two addresses."""
    touch = order_said(landing_site=landing, referring_site=referrer).touch
    assert touch is not None
    return touch.source, touch.medium, touch.campaign, touch.landing_page, touch.referrer


def test_a_touch_is_the_orders_under_its_buyers_pseudonym() -> None:
    said = order_said(
        email="mara@example.com",
        processed_at=AT.isoformat(),
        landing_site="/products/mug?utm_source=News&utm_medium=Email&utm_campaign=Spring+26",
        referring_site="https://www.mail.example/inbox?user=mara",
    )
    assert said.touch == AttributionTouch(
        store_id="store_1",
        order_id=said.order.order_id,
        updated_at=said.order.updated_at,
        touched_at=AT,
        session_id=pseudonym(KEY, "mara@example.com", None),
        source="news",
        medium="email",
        campaign="Spring 26",
        landing_page="/products/mug",
        referrer="mail.example",
    )
    assert said.touch in said.rows


@pytest.mark.parametrize(
    ("landing", "referrer", "expected"),
    [
        ("/", None, ("direct", None, None, "/", None)),
        ("/a?gclid=x", "https://www.google.com/", ("google", "cpc", None, "/a", "google.com")),
        ("/a?gclid=x&utm_source=g", None, ("g", None, None, "/a", None)),
        ("/", "https://blog.example/p", ("blog.example", "referral", None, "/", "blog.example")),
        (None, "https://blog.example", ("blog.example", "referral", None, None, "blog.example")),
        ("https://a.example/x", "https://www.a.example/", ("direct", None, None, "/x", None)),
        ("/?utm_medium=print", None, ("direct", "print", None, "/", None)),
        ("/?utm_source=a&utm_source=b", None, ("a", None, None, "/", None)),
        # what may name a person is not kept
        ("/?email=mara@example.com", None, ("direct", None, None, "/", None)),
        ("/?utm_source=mara%40example.com", None, ("direct", None, None, "/", None)),
        ("/u/mara%40example.com", None, ("direct", None, None, None, None)),
        # what cannot be read is as good as none
        ("/?utm_source=a" + "&b=1" * 200, None, ("direct", None, None, "/", None)),
        ("/?utm_source=%00", "http://[", ("\ufffd", None, None, "/", None)),
    ],
)
def test_the_words_of_a_link_come_before_who_led_to_it(
    landing: Any, referrer: Any, expected: tuple[str | None, ...]
) -> None:
    assert came_from(landing, referrer) == expected


@pytest.mark.parametrize("odd", [None, "", 7, [], "http://[", "/" + "x" * 9_000])
def test_an_order_that_names_no_address_has_no_touch_and_is_kept(odd: Any) -> None:
    said = order_said(landing_site=odd, referring_site=odd)
    assert said.touch is None
    assert said.rows == (said.order,)
