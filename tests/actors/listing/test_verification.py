"""The verification machine, its clock and its badge."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.listing.states import (
    DAY,
    HOUR,
    NOON,
    SHOP,
    connected,
    credentials,
    drafted,
    machine,
    report,
    succeeded,
)
from tolsey.actors.listing.messages import (
    Former,
    PullRevenue,
    RefreshRevenue,
    RemoveRevenueSource,
    ReviewVerification,
    SourceRevoked,
    SyncDue,
    SyncFailed,
    SyncFoundDevelopment,
    SyncGrantRefused,
    SyncInsufficient,
    SyncPermissionDenied,
    SyncSucceeded,
)
from tolsey.actors.listing.verification import source, transitions
from tolsey.actors.listing.verification.transitions import (
    Badge,
    State,
    VerificationEvent,
    badge_of,
    settle,
)
from tolsey.actors.refusals import InvalidTransition, NotFound
from tolsey.runtime.decision import Perform
from tolsey.storage.records.journal import AuditRecord
from tolsey.storage.records.selling.listing import ListingStatus, VerificationRecord
from tolsey.storage.records.selling.revenue import RevenueSnapshot

BADGES = {
    State.VERIFIED: Badge.GREEN,
    State.STALE: Badge.GREY,
    State.NEEDS_PERMISSION: Badge.GREY,
    State.TOKEN_UNAVAILABLE: Badge.GREY,
}


@pytest.mark.parametrize("state", State)
def test_a_fresh_listing_has_the_badge_of_its_state(state: State) -> None:
    assert badge_of(machine(state), NOON + HOUR) is BADGES.get(state, Badge.NONE)


@pytest.mark.parametrize("state", State)
def test_no_badge_outlives_seven_days_without_a_good_sync(state: State) -> None:
    for keeps in (False, True):
        record = machine(state, keeps_badge=keeps, since=NOON + 7 * DAY)
        assert badge_of(record, NOON + 7 * DAY) is Badge.NONE


@pytest.mark.parametrize("state", State)
def test_no_badge_is_green_a_day_after_the_last_good_sync(state: State) -> None:
    for keeps in (False, True):
        record = machine(state, keeps_badge=keeps, since=NOON + DAY)
        assert badge_of(record, NOON + DAY) is not Badge.GREEN


@pytest.mark.parametrize("state", State)
def test_a_shop_that_never_had_thirty_days_never_has_a_badge(state: State) -> None:
    assert badge_of(machine(state, verified_at=None), NOON) is Badge.NONE


@pytest.mark.parametrize(
    ("state", "after", "becomes"),
    [
        (State.VERIFIED, DAY - HOUR, State.VERIFIED),
        (State.VERIFIED, DAY, State.STALE),
        (State.VERIFIED_NEW, DAY, State.STALE),
        (State.VERIFIED, 7 * DAY, State.FAILED),
        (State.STALE, 7 * DAY - HOUR, State.STALE),
        (State.NEEDS_PERMISSION, 7 * DAY, State.FAILED),
        (State.TOKEN_UNAVAILABLE, 7 * DAY, State.FAILED),
        (State.PENDING, DAY - HOUR, State.PENDING),
        (State.PENDING, DAY, State.FAILED),
        (State.SUSPENDED, 90 * DAY, State.SUSPENDED),
        (State.REVOKED, 90 * DAY, State.REVOKED),
    ],
)
def test_time_alone_moves_the_machine(state: State, after: timedelta, becomes: State) -> None:
    assert settle(machine(state), NOON + after).state is becomes


def test_the_first_credentials_start_the_first_sync() -> None:
    decision = source.accept(drafted(), credentials(), in_use=False)

    after = decision.state.proof().verification
    assert (after.state, after.generation, after.syncing_since) == (State.PENDING, 1, NOON)
    assert [effect.call for effect in decision.effects if isinstance(effect, Perform)] == [
        PullRevenue(listing_id=after.listing_id, generation=1, at=NOON, organization_id="org_1")
    ]


def test_a_shop_of_another_listing_is_refused() -> None:
    with pytest.raises(source.SourceInUse):
        source.accept(drafted(), credentials(), in_use=True)


def test_the_same_shop_connected_again_keeps_its_badge_while_it_is_read() -> None:
    again = source.accept(connected(State.VERIFIED), credentials(NOON + HOUR), in_use=False)
    record = again.state.proof().verification

    assert record.state is State.PENDING
    assert badge_of(record, NOON + HOUR) is Badge.GREEN
    assert badge_of(record, NOON + DAY) is Badge.GREY
    assert badge_of(record, NOON + HOUR + DAY) is Badge.NONE


def test_another_shop_starts_without_the_badge_of_the_first() -> None:
    other = credentials(NOON + HOUR, "other.myshopify.com")
    record = (
        source.accept(connected(State.VERIFIED), other, in_use=False).state.proof().verification
    )

    assert badge_of(record, NOON + HOUR) is Badge.NONE
    refused = transitions.refuse_grant(record, "invalid_client", NOON + 2 * HOUR)
    assert badge_of(refused, NOON + 2 * HOUR) is Badge.NONE


def test_connecting_again_and_again_does_not_keep_an_old_badge_alive() -> None:
    state = connected(State.VERIFIED)
    for hours in range(1, 9 * 24, 6):
        at = NOON + hours * HOUR
        state = source.accept(state, credentials(at), in_use=False).state
        assert badge_of(state.proof().verification, at) is not Badge.GREEN or hours < 24
    assert badge_of(state.proof().verification, at) is Badge.NONE


def test_a_good_sync_is_kept_as_a_snapshot() -> None:
    decision = source.report(connected(State.VERIFIED), succeeded(NOON + HOUR))

    assert decision.state.proof().verification.last_ok_at == NOON + HOUR
    assert decision.records == [
        RevenueSnapshot(
            listing_id=decision.state.proof().verification.listing_id,
            window_end=NOON + HOUR,
            window_start=NOON + HOUR - 30 * DAY,
            source="commerce",
            shop_domain=SHOP,
            definition="rv2",
            shop_currency="USD",
            verified=True,
            figures='{"USD": {"revenue30d": 10000, "mrr": 0, "annualised": 120000, "orders": 3}}',
            orders=3,
            skipped="{}",
            flags="[]",
        )
    ]


def test_a_young_shop_is_new_until_it_has_thirty_days() -> None:
    pending = connected(State.PENDING, last_ok_at=None, verified_at=None)
    young = source.report(pending, SyncInsufficient(report(NOON), NOON)).state
    grown = source.report(young, succeeded(NOON + HOUR)).state

    assert young.proof().verification.state is State.VERIFIED_NEW
    assert badge_of(young.proof().verification, NOON) is Badge.NONE
    assert badge_of(grown.proof().verification, NOON + HOUR) is Badge.GREEN


def test_a_young_shop_that_was_away_for_a_day_comes_back_as_new() -> None:
    stale = connected(State.STALE, verified_at=None)

    back = source.report(stale, SyncInsufficient(report(NOON + HOUR), NOON + HOUR))
    assert back.state.proof().verification.state is State.VERIFIED_NEW


def test_a_sync_of_former_credentials_is_not_heard() -> None:
    state = connected(State.PENDING, generation=2)

    assert source.report(state, succeeded(NOON + HOUR, generation=1)).state is state
    assert (
        source.deny(
            state, SyncPermissionDenied(generation=1, permission="read_orders", at=NOON)
        ).state
        is state
    )
    assert (
        source.refuse_grant(state, SyncGrantRefused(generation=1, code="x", at=NOON)).state is state
    )
    assert source.miss(state, SyncFailed(generation=1, reason="x", at=NOON)).state is state


def test_an_older_window_never_replaces_a_newer_one() -> None:
    state = connected(State.VERIFIED, syncing_since=NOON)
    decision = source.report(state, succeeded(NOON - HOUR))

    assert decision.records == ()
    assert decision.state.proof().verification == machine(State.VERIFIED)


def test_a_failed_sync_changes_neither_state_nor_numbers() -> None:
    state = connected(State.VERIFIED, syncing_since=NOON)
    decision = source.miss(
        state, SyncFailed(generation=1, reason="commerce_unreachable", at=NOON + HOUR)
    )

    assert decision.records == ()
    assert decision.state.proof().verification == machine(
        State.VERIFIED, last_error="commerce_unreachable"
    )


def test_the_missing_permission_is_named() -> None:
    denied = SyncPermissionDenied(generation=1, permission="read_orders", at=NOON + HOUR)
    after = source.deny(connected(State.VERIFIED), denied).state.proof().verification

    assert (after.state, after.missing_permission) == (State.NEEDS_PERMISSION, "read_orders")


def test_a_refused_grant_keeps_the_credentials_and_is_tried_again_every_hour() -> None:
    refused = SyncGrantRefused(generation=1, code="invalid_client", at=NOON + HOUR)
    after = source.refuse_grant(connected(State.VERIFIED), refused).state

    assert after.proof().verification.state is State.TOKEN_UNAVAILABLE
    assert after.proof().source == connected(State.VERIFIED).proof().source
    assert source.due(after, SyncDue(NOON + 2 * HOUR)).effects


def test_one_sync_at_a_time_until_it_is_given_up() -> None:
    once = source.due(connected(State.VERIFIED), SyncDue(NOON))
    twice = source.due(once.state, SyncDue(NOON + timedelta(minutes=14)))
    later = source.due(once.state, SyncDue(NOON + timedelta(minutes=15)))

    assert once.effects
    assert twice.state is once.state
    assert not twice.effects
    assert later.effects


@pytest.mark.parametrize("state", [State.REVOKED, State.FAILED])
def test_a_shop_is_left_alone_when_its_numbers_are_not_wanted(state: State) -> None:
    decision = source.due(connected(state), SyncDue(NOON + HOUR))

    assert not decision.effects
    with pytest.raises(InvalidTransition):
        source.refresh(connected(state), RefreshRevenue(NOON + HOUR))


def test_the_hourly_message_lets_the_clock_have_its_say_first() -> None:
    pending = connected(State.PENDING)

    assert source.due(pending, SyncDue(NOON + DAY)).state.proof().verification.state is State.FAILED


def test_new_credentials_that_were_never_tried_can_still_succeed_after_a_failure() -> None:
    failed = connected(State.FAILED, accepted_at=NOON + HOUR)

    assert source.refresh(failed, RefreshRevenue(NOON + DAY)).effects
    good = source.report(failed, succeeded(NOON + DAY)).state
    assert good.proof().verification.state is State.VERIFIED


def test_an_old_sync_does_not_bring_a_failed_listing_back() -> None:
    decision = source.report(connected(State.FAILED), succeeded(NOON + 8 * DAY))

    assert decision.state.proof().verification.state is State.FAILED
    assert decision.records == ()


def test_removing_erases_the_credentials_and_their_sync() -> None:
    removed = source.disconnect(
        connected(State.VERIFIED), RemoveRevenueSource(NOON + HOUR, "usr_1")
    ).state

    erased = removed.proof().source
    assert erased is not None
    assert (erased.sealed_secret, erased.client_id) == (None, "")
    assert removed.proof().verification.state is State.REVOKED
    assert removed.proof().verification.generation == 2
    again = source.disconnect(removed, RemoveRevenueSource(NOON + HOUR, "usr_1"))
    assert again.state is removed


def test_there_is_nothing_to_remove_before_anything_was_connected() -> None:
    with pytest.raises(NotFound):
        source.disconnect(drafted(), RemoveRevenueSource(NOON, "usr_1"))


def test_an_uninstall_from_before_the_last_connection_changes_nothing() -> None:
    state = connected(State.VERIFIED)

    assert source.revoke(state, SourceRevoked(NOON - HOUR, "app/uninstalled")).state is state
    after = source.revoke(state, SourceRevoked(NOON + HOUR, "app/uninstalled")).state
    assert after.proof().verification.state is State.REVOKED
    assert source.revoke(after, SourceRevoked(NOON + HOUR, "shop/redact")).state is after


def test_a_seller_cannot_connect_their_way_out_of_a_suspension() -> None:
    with pytest.raises(InvalidTransition) as refused:
        source.accept(connected(State.SUSPENDED), credentials(), in_use=False)

    assert refused.value.fields == {"allowed": ["seller.remove"]}


def test_an_administrator_flags_clears_and_rejects() -> None:
    flagged = source.review(
        connected(State.VERIFIED),
        ReviewVerification(verdict="fraud.flag", reason="odd", by="usr_a", at=NOON),
    ).state
    cleared = source.review(
        flagged, ReviewVerification(verdict="admin.clear", reason="fine", by="usr_a", at=NOON)
    )
    rejected = source.review(
        flagged, ReviewVerification(verdict="admin.reject", reason="fake", by="usr_a", at=NOON)
    ).state

    assert flagged.proof().verification.state is State.SUSPENDED
    assert cleared.state.proof().verification.state is State.PENDING
    assert cleared.effects
    assert rejected.proof().verification.state is State.FAILED
    with pytest.raises(InvalidTransition):
        source.refresh(rejected, RefreshRevenue(NOON + HOUR))


@pytest.mark.parametrize(
    ("claimed", "flagged"),
    [
        (None, []),
        ("www.corner.example", []),
        ("corner.myshopify.com", []),
        ("famous.example", ["domain_mismatch"]),
    ],
)
def test_a_claimed_domain_must_be_the_shops_own(claimed: str | None, flagged: list[str]) -> None:
    assert source.flags_of(["domain_mismatch"], claimed, "Corner.example", SHOP) == flagged


events = st.sampled_from(VerificationEvent)


@given(st.lists(st.tuples(events, st.integers(0, 200)), max_size=12))
def test_whatever_happens_a_green_badge_is_less_than_a_day_old(
    happened: list[tuple[VerificationEvent, int]],
) -> None:
    at, record = NOON, VerificationRecord(listing_id="listing_1")
    for event, hours in happened:
        at += timedelta(hours=hours)
        record = _after(record, event, at)
        for later in (0, 1, 23, 24, 100, 168):
            seen_at = at + timedelta(hours=later)
            badge = badge_of(record, seen_at)
            good = record.verified_at
            assert badge is Badge.NONE or (good is not None and seen_at - good < 7 * DAY)
            assert badge is not Badge.GREEN or (good is not None and seen_at - good < DAY)


def _after(
    record: VerificationRecord, event: VerificationEvent, at: datetime
) -> VerificationRecord:
    judged = partial(transitions.review, record, event, at)
    moves: dict[VerificationEvent, Callable[[], VerificationRecord]] = {
        VerificationEvent.CREDENTIALS_ACCEPTED: lambda: transitions.accept(record, SHOP, at),
        VerificationEvent.SYNC_OK: lambda: transitions.succeed(record, at, at, sufficient=True),
        VerificationEvent.SYNC_INSUFFICIENT: lambda: transitions.succeed(
            record, at, at, sufficient=False
        ),
        VerificationEvent.SYNC_PERMISSION_DENIED: lambda: transitions.deny(
            record, "read_orders", at
        ),
        VerificationEvent.GRANT_REFUSED: lambda: transitions.refuse_grant(
            record, "invalid_client", at
        ),
        VerificationEvent.SELLER_REMOVE: lambda: transitions.remove(record, at),
        VerificationEvent.SHOP_DEVELOPMENT: lambda: transitions.develops(record, at),
        VerificationEvent.SHOP_SELLS: lambda: transitions.sells(record, at),
        VerificationEvent.FRAUD_FLAG: judged,
        VerificationEvent.ADMIN_CLEAR: judged,
        VerificationEvent.ADMIN_REJECT: judged,
    }
    try:
        return moves.get(event, lambda: settle(record, at))()
    except InvalidTransition:
        return record


def test_withdrawn_listings_take_no_credentials() -> None:
    withdrawn = drafted(ListingStatus.WITHDRAWN)
    with pytest.raises(Exception, match="WITHDRAWN"):
        source.accept(withdrawn, credentials(), in_use=False)


def test_a_persons_doubt_is_not_lifted_by_a_good_sync_whose_numbers_stay_unpublished() -> None:
    doubted = connected(State.SUSPENDED)
    decision = source.report(doubted, succeeded(NOON + HOUR))
    (kept,) = decision.records

    assert decision.state.proof().verification.state is State.SUSPENDED
    assert decision.state.proof().verification.verified_at == NOON
    assert isinstance(kept, RevenueSnapshot)
    assert kept.verified is False
    assert source.due(doubted, SyncDue(NOON + HOUR)).effects
    with pytest.raises(InvalidTransition):
        source.refresh(doubted, RefreshRevenue(NOON + HOUR))


def test_a_shop_on_a_real_plan_again_is_verified_by_that_sync() -> None:
    found = SyncFoundDevelopment(1, NOON + HOUR)
    lost = source.develops(connected(State.VERIFIED, syncing_since=NOON), found).state
    record = lost.proof().verification
    assert record.syncing_since is None

    assert (record.state, record.suspended_for) == (State.SUSPENDED, "development_store")
    assert record.verified_at is None
    assert source.develops(connected(State.SUSPENDED), found).state == connected(State.SUSPENDED)
    assert source.refresh(lost, RefreshRevenue(NOON + 2 * HOUR)).effects
    back = source.report(lost, succeeded(NOON + 2 * HOUR))
    assert back.state.proof().verification.state is State.VERIFIED
    assert back.state.proof().verification.suspended_for is None


def test_a_sync_keeps_the_domain_it_found_and_what_a_new_definition_did_to_the_numbers() -> None:
    former = Former("rv1", '{"USD": {"revenue30d": 99000}}')
    good = SyncSucceeded(replace(report(NOON + HOUR), former=former), NOON + HOUR)
    decision = source.report(connected(State.VERIFIED), good)
    record = decision.state.proof().verification

    assert record.primary_domain == "corner.example"
    answered = json.loads(record.redefined or "{}")
    assert (answered["from"], answered["to"], answered["at"]) == (
        "rv1",
        "rv2",
        (NOON + HOUR).isoformat(),
    )
    assert answered["before"] == {"USD": {"revenue30d": 99_000}}
    assert answered["after"]["USD"]["revenue30d"] == 10_000
    (audit,) = (each for each in decision.records if isinstance(each, AuditRecord))
    assert audit.event == "verification.redefined"


def test_credentials_given_twice_before_a_sync_keep_the_badge_of_the_same_shop() -> None:
    once = source.accept(connected(State.VERIFIED), credentials(NOON), in_use=False).state
    twice = source.accept(once, credentials(NOON + HOUR), in_use=False).state

    assert badge_of(twice.proof().verification, NOON + HOUR) is Badge.GREEN
