"""What each decision about a source answers, keeps and writes into the audit trail, whole."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from tests.actors.listing.states import (
    ACCOUNT,
    BLANK,
    DAY,
    HOUR,
    ID,
    NOON,
    SHOP,
    also_paid,
    connected,
    credentials,
    drafted,
    report,
    succeeded,
)
from tests.actors.listing.states import source as of_shop
from tolsey.actors.listing.messages import (
    Former,
    PullRevenue,
    RefreshRevenue,
    RemoveRevenueSource,
    ReviewVerification,
    SourceRevoked,
    SyncGrantRefused,
    SyncSucceeded,
)
from tolsey.actors.listing.state import ListingState
from tolsey.actors.listing.verification import source
from tolsey.actors.listing.verification.transitions import State
from tolsey.actors.refusals import Conflict, InvalidTransition, NotFound, Refusal
from tolsey.runtime.decision import Perform
from tolsey.storage.records.journal import AuditRecord, audit_record
from tolsey.storage.records.selling.listing import COMMERCE, PAYMENTS, ListingStatus
from tolsey.storage.records.selling.revenue import Measure, RevenueSnapshot, UnprovenOrders

AT = NOON + HOUR
MICROSECOND = timedelta(microseconds=1)


def audited(event: str, by: str, detail: str | None) -> AuditRecord:
    return audit_record(event, ID, "org_1", by, detail=detail)


def refusal(call: Callable[[], object]) -> Refusal:
    with pytest.raises(Refusal) as refused:
        call()
    return refused.value


def test_credentials_are_kept_as_they_were_sealed_and_the_audit_says_of_which_shop() -> None:
    decision = source.accept(drafted(), credentials(AT), in_use=False)

    assert decision.state.proof().source == replace(of_shop(), connected_at=AT)
    assert decision.reply == "pending"
    assert decision.records == [audited("verification.connected", "usr_1", SHOP)]


def test_who_may_not_connect_is_told_why() -> None:
    suspended, gone = connected(State.SUSPENDED), drafted(deleted_at=NOON)

    for state in (BLANK, gone):
        error = refusal(partial(source.accept, state, credentials(), in_use=False))
        assert (type(error), error.detail) == (
            NotFound,
            "This listing doesn't exist, or you don't have access to it. Check the link or the id.",
        )
    error = refusal(lambda: source.accept(suspended, credentials(), in_use=False))
    assert (type(error), error.detail) == (
        InvalidTransition,
        (
            "The figures of this listing are suspended. Wait until they are cleared, or remove"
            " the revenue source."
        ),
    )
    error = refusal(lambda: source.accept(drafted(), credentials(), in_use=True))
    assert error.detail == (
        "This shop or account is already a revenue source of another listing. Remove it there"
        " first."
    )
    sold = drafted(ListingStatus.SOLD)
    error = refusal(lambda: source.accept(sold, credentials(), in_use=False))
    assert (type(error), error.detail) == (
        Conflict,
        "The listing can't be verified while its status is SOLD. Reload it to see the available actions.",
    )


def test_a_refresh_answers_the_state_and_begins_the_sync() -> None:
    decision = source.refresh(connected(State.STALE), RefreshRevenue(AT))

    assert decision.reply == "stale"
    assert decision.state.proof().verification.syncing_since == AT
    assert [each.call for each in decision.effects if isinstance(each, Perform)] == [
        PullRevenue(listing_id=ID, generation=1, at=AT, organization_id="org_1")
    ]


def test_where_nothing_works_a_refresh_says_what_can_be_done() -> None:
    error = refusal(lambda: source.refresh(connected(State.FAILED), RefreshRevenue(AT)))

    assert (
        error.detail
        == "The revenue source is no longer connected. Connect it again to continue verification."
    )
    assert error.fields == {"allowed": ["credentials.accepted", "seller.remove"]}


def test_a_listing_that_is_gone_is_read_for_nobody() -> None:
    state = replace(connected(State.VERIFIED), listing=None)
    read = source.refresh(state, RefreshRevenue(AT))

    (pull,) = (each.call for each in read.effects if isinstance(each, Perform))
    assert isinstance(pull, PullRevenue)
    assert pull.organization_id is None
    kept = source.report(state, succeeded(AT))
    assert [each.flags for each in kept.records if isinstance(each, RevenueSnapshot)] == ["[]"]
    removed = source.disconnect(state, RemoveRevenueSource(AT, "usr_1"))
    assert removed.records == [
        audit_record("verification.revoked", ID, None, "usr_1", detail="seller")
    ]


@pytest.mark.parametrize(
    ("claimed", "primary", "flags"),
    [
        ("elsewhere.example", "corner.example", '["domain_mismatch", "refund_rate"]'),
        ("corner.example", "corner.example", '["refund_rate"]'),
        (f".{SHOP}", "corner.example", '["domain_mismatch", "refund_rate"]'),
        (f"  {SHOP.upper()}. ", "corner.example", '["refund_rate"]'),
        ("max", "max.", '["refund_rate"]'),
        ("ma", "maX", '["domain_mismatch", "refund_rate"]'),
        ("corner.example ", "www.corner.example", '["refund_rate"]'),
    ],
)
def test_a_snapshot_holds_the_flags_and_what_nothing_proved(
    claimed: str, primary: str, flags: str
) -> None:
    measure = Measure(flags=("refund_rate",), unproven=(UnprovenOrders("cash", "pos", 4),))
    found = replace(report(AT), measure=measure, primary_domain=primary)
    listed = connected(State.VERIFIED)
    assert listed.listing is not None
    state = replace(listed, listing=replace(listed.listing, domain=claimed))

    (snapshot,) = source.report(state, SyncSucceeded(found, AT)).records

    assert isinstance(snapshot, RevenueSnapshot)
    assert snapshot.flags == flags
    assert snapshot.unproven == '[{"gateway": "cash", "source": "pos", "orders": 4}]'


def test_the_same_window_told_once_more_is_kept_once_more() -> None:
    again = source.report(connected(State.VERIFIED, syncing_since=NOON), succeeded(NOON))

    assert len(again.records) == 1
    older = source.report(connected(State.VERIFIED), succeeded(NOON - MICROSECOND))
    assert not older.records


def test_the_audit_says_which_definition_took_which_ones_place() -> None:
    good = SyncSucceeded(replace(report(AT), former=Former("rv1", "{}")), AT)

    _, audit = source.report(connected(State.VERIFIED), good).records

    assert audit == audited("verification.redefined", "system", "rv1 -> rv2")


def test_a_refused_grant_keeps_the_reason() -> None:
    decision = source.refuse_grant(
        connected(State.VERIFIED), SyncGrantRefused(generation=1, code="invalid_client", at=AT)
    )

    assert decision.state.proof().verification.last_error == "invalid_client"


def test_who_removed_a_source_is_written_down_for_each() -> None:
    both = also_paid(connected(State.VERIFIED), State.VERIFIED)
    decision = source.disconnect(both, RemoveRevenueSource(AT, "usr_2"))

    assert decision.reply == "revoked"
    assert decision.records == [audited("verification.revoked", "usr_2", "seller")] * 2
    assert decision.state.proof().source == replace(
        of_shop(), client_id="", sealed_secret=None, revoked_at=AT
    )
    alone = also_paid(drafted(), State.VERIFIED)
    assert len(source.disconnect(alone, RemoveRevenueSource(AT, "usr_2")).records) == 1
    error = refusal(lambda: source.disconnect(drafted(), RemoveRevenueSource(AT, "usr_2")))
    assert (
        error.detail == "This listing has no verification. Connect a revenue source to verify it."
    )


def test_a_shop_that_ended_the_connection_is_written_down_as_the_platform() -> None:
    decision = source.revoke(connected(State.VERIFIED), SourceRevoked(AT, "app/uninstalled"))

    assert decision.records == [audited("verification.revoked", "platform", "app/uninstalled")]
    at_once = source.revoke(connected(State.VERIFIED), SourceRevoked(NOON, "app/uninstalled"))
    assert at_once.state.proof().verification.state is State.REVOKED


def test_what_ends_with_its_listing_is_written_down_with_the_reason() -> None:
    _, records = source.released(connected(State.VERIFIED), AT, reason="deleted", by="usr_3")

    assert records == [audited("verification.revoked", "usr_3", "deleted")]


def review(state: ListingState, verdict: str) -> tuple[str, list[str]]:
    """Carry out a verdict; answers the state shown and which sources are read at once."""
    decision = source.review(
        state, ReviewVerification(verdict=verdict, reason="odd", by="usr_a", at=AT)
    )
    assert decision.records == [audited(f"verification.{verdict}", "usr_a", "odd")]
    calls = [each.call for each in decision.effects if isinstance(each, Perform)]
    return str(decision.reply), [each.provider for each in calls if isinstance(each, PullRevenue)]


def test_a_verdict_answers_the_state_it_leads_to_and_reads_only_what_was_cleared() -> None:
    assert review(connected(State.VERIFIED), "fraud.flag") == ("suspended", [])
    assert review(connected(State.SUSPENDED), "admin.reject") == ("failed", [])
    beside = also_paid(connected(State.SUSPENDED), State.SUSPENDED)
    assert review(beside, "admin.clear") == ("pending", [COMMERCE, PAYMENTS])
    proof = beside.proof()
    without = beside.proven(replace(proof, source=replace(of_shop(), sealed_secret=None)))
    assert review(without, "admin.clear") == ("pending", [PAYMENTS])


def test_a_verdict_that_fits_no_source_says_so_of_what_is_shown() -> None:
    verified = connected(State.VERIFIED, shop_domain=ACCOUNT)
    error = refusal(
        lambda: source.review(
            verified,
            ReviewVerification(verdict="admin.clear", reason="", by="usr_a", at=NOON + DAY),
        )
    )

    # By then a day has passed, which is what the sentence is about.
    assert error.detail.startswith(
        "The verification's state is stale, which doesn't allow admin.clear."
    )
