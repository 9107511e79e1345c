"""The listing machine and what its seller may change."""

from dataclasses import replace
from typing import Any

import pytest

from tests.actors.listing.states import BLANK, DAY, FIELDS, ID, NOON, connected, drafted
from tolsey.actors.listing import lifecycle
from tolsey.actors.listing.lifecycle import Status
from tolsey.actors.listing.messages import (
    ClockTick,
    CreateListing,
    EditListing,
    PauseListing,
    PublishListing,
    RemoveListing,
    ReviewListing,
    SubmitListing,
    WithdrawListing,
)
from tolsey.actors.listing.state import ListingState
from tolsey.actors.refusals import Forbidden, InvalidTransition, Unprocessable
from tolsey.storage.records.selling.listing import ListingFields, ListingRecord, VerificationState


def record_of(state: ListingState) -> ListingRecord:
    assert state.listing is not None
    return state.listing


def publish(**changed: Any) -> PublishListing:
    return PublishListing(**{"at": NOON, "by": "usr_1", "automatic": True, **changed})


def test_a_listing_begins_as_a_draft_with_an_address_of_its_own() -> None:
    message = CreateListing(
        organization_id="org_1", store_id=None, fields=FIELDS, by="usr_1", at=NOON
    )
    decision = lifecycle.create(BLANK, message)
    created = record_of(decision.state)

    assert (created.status, created.slug) == (Status.DRAFT, "corner-shop-e5f60913")
    assert lifecycle.create(decision.state, message).state is decision.state


@pytest.mark.parametrize(
    ("title", "anonymous", "slug"),
    [
        ("Café  Olé & Söhne!", False, "cafe-ole-sohne-e5f60913"),
        ("雑貨店", False, "listing-e5f60913"),
        ("Corner shop", True, "listing-e5f60913"),
    ],
)
def test_an_address_is_readable_and_tells_nothing_of_an_anonymous_business(
    title: str, anonymous: bool, slug: str
) -> None:
    assert lifecycle.slug_of(title, ID, anonymous=anonymous) == slug


def test_only_the_given_fields_change() -> None:
    message = EditListing(ListingFields(teaser="Cosy"), ("teaser",), NOON + DAY)
    after = record_of(lifecycle.edit(drafted(), message).state)

    assert after == replace(record_of(drafted()), teaser="Cosy", seller_active_at=NOON + DAY)


def test_a_listing_in_public_keeps_its_title() -> None:
    message = EditListing(ListingFields(), ("title",), NOON)

    with pytest.raises(Unprocessable) as refused:
        lifecycle.edit(drafted(Status.ACTIVE), message)
    assert refused.value.code == "incomplete_listing"


def test_the_least_offer_does_not_change_its_currency_unsaid() -> None:
    offered = drafted(asking_price=5_000_00, currency="USD", min_offer=4_000_00)
    euros = ListingFields(asking_price=5_000_00, currency="EUR", min_offer=3_500_00)

    for fields, given in (
        (euros, ("asking_price", "currency")),
        (ListingFields(asking_price=3_000_00, currency="USD"), ("asking_price", "currency")),
    ):
        with pytest.raises(Unprocessable) as refused:
            lifecycle.edit(offered, EditListing(fields, given, NOON))
        assert refused.value.code == "invalid_request"
    both = EditListing(euros, ("asking_price", "currency", "min_offer"), NOON)
    edited = record_of(lifecycle.edit(offered, both).state)
    assert (edited.currency, edited.min_offer) == ("EUR", 3_500_00)


@pytest.mark.parametrize(
    "status", [Status.UNDER_OFFER, Status.SOLD, Status.WITHDRAWN, Status.SUSPENDED]
)
def test_a_listing_that_others_rely_on_is_not_edited(status: Status) -> None:
    with pytest.raises(InvalidTransition):
        lifecycle.edit(drafted(status), EditListing(FIELDS, ("title",), NOON))


@pytest.mark.parametrize("status", [Status.DRAFT, Status.REJECTED, Status.EXPIRED])
def test_without_a_person_in_between_publishing_submits_and_approves(status: Status) -> None:
    decision = lifecycle.publish(drafted(status), publish())

    assert decision.reply == "ACTIVE"
    assert record_of(decision.state).published_at == NOON


def test_a_listing_without_a_price_is_shown_for_its_badge_alone() -> None:
    decision = lifecycle.publish(drafted(asking_price=None, currency=None), publish())

    assert decision.reply == "ACTIVE"
    unpriced = EditListing(ListingFields(), ("asking_price", "currency"), NOON)
    assert lifecycle.edit(drafted(Status.ACTIVE), unpriced).reply == "ACTIVE"


def test_with_a_review_the_owner_waits_for_an_administrator() -> None:
    pending = lifecycle.submit(drafted(), SubmitListing(NOON)).state

    with pytest.raises(Forbidden) as refused:
        lifecycle.publish(pending, publish(automatic=False))
    assert refused.value.code == "review_required"
    approved = lifecycle.publish(pending, publish(automatic=False, administrator=True))
    assert approved.reply == "ACTIVE"
    assert [record.event for record in approved.records] == ["listing.approve"]


def test_with_a_review_a_draft_is_submitted_first() -> None:
    with pytest.raises(InvalidTransition) as refused:
        lifecycle.publish(drafted(), publish(automatic=False))
    assert refused.value.fields == {"allowed": ["submit", "withdraw"]}


def test_a_paused_listing_is_resumed_by_publishing() -> None:
    paused = lifecycle.pause(drafted(Status.ACTIVE), PauseListing(NOON)).state

    assert lifecycle.publish(paused, publish(automatic=False)).reply == "ACTIVE"


def test_a_move_the_machine_lacks_is_refused_with_those_it_has() -> None:
    with pytest.raises(InvalidTransition) as refused:
        lifecycle.pause(drafted(), PauseListing(NOON))
    assert refused.value.fields == {"allowed": ["publish", "submit", "withdraw"]}


def test_withdrawing_forgets_the_credentials() -> None:
    state = connected(VerificationState.VERIFIED)
    after = lifecycle.withdraw(state, WithdrawListing(NOON, "usr_1")).state

    assert record_of(after).status is Status.WITHDRAWN
    assert after.proof().verification.state is VerificationState.REVOKED
    erased = after.proof().source
    assert erased is not None
    assert erased.sealed_secret is None


def test_a_removed_listing_is_withdrawn_and_stays_as_a_tombstone() -> None:
    after = lifecycle.remove(drafted(Status.ACTIVE), RemoveListing(NOON, "usr_1")).state

    assert record_of(after).status is Status.WITHDRAWN
    assert record_of(after).deleted_at == NOON


def test_a_suspended_listing_goes_with_its_store_or_account_alone() -> None:
    wanted = WithdrawListing(NOON, "usr_1")
    with pytest.raises(InvalidTransition):
        lifecycle.withdraw(drafted(Status.SUSPENDED), wanted)
    gone = lifecycle.withdraw(drafted(Status.SUSPENDED), replace(wanted, owner_goes=True))
    assert record_of(gone.state).status == Status.WITHDRAWN


@pytest.mark.parametrize("status", [Status.UNDER_OFFER, Status.SOLD, Status.SUSPENDED])
def test_a_listing_that_others_have_a_claim_on_is_not_removed(status: Status) -> None:
    with pytest.raises(InvalidTransition):
        lifecycle.remove(drafted(status), RemoveListing(NOON, "usr_1"))


def test_a_rejection_needs_a_reason() -> None:
    pending = drafted(Status.PENDING_REVIEW)

    with pytest.raises(Unprocessable):
        lifecycle.review(pending, ReviewListing(verdict="reject", reason="", by="usr_a", at=NOON))
    rejected = lifecycle.review(
        pending, ReviewListing(verdict="reject", reason="No logo", by="usr_a", at=NOON)
    )
    assert record_of(rejected.state).status_reason == "No logo"


def test_a_listing_left_alone_for_half_a_year_expires() -> None:
    active = drafted(Status.ACTIVE)

    assert lifecycle.tick(active, ClockTick(NOON + 179 * DAY)).state is active
    expired = lifecycle.tick(active, ClockTick(NOON + 180 * DAY)).state
    assert record_of(expired).status is Status.EXPIRED
