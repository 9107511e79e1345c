"""The listing: what is for sale, and how far its revenue is proven, one message at a time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import structlog

from tolsey.actors.listing import KIND, lifecycle
from tolsey.actors.listing.deals.negotiating import following, reviewed
from tolsey.actors.listing.deals.part import Deals, NdaWriters
from tolsey.actors.listing.messages import (
    ClockTick,
    CreateListing,
    EditListing,
    PauseListing,
    PublishListing,
    RefreshRevenue,
    RemoveListing,
    RemoveRevenueSource,
    RevenueSourceAccepted,
    ReviewListing,
    ReviewVerification,
    SourceRevoked,
    SubmitListing,
    SyncDue,
    SyncFailed,
    SyncFoundDevelopment,
    SyncGrantRefused,
    SyncInsufficient,
    SyncPermissionDenied,
    SyncSucceeded,
    WithdrawListing,
)
from tolsey.actors.listing.state import ListingState, Proof, blank
from tolsey.actors.listing.verification import source
from tolsey.runtime.actor import Actor, handles, on
from tolsey.runtime.decision import Decision
from tolsey.storage.database import Database
from tolsey.storage.records.selling.listing import (
    ListingDetails,
    VerificationState,
    VisibilityRecord,
)
from tolsey.storage.records.selling.revenue import DEFINITION
from tolsey.storage.selling import listings

log = structlog.get_logger()

SHOWN_AS_IT_IS = "{}"

Answer = Decision[ListingState, str]
Silence = Decision[ListingState, None]


def _report(state: ListingState, message: SyncSucceeded | SyncInsufficient) -> Silence:
    """Keep a good sync, and log what another definition did to its numbers."""
    decision, found = source.report(state, message), message.report
    if found.former is not None and decision.records:
        log.warning(
            "revenue_redefined",
            listing_id=state.id,
            provider=found.provider,
            before=found.former.definition,
            after=DEFINITION,
            state=decision.state.proof(found.provider).verification.state.value,
        )
    return decision


def _refuse_grant(state: ListingState, message: SyncGrantRefused) -> Silence:
    """Note the refusal, and log it the first time."""
    decision = source.refuse_grant(state, message)
    before = state.proof(message.provider).verification.state
    known = before is VerificationState.TOKEN_UNAVAILABLE
    after = decision.state.proof(message.provider).verification.state
    if after is VerificationState.TOKEN_UNAVAILABLE and not known:
        log.warning(
            "refresh_rejected", listing_id=state.id, provider=message.provider, code=message.code
        )
    return decision


class ListingActor(Actor[ListingState]):
    """Every listing."""

    kind: ClassVar[str] = KIND
    decides = (
        on(CreateListing, lifecycle.create),
        on(EditListing, lifecycle.edit),
        on(SubmitListing, lifecycle.submit),
        on(PublishListing, lifecycle.publish),
        on(PauseListing, lifecycle.pause),
        on(WithdrawListing, following(lifecycle.withdraw)),
        on(RemoveListing, following(lifecycle.remove)),
        on(ReviewListing, following(reviewed)),
        on(RefreshRevenue, source.refresh),
        on(RemoveRevenueSource, source.disconnect),
        on(ReviewVerification, source.review),
        on(SourceRevoked, source.revoke),
        on(SyncDue, source.due),
        on(ClockTick, following(lifecycle.tick)),
        on(SyncFoundDevelopment, source.develops),
        on(SyncPermissionDenied, source.deny),
        on(SyncFailed, source.miss),
        on(SyncSucceeded, _report),
        on(SyncInsufficient, _report),
        on(SyncGrantRefused, _refuse_grant),
    )

    def __init__(self, database: Database, nda_writer: NdaWriters) -> None:
        self._deals = Deals(database, nda_writer)
        super().__init__(self._deals)
        self._database = database

    async def load(self, keys: Sequence[str]) -> Mapping[str, ListingState]:
        """Read listings back into memory."""
        rows = await listings.load(self._database, keys)
        deals = await self._deals.load(keys)
        return {key: replace(_state(key, found), **deals[key]) for key, found in rows.items()}

    def changes(self, old: ListingState, new: ListingState) -> Iterable[Any]:
        """List the parts that are to be written."""
        if new.listing is not None and new.listing != old.listing:
            yield new.listing
            shown = new.listing.visibility
            if shown != (old.listing.visibility if old.listing else SHOWN_AS_IT_IS):
                yield VisibilityRecord(listing_id=new.id, visibility=shown)
            if (beside := _details(new)) != _details(old):
                yield beside
        for before, after in zip(old.proofs, new.proofs, strict=True):
            if after.verification != before.verification:
                yield after.verification
            if after.source is not None and after.source != before.source:
                yield after.source
        yield from self._deals.changes(old, new)

    @handles(RevenueSourceAccepted)
    async def accept(self, state: ListingState, message: RevenueSourceAccepted) -> Answer:
        """Keep sealed credentials, unless the shop or account backs another listing."""
        holder = await listings.listing_using(self._database, message.provider, message.shop_domain)
        in_use = holder is not None and holder != state.id
        return source.accept(state, message, in_use=in_use)


def _details(state: ListingState) -> ListingDetails:
    """Give what is kept beside a listing; it may be that nobody said any of it."""
    if state.listing is None:
        return ListingDetails(listing_id=state.id)
    return ListingDetails(
        listing_id=state.id,
        private=state.listing.private,
        required_documents=state.listing.required_documents,
    )


def _state(listing_id: str, found: listings.ListingRows) -> ListingState:
    """Put a listing's rows in their places; a provider without rows has a blank machine."""
    known = blank(listing_id)
    proofs = (
        Proof(
            found.verifications.get(each.verification.provider, each.verification),
            found.sources.get(each.verification.provider),
        )
        for each in known.proofs
    )
    return ListingState(id=listing_id, listing=found.listing, proofs=tuple(proofs))
