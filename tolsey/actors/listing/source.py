"""Decisions about where a listing's revenue is read: credentials, syncs, and what they find."""

import json
from dataclasses import asdict, replace
from datetime import datetime
from typing import Final

from tolsey.actors.listing import verification as machine
from tolsey.actors.listing.messages import (
    PullRevenue,
    RefreshRevenue,
    RemoveRevenueSource,
    RevenueSourceAccepted,
    ReviewVerification,
    SourceRevoked,
    SyncDue,
    SyncFailed,
    SyncGrantRefused,
    SyncInsufficient,
    SyncPermissionDenied,
    SyncReport,
    SyncSucceeded,
)
from tolsey.actors.listing.revenue import DEFINITION
from tolsey.actors.listing.state import ListingState
from tolsey.actors.refusals import Conflict, InvalidTransition, NotFound
from tolsey.runtime.decision import Decision, Perform
from tolsey.storage.records.journal import AuditRecord, audit_record
from tolsey.storage.records.listing import (
    ListingStatus,
    RevenueSource,
    VerificationRecord,
    VerificationState,
)
from tolsey.storage.records.revenue import CurrencyFigures, RevenueSnapshot

Event = machine.Event
Answer = Decision[ListingState, str]
Silence = Decision[ListingState, None]

OFF_MARKET: Final = (ListingStatus.SOLD, ListingStatus.WITHDRAWN)
DOMAIN_MISMATCH: Final = "domain_mismatch"


class SourceInUse(Conflict):
    """The shop backs another listing already; one business is not sold twice."""

    code = "source_in_use"

    def __init__(self) -> None:
        super().__init__("This shop already backs another listing; remove it there first.")


def accept(state: ListingState, message: RevenueSourceAccepted, *, in_use: bool) -> Answer:
    """Keep the sealed credentials and read the shop for the first time."""
    listing = state.listing
    if listing is None or listing.deleted_at is not None:
        raise NotFound("There is no such listing.")
    if listing.status in OFF_MARKET:
        raise Conflict(f"A listing that is {listing.status} cannot be verified.")
    if in_use:
        raise SourceInUse
    pending = machine.accept(state.verification, message.shop_domain, message.at)
    source = RevenueSource(
        listing_id=pending.listing_id,
        organization_id=message.organization_id,
        provider=message.provider,
        shop_domain=message.shop_domain,
        client_id=message.client_id,
        sealed_secret=message.sealed_secret,
        connected_by=message.by,
        connected_at=message.at,
    )
    return Decision(
        replace(state, verification=pending, source=source),
        pending.state.value,
        records=[_audit("verification.connected", state, message.by, message.shop_domain)],
        effects=[_pull(pending, message.at)],
    )


def refresh(state: ListingState, message: RefreshRevenue) -> Answer:
    """Read the shop now, unless it is being read."""
    settled = machine.settle(state.verification, message.at)
    if not is_connected(state) or not machine.takes_success(settled, message.at):
        raise InvalidTransition(
            "There is no working connection to read; connect the shop again.",
            machine.allowed(settled.state),
        )
    if machine.is_syncing(settled, message.at):
        return Decision(_with(state, settled), settled.state.value)
    syncing = replace(settled, syncing_since=message.at)
    return Decision(
        _with(state, syncing), syncing.state.value, effects=[_pull(syncing, message.at)]
    )


def due(state: ListingState, message: SyncDue) -> Silence:
    """Let time have its say, then read the shop when its state wants that."""
    settled = machine.settle(state.verification, message.at)
    wanted = settled.state in machine.SYNCED and is_connected(state)
    if not wanted or machine.is_syncing(settled, message.at):
        return Decision(_with(state, settled), None)
    syncing = replace(settled, syncing_since=message.at)
    return Decision(_with(state, syncing), None, effects=[_pull(syncing, message.at)])


def report(state: ListingState, message: SyncSucceeded | SyncInsufficient) -> Silence:
    """Keep a good sync, unless its credentials or its window are not the latest any more."""
    found, before = message.report, state.verification
    if found.generation != before.generation:
        return Decision(state, None)
    overtaken = before.last_ok_at is not None and found.window_end < before.last_ok_at
    if overtaken or not machine.takes_success(before, message.at):
        settled = replace(machine.settle(before, message.at), syncing_since=None)
        return Decision(_with(state, settled), None)
    sufficient = isinstance(message, SyncSucceeded)
    good = machine.succeed(before, found.window_end, message.at, sufficient=sufficient)
    good = replace(good, primary_domain=found.primary_domain)
    snapshot = _snapshot(state, found, verified=sufficient)
    return Decision(_with(state, good), None, records=[snapshot])


def deny(state: ListingState, message: SyncPermissionDenied) -> Silence:
    """Note which permission the shop does not grant."""
    if message.generation != state.verification.generation:
        return Decision(state, None)
    return Decision(
        _with(state, machine.deny(state.verification, message.permission, message.at)), None
    )


def refuse_grant(state: ListingState, message: SyncGrantRefused) -> Silence:
    """Note that the credentials are not honoured; they are kept as they are."""
    if message.generation != state.verification.generation:
        return Decision(state, None)
    return Decision(
        _with(state, machine.refuse_grant(state.verification, message.code, message.at)), None
    )


def miss(state: ListingState, message: SyncFailed) -> Silence:
    """Note a sync that came to nothing; the last good snapshot stays what it is."""
    if message.generation != state.verification.generation:
        return Decision(state, None)
    return Decision(
        _with(state, machine.miss(state.verification, message.reason, message.at)), None
    )


def disconnect(state: ListingState, message: RemoveRevenueSource) -> Answer:
    """Forget the credentials because the seller says so; saying so twice changes nothing."""
    if state.verification.state is VerificationState.REVOKED:
        return Decision(state, state.verification.state.value)
    if state.verification.state is VerificationState.NONE:
        raise NotFound("This listing has no verification.")
    freed, records = released(state, message.at, reason="seller", by=message.by)
    return Decision(freed, freed.verification.state.value, records=records)


def revoke(state: ListingState, message: SourceRevoked) -> Silence:
    """Forget the credentials because the platform ended the connection, if it is still that one."""
    if state.source is not None and state.source.connected_at > message.at:
        return Decision(state, None)
    freed, records = released(state, message.at, reason=message.reason, by="platform")
    return Decision(freed, None, records=records)


def review(state: ListingState, message: ReviewVerification) -> Answer:
    """Carry out an administrator's verdict; a cleared listing is read at once."""
    judged = machine.review(state.verification, Event(message.verdict), message.at)
    effects = []
    if judged.state is VerificationState.PENDING and is_connected(state):
        judged = replace(judged, syncing_since=message.at)
        effects.append(_pull(judged, message.at))
    record = _audit(f"verification.{message.verdict}", state, message.by, message.reason)
    return Decision(_with(state, judged), judged.state.value, records=[record], effects=effects)


def released(
    state: ListingState, at: datetime, *, reason: str, by: str
) -> tuple[ListingState, list[AuditRecord]]:
    """End the verification and erase its credentials; dated snapshots stay."""
    if (state.verification.state, Event.SELLER_REMOVE) not in machine.MOVES:
        return state, []
    source = state.source
    if source is not None:
        source = replace(source, client_id="", sealed_secret=None, revoked_at=at)
    revoked = machine.remove(state.verification, at)
    record = _audit("verification.revoked", state, by, reason)
    return replace(state, verification=revoked, source=source), [record]


def is_connected(state: ListingState) -> bool:
    """Whether there are credentials to read the shop with."""
    return state.source is not None and state.source.sealed_secret is not None


def is_other_domain(claimed: str | None, primary: str | None, shop_domain: str | None) -> bool:
    """Whether the domain a seller claims is neither the shop's own nor its platform address."""
    if claimed is None:
        return False
    known = {_bare(domain) for domain in (primary, shop_domain) if domain}
    return bool(known) and _bare(claimed) not in known


def flags_of(
    measured: list[str], claimed: str | None, primary: str | None, shop_domain: str | None
) -> list[str]:
    """List the flags to show: those measured, and the domain as it is claimed now."""
    flags = set(measured) - {DOMAIN_MISMATCH}
    if is_other_domain(claimed, primary, shop_domain):
        flags.add(DOMAIN_MISMATCH)
    return sorted(flags)


def _bare(domain: str) -> str:
    return domain.strip().lower().rstrip(".").removeprefix("www.")


def _with(state: ListingState, verification: VerificationRecord) -> ListingState:
    """Return the very same state when nothing changed, so that a read costs no commit."""
    if verification == state.verification:
        return state
    return replace(state, verification=verification)


def _pull(record: VerificationRecord, at: datetime) -> Perform:
    call = PullRevenue(record.listing_id, record.generation, at)
    key = f"pull:{record.listing_id}:{record.generation}:{at.timestamp():.6f}"
    return Perform(call, key=key)


def _snapshot(state: ListingState, found: SyncReport, *, verified: bool) -> RevenueSnapshot:
    claimed = state.listing.domain if state.listing else None
    flags = flags_of(list(found.measure.flags), claimed, found.primary_domain, found.shop_domain)
    return RevenueSnapshot(
        listing_id=state.verification.listing_id,
        window_end=found.window_end,
        window_start=found.window_start,
        source=state.source.provider if state.source else "commerce",
        shop_domain=found.shop_domain,
        definition=DEFINITION,
        shop_currency=found.shop_currency,
        verified=verified,
        figures=json.dumps({each.currency: _amounts(each) for each in found.measure.figures}),
        orders=found.measure.orders,
        skipped=json.dumps({each.reason: each.orders for each in found.measure.skipped}),
        flags=json.dumps(flags),
    )


def _amounts(figures: CurrencyFigures) -> dict[str, int]:
    amounts = asdict(figures)
    del amounts["currency"]
    return amounts


def _audit(event: str, state: ListingState, by: str, detail: str) -> AuditRecord:
    organization_id = state.listing.organization_id if state.listing else None
    return audit_record(event, state.verification.listing_id, organization_id, by, detail=detail)
