"""Whose an event is, and what is kept of it."""

import asyncio
import json
from typing import Any

import pytest

from tests.actors.organization import processor
from tests.actors.organization.processor import CREDITS, OURS, event
from tests.golden.cases import BESIDE, HERE
from tests.http.webhooks.payments.sender import ACCEPTED, DUPLICATE, IGNORED, Processor, inbox
from tests.waiting_events import waiting_events
from tolsey.actors.organization.billing.payment_events.catalogue import TYPES
from tolsey.storage.database import Transaction
from tolsey.storage.money import payment_events
from tolsey.storage.money.payment_events import Taken
from tolsey.storage.records.money.payment_event import PaymentEvent

GIVEN = BESIDE / "payments"
PERSONAL = ("4242", "AOB934RVNwzk6xtn", "Jenny", "jenny@", "192.0.2.7", "_secret_")


async def test_a_dispute_before_its_payment_waits_and_is_found(sender: Processor) -> None:
    """It names a payment; the payment names a customer; a checkout says whose the customer is."""
    dispute = event("charge.dispute.created", processor.dispute())
    payment = event("payment_intent.succeeded", processor.payment(metadata={}))
    checkout = event(
        "checkout.session.completed",
        processor.checkout(mode="subscription", payment_intent=None, metadata=OURS),
    )
    for one in (dispute, payment):
        assert (await sender.send(one)).json == ACCEPTED
    assert set((await sender.states()).values()) == {("parked", None)}

    await sender.send(checkout)
    assert await sender.states() == {
        one["id"]: ("new", "org_1") for one in (dispute, payment, checkout)
    }


async def test_a_dispute_of_a_sponsor_whom_nobody_sent_waits_for_its_payment_only(
    sender: Processor,
) -> None:
    first, second = (
        event("charge.dispute.created", processor.dispute(id=id)) for id in ("dp_1", "dp_2")
    )
    await sender.send(first)
    assert await sender.states() == {first["id"]: ("parked", None)}
    paid = event("payment_intent.succeeded", processor.payment(metadata={"kind": "sponsor"}))
    await sender.send(paid)
    await sender.send(second)
    assert await sender.states() == {one["id"]: ("applied", None) for one in (first, paid, second)}

    await sender.database.execute("UPDATE payment_events SET state = 'parked'")
    assert await inbox(sender.database).adopt() == 2


async def test_what_is_told_while_an_event_is_being_parked_is_not_missed(
    sender: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever tells it looked for parked events before this one was on disk."""
    take = payment_events.take

    async def taken_meanwhile(tx: Transaction, parked: PaymentEvent) -> Taken | None:
        taken = await take(tx, parked)
        await tx.execute(
            "INSERT INTO payment_links (reference, organization_id, event_id)"
            " VALUES ('pi_1', 'org_1', 'evt_other')"
        )
        return taken

    monkeypatch.setattr(payment_events, "take", taken_meanwhile)
    dispute = event("charge.dispute.created", processor.dispute())
    await sender.send(dispute)

    assert await sender.states() == {dispute["id"]: ("new", "org_1")}


async def test_a_character_that_no_column_holds_loses_no_event(sender: Processor) -> None:
    answer = await sender.send(
        event("payout.failed", processor.payout(failure_message="a\0b"), account="acct_1")
    )

    assert answer.json == ACCEPTED
    (row,) = await sender.rows()
    assert json.loads(row["facts"])["failure_message"] == "a\ufffdb"


async def test_any_order_of_arrival_finds_the_same_organization(sender: Processor) -> None:
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("charge.dispute.created", processor.dispute()),
        ("payment_intent.succeeded", processor.payment(metadata={})),
        ("customer.subscription.created", processor.subscription(metadata={})),
        ("invoice.paid", processor.invoice(parent=None)),
        ("charge.refunded", processor.charge(metadata={}, payment_intent=None)),
        ("checkout.session.completed", processor.checkout(metadata=CREDITS)),
    ]
    answers = await asyncio.gather(
        *(sender.send(event(type_, about)) for type_, about in bodies for _ in range(3))
    )

    assert {answer.json["status"] for answer in answers} == {"accepted"}
    assert set((await sender.states()).values()) == {("new", "org_1")}


async def test_an_organization_that_is_not_ours_is_not_believed(sender: Processor) -> None:
    elsewhere = {**CREDITS, "org_id": "org_elsewhere"}
    await sender.send(event("checkout.session.completed", processor.checkout()))
    answer = await sender.send(
        event("payment_intent.succeeded", processor.payment(metadata=elsewhere))
    )

    assert answer.json == ACCEPTED
    (row,) = [row for row in await sender.rows() if row["claimed_by"] == "org_elsewhere"]
    assert (row["state"], row["organization_id"]) == ("parked", None)
    await inbox(sender.database).adopt()
    assert await waiting_events(sender.database) != []
    assert [one.type for one in await waiting_events(sender.database)] == [
        "checkout.session.completed"
    ]


async def test_what_two_organizations_claim_is_left_to_a_person(sender: Processor) -> None:
    await sender.send(event("customer.subscription.created", processor.subscription()))
    other = processor.checkout(
        customer="cus_2", metadata={**CREDITS, "org_id": "org_2"}, payment_intent="pi_2"
    )
    await sender.send(event("checkout.session.completed", other))
    torn = event("invoice.paid", processor.invoice(parent=None, customer="cus_2"))
    await sender.send(torn)  # its invoice is the first's, its customer the second's

    assert (await sender.states())[torn["id"]] == ("parked", None)


async def test_a_customer_that_is_linked_stays_so(sender: Processor) -> None:
    await sender.send(event("customer.subscription.created", processor.subscription()))
    taken_over = event(
        "checkout.session.completed", processor.checkout(metadata={**CREDITS, "org_id": "org_2"})
    )
    await sender.send(taken_over)
    renewal = event("invoice.paid", processor.invoice(parent=None, id="in_2"))
    await sender.send(renewal)

    states = await sender.states()
    assert states[taken_over["id"]] == ("new", "org_2")
    assert states[renewal["id"]] == ("new", "org_1")


async def test_no_card_name_or_address_is_kept(sender: Processor) -> None:
    await sender.send(event("charge.refunded", processor.charge()))
    await sender.send(event("charge.dispute.created", processor.dispute()))
    await sender.send(event("charge.refunded", processor.charge(amount="60.00")))

    dumped = await sender.dump()
    assert "refunded_cents" in dumped
    assert [one for one in PERSONAL if one in dumped] == []


async def test_one_life_of_a_customer_arrives_backwards_and_twice(sender: Processor) -> None:
    await sender.database.execute("INSERT INTO organizations (id, name) VALUES ('org_T1', 'o')")
    files = sorted((HERE / "payments" / "synthetic-endive").glob("*.json"), reverse=True)
    first = [await sender.send(file.read_bytes()) for file in files]
    again = [await sender.send(file.read_bytes()) for file in files]

    assert [answer.json for answer in first] == [ACCEPTED] * len(files)
    assert [answer.json for answer in again] == [DUPLICATE] * len(files)
    states = await sender.states()
    of_nobody = {"evt_T020": "applied", "evt_T021": "ignored"}  # a payout and an unknown account
    unknown = {"evt_T012", "evt_T013"}  # a dispute of a payment that no event tells of
    for event_id, found in states.items():
        expected = ("parked", None) if event_id in unknown else ("new", "org_T1")
        if event_id in of_nobody:
            expected = (of_nobody[event_id], None)
        assert found == expected, event_id
    dumped = await sender.dump()
    assert [one for one in (*PERSONAL, "example@example.com") if one in dumped] == []


@pytest.mark.skipif(not GIVEN.is_dir(), reason="the shared data are not here")
@pytest.mark.parametrize("folder", ["stripe-ruby-mock", "dj-stripe", "stripe-cli-triggers"])
async def test_every_given_file_is_answered_for_what_it_is(sender: Processor, folder: str) -> None:
    for number, file in enumerate(sorted((GIVEN / folder).glob("*.json"))):
        parsed = json.loads(file.read_text())
        if parsed.get("object") == "event":
            parsed["id"] = f"evt_given_{number}"  # upstream gives them all one
        answer = await sender.send(parsed)
        if parsed.get("object") != "event":
            assert (answer.status, answer.json["field"]) == (422, "object"), file.name
        elif parsed["type"] not in TYPES:
            assert answer.json == IGNORED, file.name
        else:
            (row,) = [row for row in await sender.rows() if row["event_id"] == parsed["id"]]
            assert answer.status == (422 if row["state"] == "failed" else 200), file.name
    dumped = await sender.dump()
    assert [one for one in PERSONAL if one in dumped] == []
