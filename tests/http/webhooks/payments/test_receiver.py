"""The payment processor's events, from the wire to the tables."""

import asyncio
import json

import orjson
import pytest

from tests.actors.organization import processor
from tests.actors.organization.processor import event
from tests.http.webhooks.merchant import call
from tests.http.webhooks.payments.sender import (
    ACCEPTED,
    CONNECT,
    DUPLICATE,
    IGNORED,
    NOW,
    PLATFORM,
    Processor,
    inbox,
    receiver,
)
from tests.waiting_events import waiting_events
from tolsey.actors.organization.billing.payment_events.catalogue import TYPES, restore
from tolsey.http.webhooks.payments.signatures import sign
from tolsey.http.webhooks.receiving import Bodies
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageUnavailable
from tolsey.storage.money import payment_events


async def test_a_paid_purchase_is_kept_as_new_before_the_answer(sender: Processor) -> None:
    purchase = event("checkout.session.completed", processor.checkout())
    answer = await sender.send(purchase)

    assert (answer.status, answer.json) == (200, ACCEPTED)
    (waiting,) = await waiting_events(sender.database)
    assert (waiting.event_id, waiting.organization_id) == (purchase["id"], "org_1")
    facts = restore(waiting.type, waiting.facts)
    assert (facts.said.credits_cents, facts.links) == (5000, ("cs_1", "cus_1", "pi_1"))
    (row,) = await sender.database.fetch("SELECT key, actor_key, name FROM outbox")
    assert tuple(row) == (f"payment_event:{purchase['id']}", "org_1", "PaymentEventReceived")


async def test_a_repeat_is_a_duplicate_however_often_it_comes(sender: Processor) -> None:
    purchase = event("checkout.session.completed", processor.checkout())
    answers = await asyncio.gather(*(sender.send(purchase) for _ in range(20)))
    late = await sender.send(purchase, secret=CONNECT)

    said = sorted(answer.json["status"] for answer in answers)
    assert said == ["accepted"] + ["duplicate"] * 19
    assert late.json == DUPLICATE
    assert len(await sender.rows()) == 1


async def test_a_resent_event_may_be_written_in_other_bytes(sender: Processor) -> None:
    purchase = event("checkout.session.completed", processor.checkout())
    await sender.send(purchase)
    answer = await sender.send(json.dumps({**purchase, "pending_webhooks": 0}).encode())

    assert answer.json == DUPLICATE


async def test_what_no_secret_of_ours_signed_leaves_nothing(sender: Processor) -> None:
    body = orjson.dumps(event("checkout.session.completed", processor.checkout()))
    good = sign(body, PLATFORM, int(NOW.timestamp()))
    forged = [
        await sender.post(body),
        await sender.post(body, **{"stripe-signature": b""}),
        await sender.send(body, secret=b"whsec_other"),
        await sender.send(body, secret=b""),
        await sender.post(body.replace(b"5000", b"9000"), **{"stripe-signature": good}),
        await sender.post(body + b" ", **{"stripe-signature": good}),
        await sender.post(body, **{"stripe-signature": good.replace(b"v1", b"v0")}),
    ]

    for answer in forged:
        assert (answer.status, answer.json["code"]) == (401, "invalid_signature")
    assert await sender.rows() == []


async def test_two_signature_headers_prove_nothing(sender: Processor) -> None:
    body = orjson.dumps(event("checkout.session.completed", processor.checkout()))
    good = sign(body, PLATFORM, int(NOW.timestamp()))
    twice = await call(sender.app, body, [(b"stripe-signature", good)] * 2)

    assert twice.status == 401


@pytest.mark.parametrize("seconds", [-301, 301, -86_400])
async def test_a_replay_from_another_time_is_refused(sender: Processor, seconds: int) -> None:
    answer = await sender.send(event("invoice.paid", processor.invoice()), seconds=seconds)

    assert (answer.status, answer.json["code"]) == (401, "stale_signature")
    assert await sender.rows() == []


async def test_any_of_several_signatures_and_secrets_may_match(sender: Processor) -> None:
    body = orjson.dumps(event("invoice.paid", processor.invoice()))
    at = int(NOW.timestamp())
    rolled = sign(body, b"whsec_rolled_away", at) + b",v1=" + sign(body, CONNECT, at)[-64:]
    answer = await sender.post(body, **{"stripe-signature": rolled})

    assert answer.json == ACCEPTED


@pytest.mark.parametrize("secret", [None, "", " , "])
async def test_without_a_secret_the_route_cannot_serve(
    database: Database, secret: str | None
) -> None:
    bare = Processor(receiver(database, webhook_secret=secret), database)
    answer = await bare.send(event("invoice.paid", processor.invoice()), secret=b"")

    assert (answer.status, answer.json["code"]) == (503, "missing_credential")
    assert "PAYMENTS_WEBHOOK_SECRET" in answer.json["detail"]
    assert await bare.rows() == []


@pytest.mark.parametrize(
    "type_", sorted({name for name, kind in TYPES.items() if not kind.of_accounts})
)
async def test_a_foreign_account_cannot_speak_for_the_platform(
    sender: Processor, type_: str
) -> None:
    """Whoever owns a connected account writes its metadata, and could name any organization."""
    about = {
        "checkout.session": processor.checkout(),
        "subscription": processor.subscription(),
        "invoice": processor.invoice(),
        "payment_intent": processor.payment(),
        "charge": processor.charge(),
        "dispute": processor.dispute(),
    }[TYPES[type_].object]
    answer = await sender.send(event(type_, about, account="acct_foreign"), secret=CONNECT)

    assert answer.json == IGNORED
    (row,) = await sender.rows()
    assert (row["state"], row["why"], row["facts"]) == ("ignored", "foreign_account", None)
    assert await waiting_events(sender.database) == []
    assert await sender.database.fetch("SELECT * FROM payment_links") == []


async def test_events_of_payout_accounts_need_no_organization(sender: Processor) -> None:
    await sender.send(
        event("account.updated", processor.account(), account="acct_1"), secret=CONNECT
    )
    await sender.send(event("payout.failed", processor.payout(), account="acct_1"), secret=CONNECT)

    rows = await sender.rows()
    assert [(one["account"], one["state"]) for one in rows] == [
        ("acct_1", "ignored"),  # whose account that is nobody knows here
        ("acct_1", "applied"),
    ]


@pytest.mark.parametrize(
    ("key", "livemode", "said"),
    [
        ("sk_live_1", False, IGNORED),
        ("rk_test_1", True, IGNORED),
        ("sk_live_1", True, ACCEPTED),
        ("sk_test_1", False, ACCEPTED),
        (None, True, ACCEPTED),
        (None, False, ACCEPTED),
    ],
)
async def test_test_money_buys_nothing_live(
    sender: Processor, key: str | None, livemode: bool, said: dict[str, str]
) -> None:
    sender.app = receiver(sender.database, secret_key=key)
    purchase = event("checkout.session.completed", processor.checkout(), livemode=livemode)

    assert (await sender.send(purchase)).json == said


async def test_a_thin_event_is_recognised_and_leaves_nothing(sender: Processor) -> None:
    thin = {"id": "evt_thin", "object": "v2.core.event", "type": "v1.invoice.paid"}
    answer = await sender.send(thin)

    assert (answer.status, answer.json) == (200, IGNORED)
    assert await sender.rows() == []


async def test_a_type_that_is_not_handled_leaves_nothing(sender: Processor) -> None:
    answer = await sender.send(event("customer.created", {"id": "cus_1", "object": "customer"}))

    assert (answer.status, answer.json) == (200, IGNORED)
    assert await sender.rows() == []


async def test_an_event_that_cannot_be_read_is_kept_and_refused_until_it_can(
    sender: Processor,
) -> None:
    good = event("invoice.paid", processor.invoice())
    body = processor.invoice()
    del body["parent"]
    bad = {**good, "data": {"object": body}}
    first, second = await sender.send(bad), await sender.send(bad)

    for answer in (first, second):
        assert (answer.status, answer.json["code"]) == (422, "unreadable_event")
        assert answer.json["field"] == "data.object.parent"
    (row,) = await sender.rows()
    assert (row["state"], row["why"], row["tries"]) == (
        *("failed", "unreadable: data.object.parent"),
        2,
    )
    assert (await sender.send(good)).json == ACCEPTED
    assert await sender.states() == {good["id"]: ("new", "org_1")}
    assert (await sender.send(bad)).json == DUPLICATE


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"not json", 400),
        (b"[]", 400),
        (b'{"id": "\xff"}', 400),
        (b'{"a":' + b"[" * 70 + b"]" * 70 + b"}", 400),
        (b"{}", 422),
        (b'{"object": "event", "id": "evt_1"}', 422),
    ],
)
async def test_a_signed_body_that_is_no_event_is_refused(
    sender: Processor, body: bytes, status: int
) -> None:
    assert (await sender.send(body)).status == status


async def test_bodies_are_bounded(sender: Processor) -> None:
    sender.app = receiver(sender.database, bodies=Bodies(most_bytes=100, seconds=0.05))
    said = await call(sender.app, b"", [(b"content-length", b"101")])
    sent = await call(sender.app, b"x" * 101, [])
    endless = await call(sender.app, [b"x" * 60, b"x" * 60, None], [])
    late = await call(sender.app, [b"x", None], [])

    assert [one.status for one in (said, sent, endless, late)] == [413, 413, 413, 408]


async def test_only_posts_are_taken(sender: Processor) -> None:
    answer = await call(sender.app, b"", [], method="GET")

    assert (answer.status, answer.headers[b"allow"]) == (405, b"POST")


async def test_without_its_database_the_processor_is_asked_to_come_again(
    sender: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    purchase = event("checkout.session.completed", processor.checkout())

    async def away(*_: object) -> None:
        raise StorageUnavailable("gone")

    with monkeypatch.context() as patched:
        patched.setattr(payment_events, "take", away)
        refused = await sender.send(purchase)
    assert (refused.status, refused.headers[b"retry-after"]) == (503, b"5")
    assert (await sender.send(purchase)).json == ACCEPTED


async def test_a_failure_to_look_for_others_never_changes_the_answer(
    sender: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispute = event("charge.dispute.created", processor.dispute())
    await sender.send(dispute)

    async def away(*_: object) -> bool:
        raise StorageUnavailable("gone")

    with monkeypatch.context() as patched:
        patched.setattr(payment_events, "is_awaited", away)
        answer = await sender.send(event("payment_intent.succeeded", processor.payment()))
    assert answer.json == ACCEPTED
    assert (await sender.states())[dispute["id"]] == ("parked", None)
    assert await inbox(sender.database).adopt() == 1
    assert (await sender.states())[dispute["id"]] == ("new", "org_1")
