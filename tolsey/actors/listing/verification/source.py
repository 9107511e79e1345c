"""Decisions about where a listing's revenue is read: credentials, syncs, and what they find.

A listing may have a source at each provider. Each has its own machine; what a seller or an
administrator says of the listing is said of all of them.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import datetime
from typing import Final

from tolsey.actors.listing.messages import (
    Former,
    PullRevenue,
    RefreshRevenue,
    RemoveRevenueSource,
    RevenueSourceAccepted,
    ReviewVerification,
    SourceRevoked,
    SyncDue,
    SyncFailed,
    SyncFoundDevelopment,
    SyncGrantRefused,
    SyncInsufficient,
    SyncPermissionDenied,
    SyncReport,
    SyncSucceeded,
)
from tolsey.actors.listing.state import ListingState, Proof
from tolsey.actors.listing.verification import transitions
from tolsey.actors.refusals import Conflict, InvalidTransition, NotFound
from tolsey.runtime.decision import Decision, Perform
from tolsey.storage.records.journal import AuditRecord, audit_record
from tolsey.storage.records.selling.listing import (
    COMMERCE,
    ListingStatus,
    RevenueSource,
    VerificationRecord,
    VerificationState,
)
from tolsey.storage.records.selling.revenue import DEFINITION, CurrencyFigures, RevenueSnapshot

Event = transitions.VerificationEvent
Answer = Decision[ListingState, str]
Silence = Decision[ListingState, None]

OFF_MARKET: Final = (ListingStatus.SOLD, ListingStatus.WITHDRAWN)
DOMAIN_MISMATCH: Final = "domain_mismatch"
SUSPENDED: Final = (
    "The figures of this listing are suspended. Wait until they are cleared, or remove the"
    " revenue source."
)


class SourceInUse(Conflict):
    """The source backs another listing already; one business is not sold twice."""

    code = "source_in_use"

    def __init__(self) -> None:
        super().__init__(
            "This shop or account is already a revenue source of another listing. Remove it"
            " there first."
        )


def accept(state: ListingState, message: RevenueSourceAccepted, *, in_use: bool) -> Answer:
    """Keep the sealed credentials and read their source for the first time."""
    listing = state.listing
    if listing is None or listing.deleted_at is not None:
        raise NotFound(
            "This listing doesn't exist, or you don't have access to it. Check the link or the id."
        )
    if listing.status in OFF_MARKET:
        raise Conflict(
            f"The listing can't be verified while its status is {listing.status}. Reload it to see the available actions."
        )
    if state.is_suspended:
        raise InvalidTransition(SUSPENDED, [Event.SELLER_REMOVE.value])
    if in_use:
        raise SourceInUse
    before = state.proof(message.provider).verification
    pending = transitions.accept(before, message.shop_domain, message.at)
    source = RevenueSource(
        listing_id=state.id,
        organization_id=message.organization_id,
        provider=message.provider,
        shop_domain=message.shop_domain,
        client_id=message.client_id,
        sealed_secret=message.sealed_secret,
        connected_by=message.by,
        connected_at=message.at,
    )
    return Decision(
        state.proven(Proof(pending, source)),
        pending.state.value,
        records=[_audit("verification.connected", state, message.by, message.shop_domain)],
        effects=[_pull(state, pending, message.at)],
    )


def refresh(state: ListingState, message: RefreshRevenue) -> Answer:
    """Read every source that works now, but for those that are being read."""
    state = settled(state, message.at)
    working = [
        proof
        for proof in state.proofs
        if proof.is_connected and transitions.takes_success(proof.verification, message.at)
    ]
    # Who moved to a real plan need not wait an hour; what a person doubts is read in its turn.
    is_doubted = any(
        each.verification.state is VerificationState.SUSPENDED
        and each.verification.suspended_for is None
        for each in state.proofs
    )
    if not working or is_doubted:
        shown = transitions.primary([proof.verification for proof in state.proofs], message.at)
        raise InvalidTransition(
            "The revenue source is no longer connected. Connect it again to continue verification.",
            transitions.allowed(shown.state),
        )
    after, effects = _read(state, working, message.at)
    return Decision(after, working[0].verification.state.value, effects=effects)


def due(state: ListingState, message: SyncDue) -> Silence:
    """Let time have its say, then read the sources whose state wants that."""
    state = settled(state, message.at)
    wanted = [
        proof
        for proof in state.proofs
        if proof.is_connected and proof.verification.state in transitions.SYNCED
    ]
    after, effects = _read(state, wanted, message.at)
    return Decision(after, None, effects=effects)


def _read(
    state: ListingState, proofs: Iterable[Proof], at: datetime
) -> tuple[ListingState, list[Perform]]:
    """Begin a sync of each source that is not being read."""
    effects = []
    for proof in proofs:
        if transitions.is_syncing(proof.verification, at):
            continue
        syncing = replace(proof.verification, syncing_since=at)
        state = state.proven(replace(proof, verification=syncing))
        effects.append(_pull(state, syncing, at))
    return state, effects


def settled(state: ListingState, at: datetime) -> ListingState:
    """Let time have its say on every proof."""
    return state.changed(
        lambda proof: replace(proof, verification=transitions.settle(proof.verification, at))
    )


def report(state: ListingState, message: SyncSucceeded | SyncInsufficient) -> Silence:
    """Keep a good sync, unless its credentials or its window are not the latest any more."""
    found = message.report
    proof = state.proof(found.provider)
    if found.generation != proof.verification.generation:
        return Decision(state, None)
    before = transitions.sells(proof.verification, message.at)
    state = state.proven(replace(proof, verification=before))
    overtaken = before.last_ok_at is not None and found.window_end < before.last_ok_at
    # A doubt is about the listing: beside a source that is suspended no other one proves it.
    is_beside = state.is_suspended and before.state is not VerificationState.SUSPENDED
    if overtaken or is_beside or not transitions.takes_success(before, message.at):
        ended = replace(transitions.settle(before, message.at), syncing_since=None)
        return Decision(state.proven(replace(proof, verification=ended)), None)
    sufficient = isinstance(message, SyncSucceeded)
    good = transitions.succeed(before, found.window_end, message.at, sufficient=sufficient)
    # What is measured while anyone doubts the listing is kept, and never published.
    is_public = sufficient and not state.is_suspended
    snapshot = _snapshot(state, found, verified=is_public)
    records: list[RevenueSnapshot | AuditRecord] = [snapshot]
    good = replace(good, primary_domain=found.primary_domain)
    if found.former is not None:
        good = replace(good, redefined=_redefined(found.former, snapshot))
        change = f"{found.former.definition} -> {DEFINITION}"
        records.append(_audit("verification.redefined", state, "system", change))
    return Decision(state.proven(replace(proof, verification=good)), None, records=records)


def _redefined(former: Former, snapshot: RevenueSnapshot) -> str:
    """Keep what another definition did to the numbers, for their owner."""
    return json.dumps(
        {
            "from": former.definition,
            "to": snapshot.definition,
            "at": snapshot.window_end.isoformat(),
            "before": json.loads(former.figures),
            "after": json.loads(snapshot.figures),
        }
    )


def develops(state: ListingState, message: SyncFoundDevelopment) -> Silence:
    """Take the badge from a shop on a development or trial plan."""
    record = state.proof().verification
    if message.generation == record.generation:
        record = transitions.develops(record, message.at)
    return _noted(state, record)


def deny(state: ListingState, message: SyncPermissionDenied) -> Silence:
    """Note which permission the source does not grant."""
    record = state.proof(message.provider).verification
    if message.generation == record.generation:
        record = transitions.deny(record, message.permission, message.at)
    return _noted(state, record)


def refuse_grant(state: ListingState, message: SyncGrantRefused) -> Silence:
    """Note that the credentials are not honoured; they are kept as they are."""
    record = state.proof(message.provider).verification
    if message.generation == record.generation:
        record = transitions.refuse_grant(record, message.code, message.at)
    return _noted(state, record)


def miss(state: ListingState, message: SyncFailed) -> Silence:
    """Note a sync that came to nothing; the last good snapshot stays what it is."""
    record = state.proof(message.provider).verification
    if message.generation == record.generation:
        record = transitions.miss(record, message.reason, message.at)
    return _noted(state, record)


def _noted(state: ListingState, record: VerificationRecord) -> Silence:
    proof = state.proof(record.provider)
    return Decision(state.proven(replace(proof, verification=record)), None)


def disconnect(state: ListingState, message: RemoveRevenueSource) -> Answer:
    """Forget credentials because the seller says so; saying so twice changes nothing."""
    named = [each for each in state.proofs if message.provider in (None, _provider(each))]
    if all(each.verification.state is VerificationState.NONE for each in named):
        raise NotFound("This listing has no verification. Connect a revenue source to verify it.")
    freed, records = _freed(state, named, message.at, reason="seller", by=message.by)
    return Decision(freed, VerificationState.REVOKED.value, records=records)


def revoke(state: ListingState, message: SourceRevoked) -> Silence:
    """Forget the shop's credentials because the platform ended that very connection."""
    proof = state.proof(COMMERCE)
    if proof.source is not None and proof.source.connected_at > message.at:
        return Decision(state, None)
    freed, records = _freed(state, [proof], message.at, reason=message.reason, by="platform")
    return Decision(freed, None, records=records)


def review(state: ListingState, message: ReviewVerification) -> Answer:
    """Carry out an administrator's verdict on every source it fits; cleared ones are read at once."""
    verdict = Event(message.verdict)
    state = settled(state, message.at)
    judged = [
        each for each in state.proofs if (each.verification.state, verdict) in transitions.MOVES
    ]
    if not judged:
        shown = transitions.primary([each.verification for each in state.proofs], message.at)
        transitions.move(shown, verdict, message.at)
    after = state
    if verdict is Event.ADMIN_REJECT:
        # Nor may credentials that lie beside prove what was rejected: new ones must be given.
        after = after.changed(
            lambda each: replace(each, verification=transitions.discredit(each.verification))
        )
    for proof in judged:
        record = transitions.review(proof.verification, verdict, message.at)
        after = after.proven(replace(proof, verification=record))
    is_cleared = verdict is Event.ADMIN_CLEAR
    pending = [after.proof(_provider(each)) for each in judged if each.is_connected and is_cleared]
    after, effects = _read(after, pending, message.at)
    audit = _audit(f"verification.{message.verdict}", state, message.by, message.reason)
    shown = transitions.primary([each.verification for each in after.proofs], message.at)
    return Decision(after, shown.state.value, records=[audit], effects=effects)


def released(
    state: ListingState, at: datetime, *, reason: str, by: str
) -> tuple[ListingState, list[AuditRecord]]:
    """End every verification and erase its credentials; dated snapshots stay."""
    return _freed(state, state.proofs, at, reason=reason, by=by)


def _freed(
    state: ListingState, proofs: Iterable[Proof], at: datetime, *, reason: str, by: str
) -> tuple[ListingState, list[AuditRecord]]:
    records = []
    for proof in proofs:
        if (proof.verification.state, Event.SELLER_REMOVE) not in transitions.MOVES:
            continue
        source = proof.source
        if source is not None:
            source = replace(source, client_id="", sealed_secret=None, revoked_at=at)
        state = state.proven(Proof(transitions.remove(proof.verification, at), source))
        records.append(_audit("verification.revoked", state, by, reason))
    return state, records


def _provider(proof: Proof) -> str:
    return proof.verification.provider


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


def _pull(state: ListingState, record: VerificationRecord, at: datetime) -> Perform:
    owner = state.listing.organization_id if state.listing else None
    call = PullRevenue(
        listing_id=record.listing_id,
        generation=record.generation,
        at=at,
        provider=record.provider,
        organization_id=owner,
    )
    key = f"pull:{record.provider}:{record.listing_id}:{record.generation}:{at.timestamp():.6f}"
    return Perform(call, key=key)


def _snapshot(state: ListingState, found: SyncReport, *, verified: bool) -> RevenueSnapshot:
    claimed = state.listing.domain if state.listing else None
    flags = flags_of(list(found.measure.flags), claimed, found.primary_domain, found.shop_domain)
    return RevenueSnapshot(
        listing_id=state.id,
        window_end=found.window_end,
        window_start=found.window_start,
        source=found.provider,
        shop_domain=found.shop_domain,
        definition=DEFINITION,
        shop_currency=found.shop_currency,
        verified=verified,
        figures=json.dumps({each.currency: _amounts(each) for each in found.measure.figures}),
        orders=found.measure.orders,
        skipped=json.dumps({each.reason: each.orders for each in found.measure.skipped}),
        flags=json.dumps(flags),
        unproven=json.dumps([asdict(each) for each in found.measure.unproven]),
    )


def _amounts(figures: CurrencyFigures) -> dict[str, int]:
    amounts = asdict(figures)
    del amounts["currency"]
    return {name: amount for name, amount in amounts.items() if amount is not None}


def _audit(event: str, state: ListingState, by: str, detail: str) -> AuditRecord:
    organization_id = state.listing.organization_id if state.listing else None
    return audit_record(event, state.id, organization_id, by, detail=detail)
