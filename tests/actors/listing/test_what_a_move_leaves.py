"""What each move of the verification machine leaves of a record, field by field.

A record is compared whole: a badge that comes back, an error that stays, or a sync that is believed
after its credentials are gone is mostly one field that a move forgot.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.actors.listing.states import DAY, HOUR, NOON, SHOP, machine
from tolsey.actors.listing.verification import transitions
from tolsey.actors.listing.verification.transitions import (
    BADGES,
    DEVELOPMENT,
    SYNC_EXPIRES,
    Badge,
    State,
    VerificationEvent,
    badge_of,
    is_syncing,
    listing_badge,
    primary,
)
from tolsey.actors.refusals import InvalidTransition
from tolsey.storage.records.selling.listing import PAYMENTS, VerificationRecord

AT = NOON + HOUR
MICROSECOND = timedelta(microseconds=1)


def used(state: State, **changed: Any) -> VerificationRecord:
    """Make a record with something in every field, in which a move that forgets one shows."""
    given: dict[str, Any] = {
        "generation": 7,
        "keeps_badge": True,
        "syncing_since": NOON,
        "missing_permission": "read_orders",
        "last_error": "platform_500",
        "primary_domain": "corner.example",
        "redefined": "{}",
    }
    return machine(state, **{**given, **changed})


@pytest.mark.parametrize(("state", "keeps"), [(State.VERIFIED, False), (State.PENDING, True)])
def test_new_credentials_of_the_same_shop_keep_what_it_proved(state: State, keeps: bool) -> None:
    before = used(state, keeps_badge=keeps)

    assert transitions.accept(before, SHOP, AT) == replace(
        before,
        state=State.PENDING,
        since=AT,
        generation=8,
        accepted_at=AT,
        keeps_badge=True,
        syncing_since=AT,
        missing_permission=None,
        last_error=None,
    )


@pytest.mark.parametrize(
    ("state", "shop"), [(State.VERIFIED, "other.myshopify.com"), (State.REVOKED, SHOP)]
)
def test_credentials_of_another_shop_or_after_a_removal_start_from_nothing(
    state: State, shop: str
) -> None:
    before = used(state)

    assert transitions.accept(before, shop, AT) == replace(
        before,
        state=State.PENDING,
        since=AT,
        generation=8,
        shop_domain=shop,
        accepted_at=AT,
        last_ok_at=None,
        verified_at=None,
        keeps_badge=False,
        syncing_since=AT,
        missing_permission=None,
        last_error=None,
        primary_domain=None,
    )


@pytest.mark.parametrize(
    ("state", "sufficient", "becomes"),
    [
        (State.PENDING, True, State.VERIFIED),
        (State.PENDING, False, State.VERIFIED_NEW),
        (State.VERIFIED, True, State.VERIFIED),
    ],
)
def test_a_good_sync_leaves_its_moment_and_nothing_of_the_trouble_before(
    state: State, sufficient: bool, becomes: State
) -> None:
    before = used(state)

    assert transitions.succeed(before, AT, AT, sufficient=sufficient) == replace(
        before,
        state=becomes,
        since=NOON if becomes is state else AT,
        last_ok_at=AT,
        verified_at=AT if sufficient else None,
        keeps_badge=False,
        syncing_since=None,
        missing_permission=None,
        last_error=None,
    )


def test_a_good_sync_of_what_is_suspended_proves_nothing() -> None:
    before = used(State.SUSPENDED)

    assert transitions.succeed(before, AT, AT, sufficient=True) == replace(
        before,
        last_ok_at=AT,
        keeps_badge=False,
        syncing_since=None,
        missing_permission=None,
        last_error=None,
    )


def test_a_shop_that_turns_into_a_development_store_keeps_no_proof() -> None:
    before = used(State.VERIFIED)

    assert transitions.develops(before, AT) == replace(
        before,
        state=State.SUSPENDED,
        since=AT,
        verified_at=None,
        keeps_badge=False,
        syncing_since=None,
        last_error=DEVELOPMENT,
        suspended_for=DEVELOPMENT,
    )


def test_a_development_store_whose_sources_are_revoked_is_left_alone() -> None:
    before = used(State.REVOKED)

    assert transitions.develops(before, AT) == replace(before, syncing_since=None)


def test_a_shop_that_sells_again_is_pending_and_nobodys_doubt_is_lifted_by_that() -> None:
    before = used(State.SUSPENDED, suspended_for=DEVELOPMENT)

    assert transitions.sells(before, AT) == replace(
        before, state=State.PENDING, since=AT, suspended_for=None, last_error=None
    )
    doubted = used(State.SUSPENDED)
    assert transitions.sells(doubted, AT) is doubted


@pytest.mark.parametrize(
    ("note", "becomes", "noted"),
    [
        (transitions.deny, State.NEEDS_PERMISSION, "missing_permission"),
        (transitions.refuse_grant, State.TOKEN_UNAVAILABLE, "last_error"),
    ],
)
def test_a_refusal_is_noted_and_ends_the_sync_and_the_badge_that_was_kept(
    note: Callable[[VerificationRecord, str, datetime], VerificationRecord],
    becomes: State,
    noted: str,
) -> None:
    left: dict[str, Any] = {"syncing_since": None, noted: "said"}
    before = used(State.PENDING)

    assert note(before, "said", AT) == replace(
        before, state=becomes, since=AT, keeps_badge=False, **left
    )
    revoked = used(State.REVOKED)
    assert note(revoked, "said", AT) == replace(revoked, **left)


def test_a_sync_that_came_to_nothing_changes_no_state() -> None:
    before = used(State.VERIFIED)

    assert transitions.miss(before, "timeout", AT) == replace(
        before, syncing_since=None, last_error="timeout"
    )


@pytest.mark.parametrize(
    ("state", "verdict", "left"),
    [
        (
            State.VERIFIED,
            VerificationEvent.FRAUD_FLAG,
            {"state": State.SUSPENDED, "generation": 8},
        ),
        (
            State.SUSPENDED,
            VerificationEvent.ADMIN_CLEAR,
            {"state": State.PENDING, "generation": 8},
        ),
        (
            State.SUSPENDED,
            VerificationEvent.ADMIN_REJECT,
            {"state": State.FAILED, "generation": 9, "accepted_at": None, "verified_at": None},
        ),
    ],
)
def test_a_verdict_makes_every_sync_of_before_unheard(
    state: State, verdict: VerificationEvent, left: dict[str, Any]
) -> None:
    before = used(state, suspended_for=DEVELOPMENT)

    assert transitions.review(before, verdict, AT) == replace(
        before,
        since=AT,
        suspended_for=None,
        keeps_badge=False,
        syncing_since=None,
        **left,
    )


def test_only_what_failed_is_discredited() -> None:
    failed = used(State.FAILED)

    assert transitions.discredit(failed) == replace(
        failed, generation=8, accepted_at=None, verified_at=None
    )
    pending = used(State.PENDING)
    assert transitions.discredit(pending) is pending


def test_a_removal_leaves_nothing_that_a_sync_under_way_could_bring_back() -> None:
    before = used(State.SUSPENDED, suspended_for=DEVELOPMENT)

    assert transitions.remove(before, AT) == replace(
        before,
        state=State.REVOKED,
        since=AT,
        generation=8,
        suspended_for=None,
        keeps_badge=False,
        syncing_since=None,
        missing_permission=None,
        last_error=None,
    )


def test_time_enters_a_state_at_the_moment_at_which_it_is_asked_and_keeps_no_badge() -> None:
    before = used(State.VERIFIED)

    assert transitions.settle(before, NOON + DAY) == replace(
        before, state=State.STALE, since=NOON + DAY, keeps_badge=False
    )


def test_what_never_had_a_good_sync_nor_credentials_is_as_old_as_can_be() -> None:
    before = used(State.STALE, last_ok_at=None, accepted_at=None)

    assert transitions.overdue(before, NOON) is VerificationEvent.CLOCK_7D
    assert transitions.overdue(used(State.SUSPENDED), NOON + 99 * DAY) is None


def test_a_move_that_is_not_allowed_says_what_is() -> None:
    with pytest.raises(InvalidTransition) as refused:
        transitions.move(used(State.VERIFIED), VerificationEvent.ADMIN_CLEAR, AT)

    assert refused.value.code == "invalid_transition"
    assert refused.value.fields == {"allowed": ["credentials.accepted", "seller.remove"]}


def test_credentials_are_untried_until_a_sync_that_began_after_them() -> None:
    before = used(State.FAILED, accepted_at=NOON)

    assert transitions.untried(replace(before, last_ok_at=NOON - MICROSECOND))
    assert transitions.untried(replace(before, last_ok_at=None))
    assert not transitions.untried(replace(before, last_ok_at=NOON))
    assert not transitions.untried(replace(before, accepted_at=None))


def test_a_badge_that_is_kept_goes_grey_with_the_day_of_what_it_stands_on() -> None:
    kept = used(State.PENDING, since=NOON + DAY)

    assert badge_of(kept, NOON + DAY - MICROSECOND) is Badge.GREEN
    assert badge_of(kept, NOON + DAY) is Badge.GREY
    assert badge_of(replace(kept, keeps_badge=False), NOON) is Badge.NONE


def test_a_listing_shows_the_source_with_the_best_badge_then_the_one_that_is_there() -> None:
    green, grey = used(State.VERIFIED), used(State.STALE, provider=PAYMENTS)
    doubted, none = used(State.SUSPENDED, provider=PAYMENTS), used(State.NONE)

    assert primary([grey, green], AT) is green
    assert primary([green, doubted], AT) is doubted
    assert primary([none, used(State.REVOKED, provider=PAYMENTS)], AT).provider == PAYMENTS
    assert listing_badge([green, grey], AT) is Badge.GREEN
    assert listing_badge([green, doubted], AT) is BADGES[0]


def test_a_sync_that_said_nothing_for_a_quarter_of_an_hour_is_lost() -> None:
    assert is_syncing(used(State.PENDING), NOON + SYNC_EXPIRES - MICROSECOND)
    assert not is_syncing(used(State.PENDING), NOON + SYNC_EXPIRES)
    assert not is_syncing(used(State.PENDING, syncing_since=None), NOON)
