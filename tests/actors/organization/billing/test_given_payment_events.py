"""The events that others published: each is read, or refused by the name of a field."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.actors.organization.processor import NEW, OLD, event
from tests.golden.cases import BESIDE, HERE
from tolsey.actors.bodies import Unreadable
from tolsey.actors.organization.billing.payment_events.catalogue import (
    TYPES,
    Facts,
    keep,
    read,
    restore,
)
from tolsey.actors.organization.billing.payment_events.envelopes import open_envelope
from tolsey.actors.organization.billing.payment_events.invoices import InvoiceFacts
from tolsey.actors.organization.billing.payment_events.metadata import Metadata
from tolsey.actors.organization.billing.payment_events.reversals import RefundFacts

LIFE = HERE / "payments" / "synthetic-endive"
GIVEN = BESIDE / "payments"
here = pytest.mark.skipif(not GIVEN.is_dir(), reason="the shared data are not here")
MOVED = {"parent", "pricing"}


def facts(type_: str, about: dict[str, Any], **outside: Any) -> Facts:
    return read(open_envelope(event(type_, about, **outside)))


def refused(type_: str, about: dict[str, Any]) -> str:
    with pytest.raises(Unreadable) as caught:
        facts(type_, about)
    return caught.value.field


def given_events(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


def read_given(file: Path) -> Facts:
    return read(open_envelope(json.loads(file.read_text())))


@pytest.mark.parametrize("file", given_events(LIFE), ids=lambda file: file.stem)
def test_every_event_of_the_newest_version_is_read(file: Path) -> None:
    envelope = open_envelope(json.loads(file.read_text()))
    found = read(envelope)
    assert envelope.api_version == NEW
    assert restore(envelope.type, keep(found)) == found
    written = keep(found)
    for kept_out in ("4242", "AOB934RVNwzk6xtn", "Jenny", "@", "secret"):
        assert kept_out not in written


def test_one_life_of_a_customer_is_read_as_it_happened() -> None:
    life = {file.name[:2]: read_given(file) for file in given_events(LIFE)}
    paid = [life[n] for n in ("03", "06", "07")]
    assert all(isinstance(one, InvoiceFacts) and one.is_paid for one in paid)
    assert [one.pretax_cents for one in paid if isinstance(one, InvoiceFacts)] == [
        7900,
        8000,
        19900,
    ]
    for n in ("14", "15"):
        owed = life[n]
        assert isinstance(owed, InvoiceFacts)
        assert (owed.is_paid, owed.subscription_id) == (False, "sub_T1")
        assert owed.hosted_url
    bought = [life["08"], life["09"]]
    assert {one.said.credits_cents for one in bought} == {5000}
    refunds = [life["10"], life["11"]]
    assert [one.refunded_cents for one in refunds if isinstance(one, RefundFacts)] == [3000, 6000]
    assert life["04"].said == Metadata()
    assert life["20"].links == ()


OLD_AND_UNREADABLE = {
    "account.updated": "data.object.requirements",
    "charge.dispute.closed": "data.object.id",
}
"""Neither says what money turns on: what is required of the account, and which dispute it is."""


@here
@pytest.mark.parametrize(
    "file", given_events(GIVEN / "stripe-ruby-mock"), ids=lambda file: file.stem
)
def test_every_event_of_an_old_version_is_read_or_refused_by_name(file: Path) -> None:
    envelope = open_envelope(json.loads(file.read_text()))
    if envelope.type not in TYPES:
        assert envelope.type.split(".")[0] in {"charge", "payout", "subscription_schedule"}
        return
    if file.stem in OLD_AND_UNREADABLE:
        with pytest.raises(Unreadable) as caught:
            read(envelope)
        assert caught.value.field == OLD_AND_UNREADABLE[file.stem]
        return
    found = read(envelope)
    assert restore(envelope.type, keep(found)) == found


MADE_UP = {
    "dispute_ch_fakefakefakefake01": "data.object.amount",
    "dispute_pi_fakefakefakefake01": "data.object.last_payment_error",
    "invoice_in_fakefakefakefakefake0001": "data.object.lines",
    "payout_custom_bank_account": "data.object.amount",
    "payout_custom_card": "data.object.amount",
}
"""Amounts as text, a text for an object, no lines: the peer's writing, which no processor sent."""

OF_OBJECT = {kind.object: type_ for type_, kind in TYPES.items()}


@here
@pytest.mark.parametrize("file", given_events(GIVEN / "dj-stripe"), ids=lambda file: file.stem)
def test_every_object_of_a_python_peer_is_read_or_refused_by_name(file: Path) -> None:
    about = json.loads(file.read_text())
    if about["object"] not in OF_OBJECT:
        assert about["object"] in {"payment_method", "balance_transaction", "tax_id"}
    elif file.stem in MADE_UP:
        assert refused(OF_OBJECT[about["object"]], about) == MADE_UP[file.stem]
    else:
        found = facts(OF_OBJECT[about["object"]], about, api_version=OLD)
        assert "4242" not in keep(found)


@here
@pytest.mark.parametrize("kind", sorted(OF_OBJECT))
def test_every_sample_of_the_published_description_is_read(kind: str) -> None:
    resources = json.loads((GIVEN / "stripe-openapi" / "fixtures3.json").read_text())["resources"]
    about = resources[kind]
    if kind == "checkout.session":
        about = {**about, "payment_status": "unpaid"}
    found = facts(OF_OBJECT[kind], about)
    assert getattr(found, "is_paid", False) is False


@here
@pytest.mark.parametrize(
    "file", given_events(GIVEN / "stripe-cli-triggers"), ids=lambda file: file.stem
)
def test_a_script_of_requests_is_no_event(file: Path) -> None:
    with pytest.raises(Unreadable):
        open_envelope(json.loads(file.read_text()))


@pytest.mark.parametrize("file", given_events(LIFE), ids=lambda file: file.stem)
def test_the_old_shape_of_an_invoice_of_today_says_the_same(file: Path) -> None:
    parsed = json.loads(file.read_text())
    if not parsed["type"].startswith("invoice."):
        return
    new = read(open_envelope(parsed))
    about = parsed["data"]["object"]
    details = about.pop("parent")["subscription_details"]
    about["subscription"], about["subscription_details"] = details["subscription"], details
    for one in about["lines"]["data"]:
        parent = one.pop("parent")["subscription_item_details"]
        one["proration"], one["subscription"] = parent["proration"], parent["subscription"]
        one["price"] = {"id": one.pop("pricing")["price_details"]["price"]}
        assert not MOVED & set(one)
    assert read(open_envelope(parsed)) == new
