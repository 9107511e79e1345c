"""What a listing is told and asked."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Final

from tolsey.actors.listing import KIND
from tolsey.runtime.messages import ActorId, Call, LaneName, Message
from tolsey.storage.records.selling.listing import COMMERCE, PAYMENTS, ListingFields
from tolsey.storage.records.selling.revenue import Measure

LEFT_ALONE: Final = timedelta(days=180)
"""A listing whose seller did nothing for so long leaves the market."""


def listing(listing_id: str) -> ActorId:
    """Address a listing."""
    return ActorId(KIND, listing_id)


# What a seller or an administrator does with the listing itself; the answer is its status.


@dataclass(frozen=True, kw_only=True)
class CreateListing(Message[str]):
    """A seller starts a draft."""

    organization_id: str
    store_id: str | None
    fields: ListingFields
    by: str
    at: datetime


@dataclass(frozen=True)
class EditListing(Message[str]):
    """A seller changes the named fields."""

    fields: ListingFields
    given: tuple[str, ...]
    at: datetime


@dataclass(frozen=True)
class SubmitListing(Message[str]):
    """A seller asks for the review."""

    at: datetime


@dataclass(frozen=True, kw_only=True)
class PublishListing(Message[str]):
    """A listing is to be seen; `automatic` means that no person reviews."""

    at: datetime
    by: str
    automatic: bool
    administrator: bool = False


@dataclass(frozen=True)
class PauseListing(Message[str]):
    """A seller takes no new buyers for now."""

    at: datetime


@dataclass(frozen=True)
class WithdrawListing(Message[str]):
    """A seller gives up selling; with `owner_goes` what is sold is deleted, or who sells it."""

    at: datetime
    by: str
    owner_goes: bool = False


@dataclass(frozen=True)
class RemoveListing(Message[str]):
    """A seller wants the listing gone from their pages."""

    at: datetime
    by: str


@dataclass(frozen=True, kw_only=True)
class ReviewListing(Message[str]):
    """An administrator's verdict: approve, reject, suspend or reinstate."""

    verdict: str
    reason: str
    by: str
    at: datetime


# Where the revenue is read; the answer is the verification's state.


@dataclass(frozen=True, kw_only=True)
class RevenueSourceAccepted(Message[str]):
    """Credentials that their provider has just honoured, sealed for this listing.

    Of a payment processor `shop_domain` is the account, and `client_id` the end of its key.
    """

    organization_id: str
    provider: str
    shop_domain: str
    client_id: str
    sealed_secret: str
    by: str
    at: datetime


@dataclass(frozen=True)
class RefreshRevenue(Message[str]):
    """A seller wants the numbers now."""

    at: datetime


@dataclass(frozen=True)
class RemoveRevenueSource(Message[str]):
    """A seller takes credentials back: those of one provider, or all."""

    at: datetime
    by: str
    provider: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReviewVerification(Message[str]):
    """An administrator's verdict: fraud.flag, admin.clear or admin.reject."""

    verdict: str
    reason: str
    by: str
    at: datetime


@dataclass(frozen=True)
class SourceRevoked(Message[None]):
    """The platform ended the connection: the app was removed, or the shop erased."""

    at: datetime
    reason: str


@dataclass(frozen=True)
class SyncDue(Message[None]):
    """The hourly job's turn has come for this listing: at a moment of its own within the hour."""

    at: datetime


@dataclass(frozen=True)
class ClockTick(Message[None]):
    """Time has passed: whatever has run out runs out now."""

    at: datetime


UNREACHABLE: Final = {COMMERCE: "commerce_unreachable", PAYMENTS: "processor_unreachable"}
"""What is said of a source that could not be read however often it was tried."""

# A sync: the call, and the ways it can end. `generation` says which credentials it used.


@dataclass(frozen=True, kw_only=True)
class PullRevenue(
    Call[
        "SyncSucceeded | SyncInsufficient | SyncFoundDevelopment | SyncPermissionDenied"
        " | SyncGrantRefused | SyncFailed"
    ]
):
    """Read thirty days of orders from the listing's shop, or of payments from its account."""

    lane: ClassVar[LaneName] = "platform"
    deadline_seconds: ClassVar[float] = 3 * 3600.0
    """The export of a large shop takes two hours."""

    listing_id: str
    generation: int
    at: datetime
    provider: str = COMMERCE
    organization_id: str | None = None

    def given_up(self, why: str, at: datetime) -> "SyncFailed":
        """Free the listing for its next sync."""
        del why
        return SyncFailed(
            generation=self.generation,
            reason=UNREACHABLE[self.provider],
            at=at,
            provider=self.provider,
        )


@dataclass(frozen=True)
class Former:
    """What the last sync under another definition said; `figures` is JSON text, by currency."""

    definition: str
    figures: str


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    """What a good sync found; `former` when the one before it was made under another definition."""

    generation: int
    shop_domain: str
    shop_currency: str
    primary_domain: str | None
    window_start: datetime
    window_end: datetime
    measure: Measure
    provider: str = COMMERCE
    former: Former | None = None


@dataclass(frozen=True)
class SyncSucceeded(Message[None]):
    """The source has thirty days of history, and this is what they come to."""

    report: SyncReport
    at: datetime


@dataclass(frozen=True)
class SyncInsufficient(Message[None]):
    """The source is younger than thirty days; this is what it has."""

    report: SyncReport
    at: datetime


@dataclass(frozen=True)
class SyncFoundDevelopment(Message[None]):
    """The shop is on a development or trial plan now; its orders prove nothing."""

    generation: int
    at: datetime


@dataclass(frozen=True, kw_only=True)
class SyncPermissionDenied(Message[None]):
    """The credentials do not reach what must be read."""

    generation: int
    permission: str
    at: datetime
    provider: str = COMMERCE


@dataclass(frozen=True, kw_only=True)
class SyncGrantRefused(Message[None]):
    """The provider does not honour the credentials any more."""

    generation: int
    code: str
    at: datetime
    provider: str = COMMERCE


@dataclass(frozen=True, kw_only=True)
class SyncFailed(Message[None]):
    """The source could not be read, for a reason that says nothing about its numbers."""

    generation: int
    reason: str
    at: datetime
    provider: str = COMMERCE
