"""Two sources side by side: each has its machine, and what is said of the listing is said of both."""

from dataclasses import replace

import pytest

from tests.actors.listing.states import (
    ACCOUNT,
    DAY,
    HOUR,
    NOON,
    also_paid,
    connected,
    credentials,
    drafted,
    machine,
    report,
)
from tolsey.actors.listing import lifecycle
from tolsey.actors.listing.messages import (
    ClockTick,
    PullRevenue,
    RefreshRevenue,
    RemoveRevenueSource,
    ReviewVerification,
    SourceRevoked,
    SyncDue,
    SyncFailed,
    SyncGrantRefused,
    SyncPermissionDenied,
    SyncSucceeded,
)
from tolsey.actors.listing.state import ListingState
from tolsey.actors.listing.verification import source
from tolsey.actors.listing.verification.transitions import Badge, listing_badge, primary
from tolsey.actors.refusals import InvalidTransition, NotFound
from tolsey.runtime.decision import Perform
from tolsey.storage.records.selling.listing import (
    COMMERCE,
    PAYMENTS,
    VerificationRecord,
    VerificationState,
)
from tolsey.storage.records.selling.revenue import RevenueSnapshot

State = VerificationState
BOTH = also_paid(connected(State.VERIFIED), State.VERIFIED)


def states(state: ListingState) -> tuple[State, State]:
    return (state.proof(COMMERCE).verification.state, state.proof(PAYMENTS).verification.state)


def pulled(effects: object) -> list[str]:
    assert isinstance(effects, list)
    calls = [effect.call for effect in effects if isinstance(effect, Perform)]
    return [call.provider for call in calls if isinstance(call, PullRevenue)]


def records(*states: State) -> list[VerificationRecord]:
    return [
        machine(state, provider=provider)
        for state, provider in zip(states, (COMMERCE, PAYMENTS), strict=True)
    ]


def test_a_second_source_does_not_touch_the_first() -> None:
    state = connected(State.VERIFIED)
    key = replace(credentials(shop_domain=ACCOUNT), provider=PAYMENTS)
    after = source.accept(state, key, in_use=False)

    assert states(after.state) == (State.VERIFIED, State.PENDING)
    assert after.state.proof(COMMERCE) is state.proof(COMMERCE)
    assert pulled(after.effects) == [PAYMENTS]
    kept = after.state.proof(PAYMENTS).source
    assert kept is not None
    assert (kept.provider, kept.shop_domain) == (PAYMENTS, ACCOUNT)


def test_each_sync_is_heard_by_its_own_source() -> None:
    found = replace(report(NOON + HOUR), provider=PAYMENTS, shop_domain=ACCOUNT)
    good = source.report(BOTH, SyncSucceeded(found, NOON + HOUR))
    kept = good.records[0]
    assert isinstance(kept, RevenueSnapshot)
    assert (kept.source, kept.shop_domain) == (PAYMENTS, ACCOUNT)
    assert good.state.proof(COMMERCE) is BOTH.proof(COMMERCE)

    at = NOON + HOUR
    denied = source.deny(
        BOTH, SyncPermissionDenied(generation=1, permission="charges", at=at, provider=PAYMENTS)
    ).state
    refused = source.refuse_grant(
        BOTH, SyncGrantRefused(generation=1, code="expired", at=at, provider=PAYMENTS)
    ).state
    missed = source.miss(
        BOTH, SyncFailed(generation=1, reason="account_too_large", at=at, provider=PAYMENTS)
    ).state
    assert states(denied) == (State.VERIFIED, State.NEEDS_PERMISSION)
    assert states(refused) == (State.VERIFIED, State.TOKEN_UNAVAILABLE)
    assert missed.proof(PAYMENTS).verification.last_error == "account_too_large"
    assert missed.proof(COMMERCE) is BOTH.proof(COMMERCE)


def test_the_hour_and_a_refresh_read_whatever_works() -> None:
    assert pulled(source.due(BOTH, SyncDue(NOON)).effects) == [COMMERCE, PAYMENTS]
    assert pulled(source.refresh(BOTH, RefreshRevenue(NOON)).effects) == [COMMERCE, PAYMENTS]
    half = also_paid(connected(State.REVOKED), State.VERIFIED)
    assert pulled(source.refresh(half, RefreshRevenue(NOON)).effects) == [PAYMENTS]
    running = also_paid(connected(State.VERIFIED, syncing_since=NOON), State.VERIFIED)
    assert pulled(source.due(running, SyncDue(NOON + HOUR / 10)).effects) == [PAYMENTS]


def test_two_pulls_of_one_moment_are_two_effects() -> None:
    keys = [effect.key for effect in source.due(BOTH, SyncDue(NOON)).effects]

    assert len(set(keys)) == 2


def test_a_seller_takes_back_one_source_or_both() -> None:
    def removed(provider: str | None) -> tuple[State, State]:
        message = RemoveRevenueSource(NOON, "usr_1", provider)
        return states(source.disconnect(BOTH, message).state)

    assert removed(None) == (State.REVOKED, State.REVOKED)
    assert removed(COMMERCE) == (State.REVOKED, State.VERIFIED)
    assert removed(PAYMENTS) == (State.VERIFIED, State.REVOKED)
    with pytest.raises(NotFound):
        source.disconnect(connected(State.VERIFIED), RemoveRevenueSource(NOON, "usr_1", PAYMENTS))


def test_an_uninstalled_app_says_nothing_of_the_processor() -> None:
    after = source.revoke(BOTH, SourceRevoked(NOON + HOUR, "app_uninstalled")).state

    assert states(after) == (State.REVOKED, State.VERIFIED)


def test_a_doubt_is_about_every_source_and_no_other_lifts_it() -> None:
    flag = ReviewVerification(verdict="fraud.flag", reason="odd", by="usr_a", at=NOON)
    assert states(source.review(BOTH, flag).state) == (State.SUSPENDED, State.SUSPENDED)

    failed = also_paid(connected(State.VERIFIED), State.FAILED, accepted_at=NOON + HOUR)
    flagged = source.review(failed, flag).state
    assert states(flagged) == (State.SUSPENDED, State.FAILED)
    found = replace(report(NOON + HOUR), provider=PAYMENTS)
    heard = source.report(flagged, SyncSucceeded(found, NOON + HOUR))
    assert (heard.records, states(heard.state)) == ((), (State.SUSPENDED, State.FAILED))
    key = replace(credentials(shop_domain=ACCOUNT), provider=PAYMENTS)
    with pytest.raises(InvalidTransition):
        source.accept(flagged, key, in_use=False)
    with pytest.raises(InvalidTransition):
        source.refresh(flagged, RefreshRevenue(NOON))
    with pytest.raises(InvalidTransition):
        source.review(flagged, flag)


def test_a_cleared_listing_is_read_again_by_all_its_sources() -> None:
    suspended = also_paid(connected(State.SUSPENDED), State.SUSPENDED)
    clear = ReviewVerification(verdict="admin.clear", reason="fine", by="usr_a", at=NOON)
    cleared = source.review(suspended, clear)
    rejected = source.review(suspended, replace(clear, verdict="admin.reject")).state

    assert states(cleared.state) == (State.PENDING, State.PENDING)
    assert pulled(cleared.effects) == [COMMERCE, PAYMENTS]
    assert states(rejected) == (State.FAILED, State.FAILED)


def test_credentials_beside_what_was_rejected_do_not_bring_the_badge_back() -> None:
    """Credentials of a processor that were never tried wait beside a shop that is rejected."""
    beside = also_paid(connected(State.SUSPENDED), State.FAILED, accepted_at=NOON + HOUR)
    reject = ReviewVerification(verdict="admin.reject", reason="fake", by="usr_a", at=NOON + HOUR)
    rejected = source.review(beside, reject).state

    with pytest.raises(InvalidTransition):
        source.refresh(rejected, RefreshRevenue(NOON + 2 * HOUR))
    under_way = replace(report(NOON + 2 * HOUR), provider=PAYMENTS)
    heard = source.report(rejected, SyncSucceeded(under_way, NOON + 2 * HOUR)).state
    assert states(heard) == (State.FAILED, State.FAILED)


def test_time_passes_for_both() -> None:
    later = lifecycle.tick(BOTH, ClockTick(NOON + DAY)).state

    assert states(later) == (State.STALE, State.STALE)
    assert lifecycle.tick(BOTH, ClockTick(NOON)).state is BOTH


@pytest.mark.parametrize(
    ("shop", "account", "badge", "shown"),
    [
        (State.VERIFIED, State.VERIFIED, Badge.GREEN, COMMERCE),
        (State.STALE, State.VERIFIED, Badge.GREEN, PAYMENTS),
        (State.VERIFIED, State.STALE, Badge.GREEN, COMMERCE),
        (State.FAILED, State.NEEDS_PERMISSION, Badge.GREY, PAYMENTS),
        (State.NONE, State.PENDING, Badge.NONE, PAYMENTS),
        (State.REVOKED, State.PENDING, Badge.NONE, PAYMENTS),
        (State.NONE, State.REVOKED, Badge.NONE, PAYMENTS),
        (State.NONE, State.NONE, Badge.NONE, COMMERCE),
        (State.VERIFIED, State.SUSPENDED, Badge.NONE, PAYMENTS),
        (State.SUSPENDED, State.VERIFIED, Badge.NONE, COMMERCE),
    ],
)
def test_the_best_badge_is_shown_and_none_while_one_source_is_doubted(
    shop: State, account: State, badge: Badge, shown: str
) -> None:
    machines = records(shop, account)

    assert listing_badge(machines, NOON) is badge
    assert primary(machines, NOON).provider == shown


def test_a_listing_without_anything_has_a_blank_machine_for_each_provider() -> None:
    assert states(drafted()) == (State.NONE, State.NONE)
    assert [each.verification.provider for each in drafted().proofs] == [COMMERCE, PAYMENTS]
