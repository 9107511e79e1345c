"""What keeps a store from working is told worst first, each cause with what to do about it."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tolsey.http.answers.operators.diagnosis import CallAnswer, ProofStateAnswer, SoldAnswer
from tolsey.http.operators.diagnosis import LONG_UNDER_WAY, Facts, causes_of
from tolsey.storage.commerce.connections import StoreParts
from tolsey.storage.records.commerce.connection import (
    DISCONNECTED,
    Connection,
    ConnectionStatus,
    ShopProfile,
)

AT = datetime(2026, 11, 22, 12, tzinfo=UTC)
SHOP = "demo.myshopify.com"
CONNECTION = Connection(
    store_id="store_1", shop_domain=SHOP, status=ConnectionStatus.ACTIVE, connected_at=AT
)
PROFILE = ShopProfile(
    store_id="store_1",
    shop_domain=SHOP,
    facts_at=AT,
    subscriptions=json.dumps({"orders/create": "ok", "products/update": "created"}),
)
WELL = Facts(
    store_id="store_1",
    at=AT,
    parts=StoreParts(organization_id="org_1", connection=CONNECTION, shop=PROFILE),
    listed=(),
    calls=(),
    refused=0,
    refused_at=None,
    status="awake",
)


def connected(**changed: Any) -> Facts:
    return replace(
        WELL,
        parts=StoreParts(
            organization_id="org_1", connection=replace(CONNECTION, **changed), shop=PROFILE
        ),
    )


def called(state: str, error: str | None = None, age: timedelta = timedelta()) -> Facts:
    call = CallAnswer(
        kind="organization",
        actor_id="org_1",
        key="k",
        call="RefundPayment",
        lane="processor",
        state=state,
        attempts=3,
        next_try_at=None,
        last_error=error,
        request_id=None,
        created_at=AT - age,
        finished_at=None,
    )
    return replace(WELL, calls=(call,))


def listed(state: str, reason: str | None = None) -> Facts:
    proof = ProofStateAnswer(
        provider="commerce", state=state, since=AT, last_ok_at=None, reason=reason
    )
    sold = SoldAnswer(id="listing_1", title="T", slug="t", status="ACTIVE", proofs=[proof])
    return replace(WELL, listed=(sold,))


def stuck(cause: str, subject: str | None, said: str | None) -> Facts:
    row = {"cause": cause, "subject": subject, "said": said, "since": AT}
    return replace(WELL, obstacles=[row])


@pytest.mark.parametrize(
    ("facts", "cause", "said"),
    [
        (replace(WELL, status="paused"), "store_paused", "An operator paused"),
        (
            replace(WELL, parts=StoreParts(organization_id="org_1", connection=None, shop=None)),
            "not_connected",
            "never connected",
        ),
        (connected(status=DISCONNECTED), "disconnected", "The merchant disconnected"),
        (connected(status=ConnectionStatus.REVOKED), "app_removed", "was removed"),
        (connected(refused_at=AT), "token_refused", "refuses a new access token"),
        (replace(WELL, refused=1, refused_at=AT), "deliveries_refused", "1 delivery in"),
        (replace(WELL, refused=7, refused_at=AT), "deliveries_refused", "7 deliveries in"),
        (called("failed", "the error"), "call_given_up", "after 3 tries. Last error: the error"),
        (called("waiting", "the error"), "call_failing", "failed 3 times"),
        (called("sent", "the error"), "call_failing", "failed 3 times"),
        (called("sent", age=LONG_UNDER_WAY), "call_under_way", "is under way"),
        (
            stuck("milestone_blocked", "shipping.rates", "missing_scope: write_shipping"),
            "milestone_blocked",
            "at shipping.rates: missing_scope: write_shipping",
        ),
        (stuck("milestone_failed", "brand.kit", None), "milestone_failed", "no reason given"),
        (stuck("payment_failing", "sub_1", "past_due"), "payment_failing", "sub_1 is past_due"),
        (stuck("credits_used_up", "org_1", None), "credits_used_up", "no credits left"),
        (stuck("deal_disputed", "deal_1", "late"), "deal_disputed", "deal_1 about this store"),
        (stuck("message_given_up", "Tick (dl_1)", "no"), "message_given_up", "Tick (dl_1)"),
        (stuck("privacy_overdue", "cr_1", "shop/redact"), "privacy_overdue", "(shop/redact)"),
        (
            replace(called("waiting"), full_lanes={"processor": 9, "mail": 1}),
            "lane_full",
            "lane processor is taken; 9 calls",
        ),
        (listed("failed", "platform_500"), "listing_unverified", "is failed (platform_500)"),
        (listed("token_unavailable"), "listing_unverified", "is token_unavailable."),
        (listed("verified", "commerce_unreachable"), "listing_unverified", "unreachable"),
    ],
)
def test_a_cause_is_told_with_what_to_do(facts: Facts, cause: str, said: str) -> None:
    (answered,) = causes_of(facts)
    assert answered.cause == cause
    assert said in answered.why
    assert answered.do.endswith(".")


@pytest.mark.parametrize(
    "facts",
    [
        WELL,
        called("done", "an earlier error"),
        called("waiting"),
        replace(WELL, full_lanes={"processor": 9}),
        called("sent", age=LONG_UNDER_WAY - timedelta(seconds=1)),
        listed("verified"),
        listed("none"),
        listed("pending"),
    ],
)
def test_a_store_that_is_well_has_no_cause(facts: Facts) -> None:
    assert causes_of(facts) == []


def test_topics_that_the_platform_refused_are_named() -> None:
    answered = {"orders/create": "ok", "orders/paid": "missing_scope", "app/gone": "refused: no"}
    shop = replace(PROFILE, subscriptions=json.dumps(answered), subscribed_at=AT)
    (cause,) = causes_of(
        replace(WELL, parts=StoreParts(organization_id="org_1", connection=CONNECTION, shop=shop))
    )
    assert (cause.cause, cause.since) == ("topics_refused", AT)
    assert "app/gone, orders/paid" in cause.why


def test_of_many_causes_the_worst_is_told_first() -> None:
    facts = replace(
        listed("stale"),
        parts=StoreParts(
            organization_id="org_1", connection=replace(CONNECTION, refused_at=AT), shop=PROFILE
        ),
        calls=(*called("sent", age=LONG_UNDER_WAY).calls, *called("failed", "e").calls),
        refused=2,
        refused_at=AT,
    )
    assert [one.cause for one in causes_of(facts)] == [
        *("token_refused", "deliveries_refused", "call_given_up"),
        *("listing_unverified", "call_under_way"),
    ]
