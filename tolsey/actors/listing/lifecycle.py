"""Decisions about a listing: from draft to sale, and what its seller may change."""

import re
import unicodedata
from dataclasses import fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from tolsey.actors.listing import machines
from tolsey.actors.listing.machines import CLOCK, OPERATOR, SELLER
from tolsey.actors.listing.messages import (
    LEFT_ALONE,
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
from tolsey.actors.listing.verification import source
from tolsey.actors.refusals import Conflict, Forbidden, InvalidTransition, NotFound, Unprocessable
from tolsey.runtime.decision import Decision
from tolsey.storage.records.journal import AuditRecord, audit_record
from tolsey.storage.records.selling.listing import ListingFields, ListingRecord, ListingStatus

Status = ListingStatus
Answer = Decision[ListingState, str]

REQUIRED: Final = {"title": "title"}
"""What everyone must find on every listing: the field, and its name at the edge.

One without an asking price is not for sale: it shows what a business earns, and is not on the market.
"""
SLUG_WORDS: Final = 60


class ListingEvent(StrEnum):
    """What can happen to a listing."""

    CREATE = "create"
    SUBMIT = "submit"
    APPROVE = "approve"
    REJECT = "reject"
    PAUSE = "pause"
    RESUME = "resume"
    OFFER_ACCEPTED = "offer_accepted"
    DEAL_LOST = "deal_lost"
    DEAL_CLOSED = "deal_closed"
    DEAL_REFUNDED = "deal_refunded"
    WITHDRAW = "withdraw"
    SUSPEND = "suspend"
    REINSTATE = "reinstate"
    LEFT_ALONE = "timer.180d"


machines.LISTING.require(Status, ListingEvent)

COMMANDS: Final = (
    ListingEvent.SUBMIT,
    ListingEvent.PAUSE,
    ListingEvent.RESUME,
    ListingEvent.WITHDRAW,
)
EDITABLE: Final = (
    Status.DRAFT,
    Status.PENDING_REVIEW,
    Status.ACTIVE,
    Status.PAUSED,
    Status.REJECTED,
    Status.EXPIRED,
)
BOUND: Final = (Status.UNDER_OFFER, Status.SOLD, Status.SUSPENDED)
"""Someone else has a claim on a listing that stands here, so it cannot disappear."""


def slug_of(title: str, listing_id: str, *, anonymous: bool) -> str:
    """Make an address that is readable and the listing's own; an anonymous one tells nothing."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain)[:SLUG_WORDS].strip("-")
    # The tail of a UUIDv7 is random; its head is the time.
    return f"{'listing' if anonymous or not words else words}-{listing_id[-8:]}"


def existing(state: ListingState) -> ListingRecord:
    """Return the listing, or say that there is none."""
    if state.listing is None or state.listing.deleted_at is not None:
        raise NotFound(
            "This listing doesn't exist, or you don't have access to it. Check the link or the id."
        )
    return state.listing


def allowed(status: Status) -> list[str]:
    """List what a seller can do in a status, by the names of the routes."""
    names = [event.value for event in COMMANDS if _takes(status, event, SELLER)]
    opens = [ListingEvent.SUBMIT.value, ListingEvent.RESUME.value]
    can_publish = status is Status.PENDING_REVIEW or any(name in opens for name in names)
    shown = [name for name in names if name != ListingEvent.RESUME]
    return sorted([*shown, "publish"] if can_publish else shown)


def moved(listing: ListingRecord, event: ListingEvent, actor: str = SELLER) -> ListingRecord:
    """Make a move of the machine, or raise InvalidTransition with what is allowed instead."""
    if not _takes(listing.status, event, actor):
        raise InvalidTransition(
            f"The listing's status is {listing.status}, which doesn't allow {event}. Choose one of the actions in `allowed`.",
            allowed(listing.status),
        )
    return replace(listing, status=Status(machines.LISTING.moves[listing.status, event].to))


def _takes(status: Status, event: ListingEvent, actor: str) -> bool:
    move = machines.LISTING.move(status, event)
    return move is not None and actor in move.actors


def create(state: ListingState, message: CreateListing) -> Answer:
    """Start a draft; the same request sent again finds the first one's."""
    if state.listing is not None:
        if state.listing.organization_id != message.organization_id:
            raise Conflict("This listing already exists. Update it instead of creating another.")
        return Decision(state, state.listing.status.value)
    check_money(message.fields)
    listing_id = state.id
    given = {field.name: getattr(message.fields, field.name) for field in fields(ListingFields)}
    listing = ListingRecord(
        **given,
        id=listing_id,
        organization_id=message.organization_id,
        store_id=message.store_id,
        slug=slug_of(message.fields.title, listing_id, anonymous=message.fields.anonymous),
        created_by=message.by,
        created_at=message.at,
        seller_active_at=message.at,
    )
    return Decision(replace(state, listing=listing), listing.status.value)


def edit(state: ListingState, message: EditListing) -> Answer:
    """Change the fields that were given; the address stays, so that links live on."""
    listing = existing(state)
    if listing.status not in EDITABLE:
        raise InvalidTransition(
            f"The listing can't be edited while its status is {listing.status}. Reload it to see the available actions.",
            allowed(listing.status),
        )
    given = {name: getattr(message.fields, name) for name in message.given}
    edited = replace(listing, **given, seller_active_at=message.at)
    check_money(edited)
    # Both amounts are in one currency (rules/revenue#currencies): one that is kept
    # would be read in the other's.
    if edited.currency != listing.currency and edited.min_offer and "min_offer" not in given:
        raise Unprocessable(
            "The listing's minOffer is in the old currency. Send minOffer in the new currency,"
            " or set it to null.",
            code="invalid_request",
        )
    if edited.status is not Status.DRAFT:
        check_complete(edited)
    return Decision(replace(state, listing=edited), edited.status.value)


def submit(state: ListingState, message: SubmitListing) -> Answer:
    """Hand the listing in for review."""
    listing = existing(state)
    handed_in = moved(listing, ListingEvent.SUBMIT)
    check_complete(listing)
    return _kept(state, replace(handed_in, status_reason=None), message.at)


def publish(state: ListingState, message: PublishListing) -> Answer:
    """Show the listing to buyers: again, or for the first time once nothing is in the way."""
    listing = existing(state)
    reviewed = message.automatic or message.administrator
    match listing.status:
        case Status.PAUSED:
            return _kept(state, moved(listing, ListingEvent.RESUME), message.at)
        case Status.PENDING_REVIEW if not reviewed:
            raise Forbidden(
                "The listing hasn't been approved. Submit it for review and publish it after"
                " approval.",
                code="review_required",
            )
        case Status.PENDING_REVIEW:
            handed_in = listing
        case Status.DRAFT | Status.REJECTED | Status.EXPIRED if reviewed:
            handed_in = moved(listing, ListingEvent.SUBMIT)
            check_complete(listing)
        case status:
            names = [name for name in allowed(status) if name != "publish"]
            raise InvalidTransition(
                f"The listing can't be published while its status is {status}. Reload it to see the available actions.",
                names,
            )
    shown = replace(
        moved(handed_in, ListingEvent.APPROVE, OPERATOR),
        published_at=message.at,
        status_reason=None,
    )
    records = []
    if message.administrator:
        records.append(_audit("listing.approve", shown, message.by, ""))
    return _kept(state, shown, message.at, records)


def pause(state: ListingState, message: PauseListing) -> Answer:
    """Take no new buyers for now."""
    return _kept(state, moved(existing(state), ListingEvent.PAUSE), message.at)


def withdraw(state: ListingState, message: WithdrawListing) -> Answer:
    """Take the listing off the market and forget its credentials."""
    # Nobody takes a suspended listing back, but with its store or account it goes (rules/marketplace#machines).
    actor = CLOCK if message.owner_goes else SELLER
    withdrawn = moved(existing(state), ListingEvent.WITHDRAW, actor)
    freed, records = source.released(state, message.at, reason="withdrawn", by=message.by)
    return _kept(freed, withdrawn, message.at, records)


def remove(state: ListingState, message: RemoveListing) -> Answer:
    """Make the listing disappear, unless a buyer or an administrator has a claim on it."""
    listing = existing(state)
    if listing.status in BOUND:
        raise InvalidTransition(
            f"The listing can't be deleted while its status is {listing.status}. Reload it to see the available actions.",
            allowed(listing.status),
        )
    if _takes(listing.status, ListingEvent.WITHDRAW, SELLER):
        listing = moved(listing, ListingEvent.WITHDRAW)
    freed, records = source.released(state, message.at, reason="removed", by=message.by)
    return _kept(freed, replace(listing, deleted_at=message.at), message.at, records)


def review(state: ListingState, message: ReviewListing) -> Answer:
    """Carry out an administrator's verdict; the reason is kept with the listing."""
    listing = existing(state)
    verdict = ListingEvent(message.verdict)
    if verdict is ListingEvent.REJECT and not message.reason:
        raise Unprocessable(
            "A rejection requires a reason. Send `reason` with the text the seller should read.",
            code="reason_required",
        )
    judged = replace(moved(listing, verdict, OPERATOR), status_reason=message.reason or None)
    if verdict is ListingEvent.APPROVE:
        judged = replace(judged, published_at=message.at)
    records = [_audit(f"listing.{verdict}", judged, message.by, message.reason)]
    return Decision(replace(state, listing=judged), judged.status.value, records=records)


def tick(state: ListingState, message: ClockTick) -> Decision[ListingState, None]:
    """Take a listing that its seller left alone off the market, and let its proof grow old."""
    state = source.settled(state, message.at)
    listing = state.listing
    if listing is not None and is_left_alone(listing, message.at):
        state = replace(state, listing=moved(listing, ListingEvent.LEFT_ALONE, CLOCK))
    return Decision(state, None)


def is_left_alone(listing: ListingRecord, at: datetime) -> bool:
    """Whether an active listing's seller did nothing for half a year."""
    if listing.status is not Status.ACTIVE or listing.deleted_at is not None:
        return False
    return at - listing.seller_active_at >= LEFT_ALONE


def check_complete(listing: ListingFields) -> None:
    """Refuse a listing without what everyone needs to know."""
    missing = [name for field, name in REQUIRED.items() if not getattr(listing, field)]
    if missing:
        raise Unprocessable(
            f"The listing can't be published without {', '.join(missing)}. Fill in these fields and try again.",
            code="incomplete_listing",
            errors=[{"field": name, "message": "is required"} for name in missing],
        )


def check_money(listing: ListingFields) -> None:
    """Refuse a least offer that has no currency, or is more than the price."""
    if listing.min_offer is not None and listing.currency is None:
        raise Unprocessable(
            "minOffer requires an askingPrice. Send both, or leave out minOffer.",
            code="invalid_request",
        )
    if listing.min_offer and listing.asking_price and listing.min_offer > listing.asking_price:
        raise Unprocessable(
            "minOffer is higher than askingPrice. Lower minOffer or raise askingPrice.",
            code="invalid_request",
        )


def _kept(
    state: ListingState,
    listing: ListingRecord,
    at: datetime,
    records: list[AuditRecord] | None = None,
) -> Answer:
    active = replace(listing, seller_active_at=at)
    return Decision(replace(state, listing=active), active.status.value, records=records or [])


def _audit(event: str, listing: ListingRecord, by: str, reason: str) -> AuditRecord:
    return audit_record(
        event, listing.id, listing.organization_id, by, status=listing.status, reason=reason
    )
