"""One look at a storefront serves all who asked for no more meanwhile."""

from datetime import UTC, datetime, timedelta

from tolsey.actors.storefront import registry
from tolsey.actors.storefront.messages import RequestScan, ScanEnded
from tolsey.actors.storefront.registry import StorefrontState
from tolsey.storage.records.intelligence import ScanMode, StorefrontScan

AT = datetime(2026, 6, 15, 12, tzinfo=UTC)
LATER = AT + timedelta(minutes=1)
NONE = ScanEnded(scan_id="scan_1", reached=None, report="{}", is_persisted=False, at=LATER)


def wish(
    id: str, organization_id: str | None, mode: ScanMode = "full", *, kept: bool = True
) -> RequestScan:
    return RequestScan(
        id=id, mode=mode, is_kept=kept, source="customer", at=AT, organization_id=organization_id
    )


def asked(*wishes: RequestScan) -> tuple[StorefrontState, list[StorefrontScan]]:
    state, told = StorefrontState(domain="shop.example"), list[StorefrontScan]()
    for one in wishes:
        decision = registry.request(state, one)
        state = decision.state
        assert isinstance(decision.reply, StorefrontScan)
        told.append(decision.reply)
    return state, told


def test_a_scan_ends_for_every_organization_that_asked_meanwhile() -> None:
    state, told = asked(
        wish("scan_1", "org_1"), wish("scan_2", "org_2"), wish("scan_3", None, "light")
    )
    assert [(one.id, one.state) for one in told] == [
        ("scan_1", "running"),
        ("scan_2", "queued"),
        ("scan_3", "queued"),
    ]
    seen = ScanEnded(
        scan_id="scan_1",
        reached="active",
        report='{"reached":"active"}',
        is_persisted=True,
        at=LATER,
    )
    decision = registry.ended(state, seen)
    assert decision.state.scans == ()
    assert decision.resolve is not None
    assert {
        id: (one.state, one.ended_at, one.organization_id) for id, one in decision.resolve.items()
    } == {
        "scan_1": ("done", LATER, "org_1"),
        "scan_2": ("done", LATER, "org_2"),
        "scan_3": ("done", LATER, None),
    }
    assert list(decision.effects) == []


def test_who_asked_for_more_than_was_looked_at_gets_a_scan_of_their_own() -> None:
    state, _ = asked(wish("scan_1", "org_1", "light"), wish("scan_2", "org_2"))
    seen = ScanEnded(scan_id="scan_1", reached="active", report="{}", is_persisted=True, at=LATER)
    decision = registry.ended(state, seen)
    assert [(one.id, one.state) for one in decision.state.scans] == [("scan_2", "running")]
    assert len(decision.effects) == 1


def test_a_scan_that_failed_fails_for_nobody_else() -> None:
    state, _ = asked(wish("scan_1", "org_1"), wish("scan_2", "org_2"))
    decision = registry.ended(state, NONE)
    assert [one.id for one in decision.state.scans] == ["scan_2"]
    assert decision.resolve is not None
    assert [(one.id, one.state) for one in decision.resolve.values()] == [("scan_1", "failed")]
