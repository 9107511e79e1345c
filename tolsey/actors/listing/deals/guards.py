"""What must hold before a deal moves: as it stands, and of what is said with the move.

A guard answers with the sentence that says what is missing, or None. Those of STANDS look at the deal
alone, so that `allowed` lists no move that they refuse; those of SAYS look at what was given with it.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from tolsey.actors.listing.deals.cases import (
    DealCase,
    Stage,
    is_accepted,
    is_taken,
    item_of,
    items,
)
from tolsey.actors.listing.machines import OPERATOR, SELLER
from tolsey.storage.records.selling.listing import ListingStatus, VerificationState

Guard = Callable[[DealCase], str | None]

MONEY_BACK: Final = timedelta(days=7)
AGREED_WITHIN: Final = timedelta(days=7)
LONGEST_EXCLUSIVITY: Final = timedelta(days=60)
FAST_TRACK_CENTS: Final = 25_000_00
REFUND_REASONS: Final = ("revenue_differs", "asset_missing", "undisclosed_liability")
VERDICTS: Final = ("accepted", "rejected")


def _may_list(case: DealCase) -> str | None:
    # The seller can be paid before anyone is let in (rules/marketplace#access).
    return (
        None
        if case.may_sell
        else "The seller has no verified payout account. The seller must connect one first."
    )


def _first(case: DealCase) -> str | None:
    listing = case.state.listing
    # Decided here, in the listing, so that of two acceptances at once one is refused (rules/marketplace#one-buyer).
    if is_taken(case.state, case.deal.id):
        return "Another buyer's offer was already accepted. Wait until that deal ends."
    if listing is None or listing.status is not ListingStatus.ACTIVE:
        return "The listing isn't for sale at the moment. Publish it again first."
    return None


def _no_letter(case: DealCase) -> str | None:
    signed = case.deal.loi_signed_at
    return (
        "A signed letter of intent ended this deal's negotiation, so it can't be reopened. Open a new deal."
        if signed
        else None
    )


def _is_small(case: DealCase) -> str | None:
    deal = case.deal
    # Without due diligence up to 25,000 USD (rules/marketplace#stages).
    is_small = deal.currency == "USD" and deal.price is not None and deal.price <= FAST_TRACK_CENTS
    return (
        None
        if is_small
        else "The fast track is available for prices up to 25,000 USD. Use the standard process."
    )


def _not_agreed(case: DealCase) -> str | None:
    agreed = case.side in items(case.deal.fast_track)
    return (
        "You already agreed to the fast track. Wait for the other party."
        if agreed
        else _is_small(case)
    )


def _may_purchase(case: DealCase) -> str | None:
    """Say what keeps the purchase agreement from being signed."""
    deal = case.deal
    if deal.stage is Stage.UNDER_OFFER:
        if len(items(deal.fast_track)) < 2:  # noqa: PLR2004 - both parties
            return "The fast track needs the agreement of both parties. Both must choose it first."
        if (wrong := _is_small(case)) is not None:
            return wrong
    doubted = (VerificationState.FAILED, VerificationState.SUSPENDED)
    if any(proof.verification.state in doubted for proof in case.state.proofs):
        return "The seller's revenue is no longer verified. The seller must verify it again first."
    if any(one["blocking"] and not one["resolvedAt"] for one in items(deal.diligence)):
        return "The due diligence has open blocking items. The buyer must resolve them first."
    return _may_list(case)


def _funded(case: DealCase) -> str | None:
    deal = case.deal
    # Money is only said to be there for an agreement that was signed, at a provider that is named.
    if deal.apa_signed_at is None or deal.escrow_id is None:
        return "The deal has no escrow. Open one and send its id, amount and currency."
    return None


def _is_funding_shown(case: DealCase) -> str | None:
    shown = case.deal.funding_confirmed_at or case.given.evidence
    if case.actor == SELLER and not shown:
        return "The funding isn't confirmed. Ask the buyer to confirm it, or attach evidence of it."
    return None


def _may_open_escrow(case: DealCase) -> str | None:
    confirmed = case.deal.funding_confirmed_at
    return (
        "The buyer already confirmed the funding of this escrow. Continue with the next step."
        if confirmed
        else None
    )


def _may_confirm_funding(case: DealCase) -> str | None:
    if case.deal.funding_confirmed_at is not None:
        return "You already confirmed the funding. Wait for the seller."
    return (
        None if case.deal.escrow_id else "The deal has no escrow. The seller must open one first."
    )


def _is_over(case: DealCase) -> str | None:
    deal = case.deal
    if case.actor == OPERATOR or is_accepted(deal):
        return None
    ends = deal.inspection_ends_at
    rejected = any(one["verdict"] == "rejected" for one in items(deal.transfer))
    # Until the buyer has accepted everything, the inspection has to be over without a rejection.
    if ends is None or case.at < ends or rejected:
        return "The inspection isn't complete. The buyer must accept every item, or the inspection period must end without a rejection."
    return None


def _other_proposed_end(case: DealCase) -> str | None:
    deal = case.deal
    by, at = deal.cancel_proposed_by, deal.cancel_proposed_at
    if case.side is None or by != case.side.other or at is None:
        return "The other party hasn't proposed a cancellation. Propose one yourself."
    if case.at - at > AGREED_WITHIN:
        return "The cancellation proposal is older than 7 days and has expired. Propose the cancellation again."
    return None


def _other_proposed_date(case: DealCase) -> str | None:
    by = case.deal.exclusivity_proposed_by
    if case.side is None or by != case.side.other:
        return "The other party hasn't proposed a new date. Propose one yourself."
    return None


def _money_back(case: DealCase) -> str | None:
    deal = case.deal
    if deal.refund_requested_at is not None:
        return "A refund of this deal was already requested. It can be requested only once."
    # Money-back within 7 days of the closing (rules/marketplace#money-back).
    if deal.closed_at is None or case.at - deal.closed_at > MONEY_BACK:
        return "The 7-day period for a refund request has ended. Contact support about a dispute."
    return None


STANDS: Final[Mapping[str, Guard]] = {
    "access.approve": _may_list,
    "offer.accepted": _first,
    "offer.reopen": _no_letter,
    "fasttrack.agree": _not_agreed,
    "apa.signed_by_all": _may_purchase,
    "escrow.open": _may_open_escrow,
    "funding.confirm": _may_confirm_funding,
    "escrow.funded": _funded,
    "deal.close": _is_over,
    "cancel.agree": _other_proposed_end,
    "exclusivity.agree": _other_proposed_date,
    "refund.request": _money_back,
}


def _equals_agreement(case: DealCase) -> str | None:
    given, deal = case.given, case.deal
    # Escrow holds what the agreement says, to the cent (rules/marketplace#escrow).
    if (given.amount, given.currency) != (deal.price, deal.currency):
        return "The escrow's amount and currency don't match the purchase agreement. Correct them at the escrow provider."
    return None


def _is_item_due(case: DealCase) -> str | None:
    found = item_of(items(case.deal.diligence), case.given.item)
    if found is None:
        return "The due diligence has no item with this id. Reload the deal for its items."
    return (
        "This item is already resolved. Reload the deal for the open items."
        if found["resolvedAt"]
        else None
    )


def _is_item_to_deliver(case: DealCase) -> str | None:
    found = item_of(items(case.deal.transfer), case.given.item)
    if found is None:
        return "The handover checklist has no item with this id. Reload the deal for its items."
    return (
        "The buyer already accepted this item. No further action is needed."
        if found["verdict"] == "accepted"
        else None
    )


def _is_item_delivered(case: DealCase) -> str | None:
    found, given = item_of(items(case.deal.transfer), case.given.item), case.given
    if found is None:
        return "The handover checklist has no item with this id. Reload the deal for its items."
    if found["deliveredAt"] is None:
        return "The seller hasn't delivered this item yet. Wait for the delivery."
    if found["verdict"] == "accepted":
        return "You already accepted this item. No further action is needed."
    if given.verdict not in VERDICTS:
        return "The verdict is invalid. Send `accepted` or `rejected`."
    return (
        "A rejection requires a reason. Send `reason`."
        if given.verdict == "rejected" and not given.reason
        else None
    )


def _is_date_near(case: DealCase) -> str | None:
    until, now = case.given.until, case.deal.exclusivity_until
    if until is None or now is None or until <= now:
        return "The proposed date isn't later than the current one. Propose a later date."
    # Nobody is bound for longer than 60 days ahead (rules/marketplace#timers).
    return (
        "The proposed date is too late. Propose a date within 60 days."
        if until - case.at > LONGEST_EXCLUSIVITY
        else None
    )


def _is_refund_reasoned(case: DealCase) -> str | None:
    given = case.given
    if given.reason not in REFUND_REASONS:
        return f"The reason is invalid. Send one of {', '.join(REFUND_REASONS)}."
    known = {one["id"] for one in items(case.deal.transfer)}
    if not given.items or not set(given.items) <= known:
        return "The returned items are missing. Send the ids of the items you return."
    return None


def _is_all_returned(case: DealCase) -> str | None:
    # The reversed list is complete before the money goes back (rules/marketplace#money-back).
    if set(items(case.deal.returns)) <= set(case.given.items):
        return None
    return "Some returned items are missing. Send the id of every item you received back."


def _is_all_back(case: DealCase) -> str | None:
    given = case.given
    if given.escrow_returned and given.assets_returned:
        return None
    return "The return isn't confirmed. Send `escrowReturned: true` and `assetsReturned: true`."


def _is_released(case: DealCase) -> str | None:
    released = case.given.escrow_released
    return None if released else "The release isn't confirmed. Send `escrowReleased: true`."


SAYS: Final[Mapping[str, Guard]] = {
    "escrow.open": _equals_agreement,
    "escrow.funded": _is_funding_shown,
    "diligence.resolve": _is_item_due,
    "transfer.deliver": _is_item_to_deliver,
    "transfer.confirm": _is_item_delivered,
    "exclusivity.propose": _is_date_near,
    "refund.request": _is_refund_reasoned,
    "refund.accept": _is_all_returned,
    "dispute.refund": _is_all_back,
    "dispute.release": _is_released,
}

WANTS: Final[Mapping[str, tuple[str, ...]]] = {
    "access.decline": ("reason",),
    "escrow.open": ("escrow_id", "amount", "currency"),
    "diligence.resolve": ("item",),
    "transfer.deliver": ("item",),
    "transfer.confirm": ("item", "verdict"),
    "exclusivity.propose": ("until",),
    "dispute.open": ("reason", "evidence"),
    "refund.request": ("reason", "items"),
}
"""What has to be given with a move, whatever the stage."""
REASONED: Final = {
    "withdraw": (Stage.LOI_SIGNED, Stage.DUE_DILIGENCE),
    "decline": (Stage.UNDER_OFFER, Stage.LOI_SIGNED, Stage.DUE_DILIGENCE),
}
"""The stages that nobody leaves without saying why."""


def wanted(case: DealCase, event: str) -> list[str]:
    """Name the fields that a move wants and that were not given."""
    names = list(WANTS.get(event, ()))
    # What an operator does has a reason (rules/operators#acts).
    if case.deal.stage in REASONED.get(event, ()) or case.actor == OPERATOR:
        names.append("reason")
    return [name for name in dict.fromkeys(names) if not getattr(case.given, name)]
