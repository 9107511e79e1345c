"""The listing: what is for sale, and how far its revenue is proven, one message at a time."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import structlog

from tolsey.actors.listing import KIND, lifecycle, source
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
from tolsey.runtime.actor import Actor, handles
from tolsey.runtime.decision import Decision
from tolsey.storage.database import Database
from tolsey.storage.records.selling.listing import VerificationState
from tolsey.storage.records.selling.revenue import DEFINITION
from tolsey.storage.selling import listings

log = structlog.get_logger()

Answer = Decision[ListingState, str]
Silence = Decision[ListingState, None]


class ListingActor(Actor[ListingState]):
    """Every listing."""

    kind: ClassVar[str] = KIND

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    async def load(self, keys: Sequence[str]) -> Mapping[str, ListingState]:
        """Read listings back into memory."""
        rows = await listings.load(self._database, keys)
        return {key: _state(key, found) for key, found in rows.items()}

    def changes(self, old: ListingState, new: ListingState) -> Iterable[Any]:
        """List the parts that are to be written."""
        if new.listing is not None and new.listing != old.listing:
            yield new.listing
        for before, after in zip(old.proofs, new.proofs, strict=True):
            if after.verification != before.verification:
                yield after.verification
            if after.source is not None and after.source != before.source:
                yield after.source

    @handles(CreateListing)
    def create(self, state: ListingState, message: CreateListing) -> Answer:
        """Start a draft."""
        return lifecycle.create(state, message)

    @handles(EditListing)
    def edit(self, state: ListingState, message: EditListing) -> Answer:
        """Change what the seller says."""
        return lifecycle.edit(state, message)

    @handles(SubmitListing)
    def submit(self, state: ListingState, message: SubmitListing) -> Answer:
        """Hand in for review."""
        return lifecycle.submit(state, message)

    @handles(PublishListing)
    def publish(self, state: ListingState, message: PublishListing) -> Answer:
        """Show to buyers."""
        return lifecycle.publish(state, message)

    @handles(PauseListing)
    def pause(self, state: ListingState, message: PauseListing) -> Answer:
        """Take no new buyers."""
        return lifecycle.pause(state, message)

    @handles(WithdrawListing)
    def withdraw(self, state: ListingState, message: WithdrawListing) -> Answer:
        """Give up selling."""
        return lifecycle.withdraw(state, message)

    @handles(RemoveListing)
    def remove(self, state: ListingState, message: RemoveListing) -> Answer:
        """Make it disappear."""
        return lifecycle.remove(state, message)

    @handles(ReviewListing)
    def review(self, state: ListingState, message: ReviewListing) -> Answer:
        """Carry out an administrator's verdict."""
        return lifecycle.review(state, message)

    @handles(RevenueSourceAccepted)
    async def accept(self, state: ListingState, message: RevenueSourceAccepted) -> Answer:
        """Keep sealed credentials, unless the shop or account backs another listing."""
        holder = await listings.listing_using(self._database, message.provider, message.shop_domain)
        in_use = holder is not None and holder != state.id
        return source.accept(state, message, in_use=in_use)

    @handles(RefreshRevenue)
    def refresh(self, state: ListingState, message: RefreshRevenue) -> Answer:
        """Read every source now."""
        return source.refresh(state, message)

    @handles(RemoveRevenueSource)
    def disconnect(self, state: ListingState, message: RemoveRevenueSource) -> Answer:
        """Forget the credentials."""
        return source.disconnect(state, message)

    @handles(ReviewVerification)
    def judge(self, state: ListingState, message: ReviewVerification) -> Answer:
        """Carry out an administrator's verdict on the numbers."""
        return source.review(state, message)

    @handles(SourceRevoked)
    def revoke(self, state: ListingState, message: SourceRevoked) -> Silence:
        """Forget credentials that the platform ended."""
        return source.revoke(state, message)

    @handles(SyncDue)
    def sync_due(self, state: ListingState, message: SyncDue) -> Silence:
        """Read each source if its state wants that."""
        return source.due(state, message)

    @handles(ClockTick)
    def tick(self, state: ListingState, message: ClockTick) -> Silence:
        """Let whatever has run out run out."""
        return lifecycle.tick(state, message)

    @handles(SyncSucceeded)
    def succeeded(self, state: ListingState, message: SyncSucceeded) -> Silence:
        """Keep the numbers of a good sync."""
        return self._kept(state, message)

    @handles(SyncInsufficient)
    def insufficient(self, state: ListingState, message: SyncInsufficient) -> Silence:
        """Keep the numbers of a shop that is still young."""
        return self._kept(state, message)

    def _kept(self, state: ListingState, message: SyncSucceeded | SyncInsufficient) -> Silence:
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

    @handles(SyncFoundDevelopment)
    def develops(self, state: ListingState, message: SyncFoundDevelopment) -> Silence:
        """Take the badge from a shop on a development or trial plan."""
        return source.develops(state, message)

    @handles(SyncPermissionDenied)
    def denied(self, state: ListingState, message: SyncPermissionDenied) -> Silence:
        """Note the missing permission."""
        return source.deny(state, message)

    @handles(SyncGrantRefused)
    def grant_refused(self, state: ListingState, message: SyncGrantRefused) -> Silence:
        """Note the refusal, and log it the first time."""
        decision = source.refuse_grant(state, message)
        before = state.proof(message.provider).verification.state
        known = before is VerificationState.TOKEN_UNAVAILABLE
        after = decision.state.proof(message.provider).verification.state
        if after is VerificationState.TOKEN_UNAVAILABLE and not known:
            log.warning(
                "refresh_rejected",
                listing_id=state.id,
                provider=message.provider,
                code=message.code,
            )
        return decision

    @handles(SyncFailed)
    def failed(self, state: ListingState, message: SyncFailed) -> Silence:
        """Note a sync that came to nothing."""
        return source.miss(state, message)


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
    return ListingState(listing_id, found.listing, tuple(proofs))
