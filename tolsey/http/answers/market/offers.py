"""Offers, and answers to them that agents prepared, as the parties of a deal see them."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Self, TypeVar

import orjson

from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.http.answers.money.credits import MoneyAnswer
from tolsey.storage.records.selling.deals import DealOffer, OfferDraft

Shape = TypeVar("Shape", bound=ApiAnswer)


class SellerFinancingAnswer(ApiAnswer):
    """What the seller lends the buyer: `rate` is percent a year."""

    down_payment: int
    months: int
    rate: float


class EarnoutAnswer(ApiAnswer):
    """What is paid later, by a metric, up to a cap in minor units."""

    metric: str
    cap: int
    months: int


class OfferAnswer(ApiAnswer):
    """An offer, with what the caller may do with it: `side` is whose it is."""

    id: str
    deal_id: str
    parent_id: str | None
    side: str
    status: str
    amount: MoneyAnswer
    type: str
    seller_financing: SellerFinancingAnswer | None
    earnout: EarnoutAnswer | None
    inventory: str
    contingencies: list[str]
    closing_by: date | None
    proof_of_funds: str | None
    message: str | None
    valid_until: Timestamp
    made_at: Timestamp
    ended_at: Timestamp | None
    allowed: list[str]

    @classmethod
    def of(cls, offer: DealOffer, allowed: Sequence[str]) -> Self:
        """Show an offer."""
        terms = orjson.loads(offer.terms)
        return cls.read(
            offer,
            side=offer.side.value,
            status=offer.status.value,
            amount=MoneyAnswer(amount=offer.amount, currency=offer.currency),
            seller_financing=_shaped(SellerFinancingAnswer, terms.get("sellerFinancing")),
            earnout=_shaped(EarnoutAnswer, terms.get("earnout")),
            contingencies=orjson.loads(offer.contingencies),
            allowed=list(allowed),
        )


def _shaped(shape: type[Shape], kept: Mapping[str, Any] | None) -> Shape | None:
    """Show what is kept by the API's names; None where there is none."""
    return None if kept is None else shape.model_validate(kept, by_alias=True, by_name=False)


class OfferTermsAnswer(ApiAnswer):
    """Terms that nobody has offered yet; they can be sent as a counter-offer as they are."""

    amount: MoneyAnswer
    type: str
    seller_financing: SellerFinancingAnswer | None = None
    earnout: EarnoutAnswer | None = None
    inventory: str
    contingencies: list[str]
    closing_by: date | None = None
    message: str | None = None
    proof_of_funds: str | None = None
    valid_until: Timestamp | None = None


class OfferDraftAnswer(ApiAnswer):
    """An answer to an offer that an agent prepared: `reply` says which, `note` why. The other party sees none of it."""

    offer_id: str
    deal_id: str
    side: str
    reply: str
    counter: OfferTermsAnswer | None
    note: str | None
    drafted_at: Timestamp

    @classmethod
    def of(cls, draft: OfferDraft) -> Self:
        """Show what was prepared."""
        counter = orjson.loads(draft.counter) if draft.counter else None
        return cls.read(draft, side=draft.side.value, counter=_shaped(OfferTermsAnswer, counter))
