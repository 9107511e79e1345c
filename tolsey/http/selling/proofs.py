"""How far a listing's revenue is proven, in words for its seller, and what it wants."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from tolsey.actors.listing.verification import transitions
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.standings import ShownState, Tone, Want
from tolsey.storage.records.selling.listing import ListingStatus, VerificationRecord
from tolsey.storage.records.selling.listing import VerificationState as State
from tolsey.storage.selling.listings import ListingView

ENDED: Final = (
    ListingStatus.SOLD,
    ListingStatus.WITHDRAWN,
    ListingStatus.EXPIRED,
    ListingStatus.REJECTED,
)
WANTING: Final = (State.STALE, State.NEEDS_PERMISSION, State.TOKEN_UNAVAILABLE, State.FAILED)
PROOFS: Final[Mapping[State, tuple[Tone, str]]] = {
    State.VERIFIED: ("good", marked("Verified")),
    State.VERIFIED_NEW: ("wait", marked("Verified, too new")),
    State.PENDING: ("wait", marked("Being read")),
    State.STALE: ("warn", marked("Stale")),
    State.NEEDS_PERMISSION: ("bad", marked("Permission missing")),
    State.TOKEN_UNAVAILABLE: ("bad", marked("Key refused")),
    State.FAILED: ("bad", marked("Failed")),
    State.SUSPENDED: ("bad", marked("Suspended")),
}
ADVICE: Final[Mapping[State, str]] = {
    State.VERIFIED_NEW: marked("The badge comes by itself when the history is 30 days old."),
    State.STALE: marked(
        "No sync worked for a day. We try again every hour; after a week the badge ends."
    ),
    State.NEEDS_PERMISSION: marked("Grant %(permission)s, then give the key anew."),
    State.TOKEN_UNAVAILABLE: marked(
        "The key is refused: it was changed or taken back. Give the present one."
    ),
    State.SUSPENDED: marked(
        "Someone looks at the numbers. You need do nothing; the badge rests meanwhile."
    ),
    State.FAILED: marked("Give the key anew; the badge comes back with the first sync that works."),
}


def proof_of(record: VerificationRecord) -> ShownState:
    """Say how far a source proves a listing's revenue."""
    tone, word = PROOFS.get(record.state, ("you", marked("Not proven")))
    return ShownState(tone, _(word))


def advice_for(record: VerificationRecord) -> str:
    """Say what a seller can do about a source that proves nothing, or not any more."""
    if record.suspended_for == transitions.DEVELOPMENT:
        return _(
            "The shop is on a development or trial plan. The badge comes back with a paid one."
        )
    permission = {"permission": record.missing_permission or ""}
    return _(ADVICE.get(record.state, "")) % permission


def wanted_by_listing(view: ListingView, at: datetime) -> Iterator[Want]:
    """Say what a listing wants until it has a badge that the public can see."""
    listing = view.listing
    about = {"listing": listing.title}
    records = [transitions.settle(proof.verification, at) for proof in view.proofs]
    given = [one for one in records if one.state not in (State.NONE, State.REVOKED)]
    address = f"/selling/{listing.id}"
    for record in given:
        if record.state in WANTING or record.suspended_for is not None:
            yield Want(
                tone="warn" if record.state is State.STALE else "bad",
                title=_("The revenue of %(listing)s is not proven any more") % about,
                advice=advice_for(record),
                subject=listing.title,
                act=_("See the proof"),
                address=address,
            )
    if not given and listing.status not in ENDED:
        yield Want(
            tone="you",
            title=_("Prove the revenue of %(listing)s") % about,
            advice=_(
                "The shop or the payment processor is read, never changed. It takes a minute."
            ),
            subject=listing.title,
            act=_("Prove it"),
            address=address,
        )
    elif listing.status is ListingStatus.DRAFT:
        yield Want(
            tone="you",
            title=_("Show %(listing)s to the public") % about,
            advice=_("Nobody sees its badge while it is a draft."),
            subject=listing.title,
            act=_("See the listing"),
            address=address,
        )
