"""Decisions about a storefront: one scan at a time, snapshots apart, tombstones kept (rules/intelligence#registry)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from tolsey.actors.domains import domain_named, hash_of
from tolsey.actors.refusals import Conflict, NotFound, Unavailable
from tolsey.actors.storefront.messages import (
    AwaitScan,
    DiscoverStorefront,
    ForgetStorefront,
    RequestScan,
    ScanEnded,
    ScanStorefront,
    StorefrontForgotten,
    SuppressStorefront,
    storefront,
)
from tolsey.actors.storefront.observed import Reached
from tolsey.runtime.decision import Decision, Effect, Parked, Perform, Tell
from tolsey.storage.records.intelligence import (
    IntelligenceSuppression,
    StorefrontRow,
    StorefrontScan,
    StorefrontStatus,
)

SNAPSHOTS_APART: Final = timedelta(hours=6)
STALE_AFTER: Final = timedelta(days=14)
UNREACHABLE_AFTER: Final = 3
AGAIN_AFTER: Final = timedelta(days=1)
LATER_AFTER: Final = timedelta(days=7)
"""When a storefront is looked at again by itself: one that is open, and one that is not."""
LONGEST_HOLD_SECONDS: Final = 24 * 3600
FIRST_HOLD_SECONDS: Final = 60
MOST_QUEUED: Final = 8
ENDED_REMEMBERED: Final = MOST_QUEUED

Scanned = Decision["StorefrontState", StorefrontScan]


@dataclass(frozen=True, slots=True, kw_only=True)
class StorefrontState:
    """A domain: its row where the registry has it, its scans that have not ended, its tombstone."""

    domain: str
    row: StorefrontRow | None = None
    scans: tuple[StorefrontScan, ...] = ()
    """The first is under way."""
    ended: tuple[StorefrontScan, ...] = ()
    tombstone: IntelligenceSuppression | None = None


def request(state: StorefrontState, message: RequestScan) -> Scanned:
    """Begin a scan, or join one that does as much."""
    tombstone = state.tombstone
    # Only a scan that is kept, and is asked for so, restores a domain (rules/intelligence#opting-out).
    restores = tombstone is not None and message.restores and message.is_kept
    if tombstone is not None and not restores:
        raise Conflict(
            "The owner of this domain opted out of scans. Only an operator can lift this, with"
            " a persisted scan.",
            code="suppressed",
        )
    joined = next((one for one in state.scans if _does(one, message)), None)
    if joined is not None:
        return Decision(state, joined)
    if len(state.scans) >= MOST_QUEUED:
        raise Unavailable(
            "Too many scans of this domain are queued. Try again in a minute.",
            code="overloaded",
            retryAfter=60,
        )
    scan = StorefrontScan(
        id=message.id,
        domain=state.domain,
        mode=message.mode,
        is_kept=message.is_kept,
        was_restored=restores,
        source=message.source,
        organization_id=message.organization_id,
        user_id=message.user_id,
        state="running" if not state.scans else "queued",
        asked_at=message.at,
    )
    row = state.row
    if row is None and message.is_kept:
        row = _new(state.domain, message.source, message.at)
    after = replace(state, row=row, scans=(*state.scans, scan), tombstone=None)
    records = [scan] if tombstone is None else [scan, replace(tombstone, lifted_at=message.at)]
    effects = [_begin(after, scan, message.at)] if not state.scans else []
    return Decision(after, scan, records=records, effects=effects)


def wait(state: StorefrontState, message: AwaitScan) -> Scanned:
    """Let whoever asks wait for the end of a scan that goes on, or learn how it ended."""
    if any(one.id == message.scan_id for one in state.scans):
        return Decision(state, Parked(message.scan_id))
    found = next((one for one in state.ended if one.id == message.scan_id), None)
    if found is None:
        raise NotFound("No scan with this id is running. Start a new scan.")
    return Decision(state, found)


def ended(state: StorefrontState, message: ScanEnded) -> Decision[StorefrontState, None]:
    """Keep what a scan saw, answer who waits for it, and begin the next."""
    scan = next((one for one in state.scans if one.id == message.scan_id), None)
    if scan is None:
        return Decision(state, None)
    is_failed = message.reached is None
    # What one look saw serves all who asked for no more meanwhile (rules/intelligence#registry).
    over = {
        one.id: replace(
            one,
            state="failed" if is_failed else "done",
            ended_at=message.at,
            report=message.report,
        )
        for one in state.scans
        if one.id == scan.id or (not is_failed and _covers(scan, one))
    }
    left = tuple(one for one in state.scans if one.id not in over)
    row = state.row
    if scan.is_kept and row is not None:
        row = _seen(row, message)
    ended = (*state.ended, *over.values())[-ENDED_REMEMBERED:]
    after = replace(state, row=row, scans=left, ended=ended)
    records, effects = [*over.values()], list(_found_elsewhere(state, message))
    if left and left[0].state == "queued":
        following = replace(left[0], state="running")
        after = replace(after, scans=(following, *left[1:]))
        records.append(following)
        effects.append(_begin(after, following, message.at))
    return Decision(after, None, records=records, effects=effects, resolve=over)


def discover(
    state: StorefrontState, message: DiscoverStorefront
) -> Decision[StorefrontState, bool]:
    """Take a domain into the registry that was heard of, unless it is to be left alone."""
    if state.row is not None or state.tombstone is not None:
        return Decision(state, reply=False)
    row = _new(state.domain, message.source, message.at)
    return Decision(replace(state, row=row), reply=True)


def suppress(
    state: StorefrontState, message: SuppressStorefront
) -> Decision[StorefrontState, bool]:
    """Leave a domain alone from now on: its scans end, and what is kept of it goes."""
    if state.tombstone is not None:
        return Decision(state, reply=False)
    tombstone = IntelligenceSuppression(
        domain_hash=hash_of(state.domain),
        suppressed_at=message.at,
        reason=message.reason,
        source=message.source,
    )
    cancelled = [
        replace(one, state="cancelled", ended_at=message.at, report=None) for one in state.scans
    ]
    after = StorefrontState(domain=state.domain, tombstone=tombstone)
    return Decision(
        after,
        reply=True,
        records=[*cancelled, tombstone],
        effects=[Perform(ForgetStorefront(domain=state.domain), key="forget")],
        resolve={one.id: one for one in cancelled},
    )


def forgotten(
    state: StorefrontState, message: StorefrontForgotten
) -> Decision[StorefrontState, None]:
    """Go on: what was kept is gone."""
    del message
    return Decision(state, None)


def shown_state(row: StorefrontRow, now: datetime) -> str:
    """Name the state of a domain as it is shown: one that was not looked at for long is stale."""
    is_old = row.scanned_at is not None and now - row.scanned_at > STALE_AFTER
    return "stale" if is_old and row.state == StorefrontStatus.ACTIVE else row.state.value


def _does(scan: StorefrontScan, message: RequestScan) -> bool:
    """Whether a scan that has not ended does all that is asked for."""
    return scan.organization_id == message.organization_id and _covers(scan, message)


def _covers(scan: StorefrontScan, wanted: StorefrontScan | RequestScan) -> bool:
    """Whether what a scan sees, and keeps, is all that is wanted."""
    is_deep = scan.mode == "full" or wanted.mode == "light"
    return is_deep and (scan.is_kept or not wanted.is_kept)


def _new(domain: str, source: str, at: datetime) -> StorefrontRow:
    return StorefrontRow(
        domain=domain, state=StorefrontStatus.DISCOVERED, source=source, discovered_at=at
    )


def _begin(state: StorefrontState, scan: StorefrontScan, at: datetime) -> Perform:
    row = state.row
    last = row.snapshot_at if row is not None else None
    # Two of a domain are six hours apart, whoever asked for them (rules/intelligence#snapshots).
    apart = last is None or at - last >= SNAPSHOTS_APART
    call = ScanStorefront(
        domain=state.domain,
        scan_id=scan.id,
        is_deep=scan.mode == "full",
        is_kept=scan.is_kept,
        takes_snapshot=scan.is_kept and apart,
        etag=row.etag if row is not None else None,
        last_modified=row.last_modified if row is not None else None,
    )
    # A site that asked for patience is left alone until then (rules/intelligence#manners).
    held = row.hold_until if row is not None else None
    due_at = held if held is not None and held > at else None
    return Perform(call, key=f"scan:{scan.id}", due_at=due_at)


def _seen(row: StorefrontRow, message: ScanEnded) -> StorefrontRow:
    """Go on with what a scan saw; one that could not be kept, or saw nothing, leaves what was seen before."""
    report: Mapping[str, Any] = orjson.loads(message.report)
    failed = message.reached in {None, Reached.UNREACHABLE, Reached.BLOCKED}
    failures = row.failures + 1 if failed else 0
    hold = _hold(row, message)
    tried = replace(
        row,
        failures=failures,
        hold_seconds=hold,
        hold_until=message.at + timedelta(seconds=hold) if hold else None,
        scanned_at=message.at,
        next_scan_at=message.at + _pause(message.reached, failures),
    )
    if failed:
        # Once may be chance: a domain counts as out of reach after three in a row.
        out = failures >= UNREACHABLE_AFTER
        return replace(tried, state=StorefrontStatus.UNREACHABLE) if out else tried
    if not message.is_persisted:
        return tried
    facts = report.get("facts", {})
    return replace(
        tried,
        state=StorefrontStatus(str(message.reached)),
        canonical=message.canonical,
        platform=_value(facts, "platform") or row.platform,
        category=_value(facts, "category") or row.category,
        country=_value(facts, "country") or row.country,
        currency=_value(facts, "currency") or row.currency,
        product_count=message.product_count
        if message.product_count is not None
        else row.product_count,
        velocity=message.velocity,
        facts=orjson.dumps({**orjson.loads(row.facts), **facts}).decode(),
        diagnosis=orjson.dumps(report.get("diagnosis", {})).decode(),
        snapshot_at=message.snapshot_at or row.snapshot_at,
        etag=message.etag if message.snapshot_at else row.etag,
        last_modified=message.last_modified if message.snapshot_at else row.last_modified,
    )


def _hold(row: StorefrontRow, message: ScanEnded) -> int:
    """Say how long a site is left alone: as long as it asks, twice as long each time, a day at most."""
    if message.reached != Reached.BLOCKED and message.retry_after_seconds is None:
        return 0
    asked = int(message.retry_after_seconds or 0)
    return min(LONGEST_HOLD_SECONDS, max(asked, 2 * row.hold_seconds, FIRST_HOLD_SECONDS))


def _pause(reached: str | None, failures: int) -> timedelta:
    if reached == Reached.ACTIVE or 0 < failures < UNREACHABLE_AFTER:
        return AGAIN_AFTER
    return LATER_AFTER


def _found_elsewhere(state: StorefrontState, message: ScanEnded) -> list[Effect]:
    """Tell the domain that a site leads to that it was heard of; what is no domain is left."""
    to = domain_named(message.canonical) if message.canonical else None
    scan_id = message.scan_id
    if to is None or to == state.domain or not message.is_persisted:
        return []
    heard = DiscoverStorefront(source="redirect", at=message.at)
    return [Tell(storefront(to), heard, key=f"discover:{scan_id}")]


def _value(facts: Mapping[str, Any], name: str) -> str | None:
    value = facts.get(name, {}).get("value")
    return value if isinstance(value, str) else None
