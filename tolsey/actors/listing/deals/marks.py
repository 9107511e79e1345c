"""What a move writes on a deal beside its stage: timestamps, lists, and who proposed what."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from tolsey.actors.listing import evidence
from tolsey.actors.listing.deals.cases import (
    LEADING,
    DealCase,
    Stage,
    changed,
    is_accepted,
    items,
)
from tolsey.actors.listing.machines import PROVIDER
from tolsey.storage.records.selling.deals import DealThread

Marks = Mapping[str, Any]

EXCLUSIVITY: Final = timedelta(days=30)
INSPECTION_DAYS: Final = 7
"""An inspection of the agreement is as long as the money can be asked back afterwards, or longer."""
DILIGENCE: Final = (
    ("revenue", "Verified revenue and its sources", True),
    ("accounts", "Accounts, contracts and suppliers", True),
    ("assets", "The assets that are sold, and who owns them", True),
    ("liabilities", "Debts, disputes and open orders", True),
)
WHOLE: Final = "The business"


def of(case: DealCase, event: str, to: Stage) -> Marks:
    """List the fields of the deal that a move changes; whoever gives a reason has it kept."""
    marks = MARKS.get(event)
    made = dict(marks(case)) if marks is not None else {}
    if case.given.reason and "refund_reason" not in made:
        made["reason"] = case.given.reason
    if to is Stage.CLOSED and case.deal.closed_at is None:
        made["closed_at"] = case.at
    deal = case.deal
    if (deal.stage in LEADING) != (to in LEADING):
        made["leads"] = _leads(deal, case.at, begins=to in LEADING)
    return made


def _leads(deal: DealThread, at: datetime, *, begins: bool) -> str:
    leads = items(deal.leads)
    if begins:
        return _written([*leads, [at.isoformat(), None]])
    return _written([*leads[:-1], [leads[-1][0], at.isoformat()]])


def _written(value: Any) -> str:
    return orjson.dumps(value).decode()


def _nda(case: DealCase) -> Marks:
    return {"nda_signed_at": case.at}


def _accepted(case: DealCase) -> Marks:
    offer = case.offer
    if offer is None:
        raise LookupError("an acceptance without an offer")
    # From here on the price is that of the offer, whatever is said later (rules/marketplace#offers).
    return {"accepted_offer_id": offer.id, "price": offer.amount, "currency": offer.currency}


def _reopened(case: DealCase) -> Marks:
    del case
    return {"accepted_offer_id": None, "price": None, "currency": None, "fast_track": "[]"}


def _letter(case: DealCase) -> Marks:
    until = case.given.until or case.at + EXCLUSIVITY
    return {"loi_signed_at": case.at, "exclusivity_until": until}


def _fast(case: DealCase) -> Marks:
    return {"fast_track": _written([*items(case.deal.fast_track), case.side])}


def _purchase(case: DealCase) -> Marks:
    terms = evidence.canonical(purchase_terms(case))
    return {
        "apa_signed_at": case.at,
        "apa_terms": terms.decode(),
        "apa_terms_sha256": evidence.sha256(terms),
    }


def purchase_terms(case: DealCase) -> dict[str, Any]:
    """Say what a purchase agreement freezes: the price, the assets, and the days of inspection."""
    listing, deal = case.state.listing, case.deal
    return {
        "price": {"amount": deal.price, "currency": deal.currency},
        "assets": orjson.loads(listing.included_assets) if listing else [],
        "inspectionDays": INSPECTION_DAYS,
    }


def _diligence(case: DealCase) -> Marks:
    del case
    made = [
        {"id": id, "title": title, "blocking": blocking, "resolvedAt": None}
        for id, title, blocking in DILIGENCE
    ]
    return {"diligence": _written(made)}


def _resolved(case: DealCase) -> Marks:
    at = case.at.isoformat()
    return {"diligence": changed(case.deal.diligence, case.given.item, resolvedAt=at)}


def _exclusivity_proposed(case: DealCase) -> Marks:
    return {
        "exclusivity_proposed_by": case.side,
        "exclusivity_proposed_until": case.given.until,
    }


def _exclusivity_agreed(case: DealCase) -> Marks:
    return {
        "exclusivity_until": case.deal.exclusivity_proposed_until,
        "exclusivity_proposed_by": None,
    }


def _cancel_proposed(case: DealCase) -> Marks:
    return {"cancel_proposed_by": case.side, "cancel_proposed_at": case.at}


def _escrow(case: DealCase) -> Marks:
    return {"escrow_id": case.given.escrow_id, "escrow_evidence": case.given.evidence}


def _confirmed(case: DealCase) -> Marks:
    return {"funding_confirmed_at": case.at}


def _funded(case: DealCase) -> Marks:
    deal, given = case.deal, case.given
    if case.actor == PROVIDER:
        made = {"escrow_event_id": given.evidence}
        if deal.stage is Stage.APA_SIGNED:
            return {**made, "escrow_funded_at": case.at}
        return {**made, **_opened(case)}
    shown = given.evidence or deal.escrow_evidence
    return {"escrow_funded_at": case.at, "escrow_evidence": shown}


def _opened(case: DealCase) -> Marks:
    """Open the list of what is handed over, if it is not open: the assets that the agreement froze."""
    deal = case.deal
    if items(deal.transfer):
        return {}
    terms = orjson.loads(deal.apa_terms or '{"assets": []}')
    made = [
        {
            "id": f"asset-{n}",
            "title": title,
            "deliveredAt": None,
            "verdict": None,
            "reason": None,
        }
        for n, title in enumerate(terms["assets"] or [WHOLE], 1)
    ]
    return {"transfer": _written(made)}


def _resumed(case: DealCase) -> Marks:
    """Let the handover go on, with the rest of the inspection that the dispute stopped."""
    deal, made = case.deal, dict(_opened(case))
    if deal.inspection_ends_at is not None:
        made["inspection_ends_at"] = deal.inspection_ends_at + (case.at - deal.entered_at)
    return made


def _delivered(case: DealCase) -> Marks:
    deal, given, at = case.deal, case.given, case.at
    transfer = changed(
        deal.transfer, given.item, deliveredAt=at.isoformat(), verdict=None, reason=None
    )
    made: dict[str, Any] = {"transfer": transfer}
    # The inspection begins when everything is delivered, and anew after what was delivered again.
    if all(one["deliveredAt"] for one in items(transfer)):
        days = orjson.loads(deal.apa_terms or "{}").get("inspectionDays", INSPECTION_DAYS)
        made["inspection_ends_at"] = at + timedelta(days=days)
    return made


def _judged(case: DealCase) -> Marks:
    deal, given = case.deal, case.given
    transfer = changed(deal.transfer, given.item, verdict=given.verdict, reason=given.reason)
    if is_accepted(replace(deal, transfer=transfer)):
        return {"transfer": transfer, "accepted_by_buyer_at": case.at}
    return {"transfer": transfer}


def _released(case: DealCase) -> Marks:
    return {"escrow_released_at": case.at}


def _closed(case: DealCase) -> Marks:
    return _released(case) if case.given.escrow_released else {}


def _asked_back(case: DealCase) -> Marks:
    given = case.given
    return {
        "refund_requested_at": case.at,
        "refund_reason": given.reason,
        "returns": _written(list(given.items)),
    }


def _escalated(case: DealCase) -> Marks:
    del case
    return {"escalated": True}


MARKS: Final[Mapping[str, Callable[[DealCase], Marks]]] = {
    "nda.signed_by_all": _nda,
    "offer.accepted": _accepted,
    "offer.reopen": _reopened,
    "loi.signed_by_all": _letter,
    "fasttrack.agree": _fast,
    "apa.signed_by_all": _purchase,
    "diligence.open": _diligence,
    "diligence.resolve": _resolved,
    "exclusivity.propose": _exclusivity_proposed,
    "exclusivity.agree": _exclusivity_agreed,
    "cancel.propose": _cancel_proposed,
    "escrow.open": _escrow,
    "funding.confirm": _confirmed,
    "escrow.funded": _funded,
    "transfer.start": _opened,
    "transfer.deliver": _delivered,
    "transfer.confirm": _judged,
    "deal.close": _closed,
    "dispute.resume": _resumed,
    "dispute.release": _released,
    "escrow.released": _released,
    "refund.request": _asked_back,
    "timer.72h": _escalated,
}
