"""The verification machine: its moves, its clock, and the badge that fails closed.

Every rule of time is applied on messages and again whenever the state is read, so that a badge
goes grey and then away even when nothing in the service runs any more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from tolsey.actors.listing import machines
from tolsey.actors.refusals import InvalidTransition
from tolsey.storage.records.selling.listing import VerificationRecord, VerificationState

State = VerificationState

FRESH: Final = timedelta(hours=24)
TRUSTED: Final = timedelta(days=7)
DEVELOPMENT: Final = "development_store"
"""Why a verification is suspended that no person doubts."""
SYNC_EXPIRES: Final = timedelta(minutes=15)
"""A sync that said nothing for this long is taken for lost."""


class VerificationEvent(StrEnum):
    """What can happen to a verification."""

    CREDENTIALS_ACCEPTED = "credentials.accepted"
    SYNC_OK = "sync.ok"
    SYNC_INSUFFICIENT = "sync.insufficient"
    SYNC_PERMISSION_DENIED = "sync.permission_denied"
    GRANT_REFUSED = "grant.refused"
    CLOCK_24H = "clock.24h_without_ok"
    CLOCK_7D = "clock.7d_without_ok"
    SHOP_DEVELOPMENT = "shop.development"
    SHOP_SELLS = "shop.sells"
    FRAUD_FLAG = "fraud.flag"
    ADMIN_CLEAR = "admin.clear"
    ADMIN_REJECT = "admin.reject"
    SELLER_REMOVE = "seller.remove"


class Badge(StrEnum):
    """What a buyer may be shown."""

    GREEN = "green"
    GREY = "grey"
    NONE = "none"


BADGES: Final = (Badge.NONE, Badge.GREY, Badge.GREEN)
"""From worst to best."""


SYNCS: Final = (
    State.PENDING,
    State.VERIFIED,
    State.VERIFIED_NEW,
    State.STALE,
    State.NEEDS_PERMISSION,
    State.TOKEN_UNAVAILABLE,
)

machines.VERIFICATION.require((each for each in State if each is not State.NONE), VerificationEvent)
MOVES: Final[Mapping[tuple[State, VerificationEvent], State]] = {
    (
        State.NONE if source == machines.NOTHING else State(source),
        VerificationEvent(event),
    ): State(move.to)
    for (source, event), move in machines.VERIFICATION.moves.items()
}
"""The machine of a proof (rules/revenue#states)."""

SYNCED: Final = (*SYNCS, State.SUSPENDED)
"""States in which the hourly job reads the shop."""
COMMANDS: Final = (VerificationEvent.CREDENTIALS_ACCEPTED, VerificationEvent.SELLER_REMOVE)


def allowed(state: State) -> list[str]:
    """List what a seller can do in a state."""
    return [event.value for event in COMMANDS if (state, event) in MOVES]


def move(record: VerificationRecord, event: VerificationEvent, at: datetime) -> VerificationRecord:
    """Make a move of the machine, or raise InvalidTransition with what is allowed instead."""
    to = MOVES.get((record.state, event))
    if to is None:
        raise InvalidTransition(
            f"The verification's state is {record.state}, which doesn't allow {event}. Choose one of the actions in `allowed`.",
            allowed(record.state),
        )
    since = record.since if to is record.state else at
    return replace(record, state=to, since=since)


def settle(record: VerificationRecord, now: datetime) -> VerificationRecord:
    """Apply the moves that time alone makes; the same record when it makes none."""
    while (due := overdue(record, now)) is not None:
        record = replace(move(record, due, now), keeps_badge=False)
    return record


def overdue(record: VerificationRecord, now: datetime) -> VerificationEvent | None:
    """Name the next move that time makes by `now`, or None."""
    match record.state:
        case State.PENDING:
            return VerificationEvent.CLOCK_24H if older(record.since, now, FRESH) else None
        case State.VERIFIED | State.VERIFIED_NEW:
            return VerificationEvent.CLOCK_24H if older(record.last_ok_at, now, FRESH) else None
        case State.STALE | State.TOKEN_UNAVAILABLE | State.NEEDS_PERMISSION:
            good = max(filter(None, (record.last_ok_at, record.accepted_at)), default=None)
            return VerificationEvent.CLOCK_7D if older(good, now, TRUSTED) else None
        case _:
            return None


def older(moment: datetime | None, now: datetime, age: timedelta) -> bool:
    """Whether a moment is at least `age` ago; one that never was is as old as can be."""
    return moment is None or now - moment >= age


def badge_of(record: VerificationRecord, now: datetime) -> Badge:
    """Say which badge a listing has now; without thirty days of history it never has one."""
    record = settle(record, now)
    if record.verified_at is None or older(record.verified_at, now, TRUSTED):
        return Badge.NONE
    match record.state:
        case State.VERIFIED:
            return Badge.GREEN
        case State.PENDING if record.keeps_badge:
            return Badge.GREY if older(record.verified_at, now, FRESH) else Badge.GREEN
        case State.STALE | State.NEEDS_PERMISSION | State.TOKEN_UNAVAILABLE:
            return Badge.GREY
        case _:
            return Badge.NONE


def listing_badge(records: Sequence[VerificationRecord], now: datetime) -> Badge:
    """Say which badge a listing has by all its sources: the best, and none while one is doubted."""
    if any(record.state is State.SUSPENDED for record in records):
        return Badge.NONE
    return max((badge_of(record, now) for record in records), key=BADGES.index)


def primary(records: Sequence[VerificationRecord], now: datetime) -> VerificationRecord:
    """Choose the source whose numbers a listing shows (rules/revenue#two-sources: they are never added).

    It is one that is doubted, else the one with the best badge, else one that is connected; where
    they are as good the first provider's.
    """

    def rank(record: VerificationRecord) -> tuple[bool, int, bool, bool]:
        is_there = record.state not in (State.NONE, State.REVOKED)
        return (
            record.state is State.SUSPENDED,
            BADGES.index(badge_of(record, now)),
            is_there,
            record.state is not State.NONE,
        )

    return max(records, key=rank)


def accept(record: VerificationRecord, shop_domain: str, at: datetime) -> VerificationRecord:
    """Take new credentials; another shop starts from nothing, the same one keeps its badge."""
    settled = settle(record, at)
    pending = replace(
        move(settled, VerificationEvent.CREDENTIALS_ACCEPTED, at),
        since=at,
        generation=record.generation + 1,
        shop_domain=shop_domain,
        accepted_at=at,
        syncing_since=at,
        missing_permission=None,
        last_error=None,
    )
    if record.shop_domain != shop_domain or settled.state is State.REVOKED:
        return replace(
            pending, last_ok_at=None, verified_at=None, keeps_badge=False, primary_domain=None
        )
    kept = settled.state is State.VERIFIED or settled.keeps_badge
    return replace(pending, keeps_badge=kept)


def succeed(
    record: VerificationRecord, measured_at: datetime, at: datetime, *, sufficient: bool
) -> VerificationRecord:
    """Note a good sync of the window that ended at `measured_at`."""
    event = VerificationEvent.SYNC_OK if sufficient else VerificationEvent.SYNC_INSUFFICIENT
    good = replace(
        move(settle(record, at), event, at),
        last_ok_at=measured_at,
        keeps_badge=False,
        syncing_since=None,
        missing_permission=None,
        last_error=None,
    )
    # What is suspended proves nothing, however good its numbers are.
    if good.state is not State.SUSPENDED:
        good = replace(good, verified_at=measured_at if sufficient else None)
    return settle(good, at)


def develops(record: VerificationRecord, at: datetime) -> VerificationRecord:
    """Take the badge from a shop that turned into a development or trial one."""
    ended = replace(settle(record, at), syncing_since=None)
    if (ended.state, VerificationEvent.SHOP_DEVELOPMENT) not in MOVES:
        return ended
    return replace(
        move(ended, VerificationEvent.SHOP_DEVELOPMENT, at),
        suspended_for=DEVELOPMENT,
        keeps_badge=False,
        verified_at=None,
        last_error=DEVELOPMENT,
    )


def sells(record: VerificationRecord, at: datetime) -> VerificationRecord:
    """Let a shop that is on a real plan again be verified anew; a person's doubt stays."""
    if record.suspended_for != DEVELOPMENT:
        return record
    return replace(
        move(record, VerificationEvent.SHOP_SELLS, at), suspended_for=None, last_error=None
    )


def takes_success(record: VerificationRecord, at: datetime) -> bool:
    """Whether a good sync would count; after a failure only credentials not yet used do."""
    settled = settle(record, at)
    if settled.state is State.FAILED:
        return untried(settled)
    return settled.state in SYNCED


def untried(record: VerificationRecord) -> bool:
    """Whether the present credentials never led to a good sync."""
    if record.accepted_at is None:
        return False
    return record.last_ok_at is None or record.last_ok_at < record.accepted_at


def deny(record: VerificationRecord, permission: str, at: datetime) -> VerificationRecord:
    """Note that the shop grants too little; the seller is told which permission."""
    return _ended(
        record, VerificationEvent.SYNC_PERMISSION_DENIED, at, missing_permission=permission
    )


def refuse_grant(record: VerificationRecord, reason: str, at: datetime) -> VerificationRecord:
    """Note that the platform refuses the credentials; they stay as they are."""
    return _ended(record, VerificationEvent.GRANT_REFUSED, at, last_error=reason)


def miss(record: VerificationRecord, reason: str, at: datetime) -> VerificationRecord:
    """Note a sync that came to nothing; only the clock moves the state."""
    return replace(settle(record, at), syncing_since=None, last_error=reason)


def _ended(
    record: VerificationRecord, event: VerificationEvent, at: datetime, **noted: str
) -> VerificationRecord:
    settled = settle(record, at)
    if (settled.state, event) in MOVES:
        settled = replace(move(settled, event, at), keeps_badge=False)
    return settle(replace(settled, syncing_since=None, **noted), at)  # type: ignore[arg-type]  # the names are of text fields


def review(
    record: VerificationRecord, event: VerificationEvent, at: datetime
) -> VerificationRecord:
    """Carry out an administrator's verdict; what the shop says meanwhile is not heard."""
    judged = replace(
        move(settle(record, at), event, at),
        generation=record.generation + 1,
        suspended_for=None,
        keeps_badge=False,
        syncing_since=None,
    )
    return discredit(judged)


def discredit(record: VerificationRecord) -> VerificationRecord:
    """Let what failed prove nothing: it needs new credentials, not another try of the old ones."""
    if record.state is not State.FAILED:
        return record
    return replace(record, generation=record.generation + 1, accepted_at=None, verified_at=None)


def remove(record: VerificationRecord, at: datetime) -> VerificationRecord:
    """End the verification; a sync under way will find that it is no longer wanted."""
    return replace(
        move(settle(record, at), VerificationEvent.SELLER_REMOVE, at),
        generation=record.generation + 1,
        suspended_for=None,
        keeps_badge=False,
        syncing_since=None,
        missing_permission=None,
        last_error=None,
    )


def is_syncing(record: VerificationRecord, now: datetime) -> bool:
    """Whether a sync is under way that may still report."""
    return record.syncing_since is not None and not older(record.syncing_since, now, SYNC_EXPIRES)
