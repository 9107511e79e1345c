"""The shapes of what parties send about deals."""

from datetime import date, datetime
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from tolsey.actors.listing.deals.messages import DealFields, OfferTerms
from tolsey.actors.listing.deals.moves import DealMoveName
from tolsey.http.selling.bodies import PositiveAmount
from tolsey.http.web.api_model import ApiModel, Identifier, Whole
from tolsey.http.web.paging import PageQuery
from tolsey.storage.records.selling.deals import DealStage

LARGEST_MONTHS = 120


def _text(longest: int) -> Any:
    return StringConstraints(strip_whitespace=True, min_length=1, max_length=longest)


Words = Annotated[str, _text(2000)]
Short = Annotated[str, _text(200)]
ItemId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,40}$")]
Contingencies = Annotated[tuple[Short, ...], Field(max_length=20)]


class AccessRequest(ApiModel):
    """Who asks to see more, and what they say to the seller."""

    organization_id: Identifier
    message: Words | None = None


class TransferVerdict(ApiModel):
    """What a buyer says of an item that was handed over; a rejection needs its reason."""

    verdict: Literal["accepted", "rejected"]
    reason: Words | None = None

    def fields(self, item: str) -> DealFields:
        """Say it in the service's own words."""
        return DealFields(item=item, verdict=self.verdict, reason=self.reason)


class DealMove(ApiModel):
    """A move, the stage that whoever sends it believes the deal to be at, and what the move wants."""

    event: DealMoveName
    expected_stage: DealStage
    reason: Words | None = None
    evidence: Words | None = None
    item: ItemId | None = None
    items: Annotated[tuple[ItemId, ...], Field(max_length=200)] = ()
    verdict: Literal["accepted", "rejected"] | None = None
    until: AwareDatetime | None = None
    escrow_id: Short | None = None
    amount: PositiveAmount | None = None
    escrow_returned: bool = False
    escrow_released: bool = False
    assets_returned: bool = False

    def fields(self) -> DealFields:
        """Say it in the service's own words."""
        return DealFields(
            reason=self.reason,
            evidence=self.evidence,
            item=self.item,
            items=self.items,
            verdict=self.verdict,
            until=self.until,
            escrow_id=self.escrow_id,
            amount=self.amount.amount if self.amount else None,
            currency=self.amount.currency if self.amount else None,
            escrow_returned=self.escrow_returned,
            escrow_released=self.escrow_released,
            assets_returned=self.assets_returned,
        )


class SellerFinancing(ApiModel):
    """What the seller lends the buyer: `rate` is percent a year."""

    down_payment: Annotated[Whole, Field(ge=0)]
    months: Annotated[Whole, Field(ge=1, le=LARGEST_MONTHS)]
    rate: Annotated[float, Field(ge=0, le=100)]


class Earnout(ApiModel):
    """What is paid later, by a metric, up to a cap in minor units."""

    metric: Short
    cap: Annotated[Whole, Field(gt=0)]
    months: Annotated[Whole, Field(ge=1, le=LARGEST_MONTHS)]


class NewOffer(ApiModel):
    """What a party would agree to; it is valid for 72 hours unless it says until when."""

    amount: PositiveAmount
    type: Literal["cash", "seller_financing", "earnout", "mixed"] = "cash"
    seller_financing: SellerFinancing | None = None
    earnout: Earnout | None = None
    inventory: Literal["included", "at_cost"] = "included"
    contingencies: Contingencies = ()
    closing_by: date | None = None
    proof_of_funds: Words | None = None
    message: Words | None = None
    valid_until: AwareDatetime | None = None

    @model_validator(mode="after")
    def _terms_of_its_type(self) -> Self:
        wants = {
            "seller_financing": self.type in ("seller_financing", "mixed"),
            "earnout": self.type in ("earnout", "mixed"),
        }
        for name, wanted in wants.items():
            given = getattr(self, name) is not None
            if given and not wanted:
                raise ValueError(f"an offer of the type {self.type} has no {name}")
            if wanted and not given and self.type != "mixed":
                raise ValueError(f"an offer of the type {self.type} needs {name}")
        financed = self.seller_financing
        if financed is not None and financed.down_payment > self.amount.amount:
            raise ValueError("downPayment must not exceed amount")
        return self

    def offer_terms(self) -> OfferTerms:
        """Say it in the service's own words."""
        terms = {
            name: one.model_dump(mode="json", by_alias=True)
            for name, one in (
                ("sellerFinancing", self.seller_financing),
                ("earnout", self.earnout),
            )
            if one is not None
        }
        until: datetime | None = self.valid_until
        return OfferTerms(
            amount=self.amount.amount,
            currency=self.amount.currency,
            type=self.type,
            terms=orjson.dumps(terms).decode(),
            inventory=self.inventory,
            contingencies=orjson.dumps(self.contingencies).decode(),
            closing_by=self.closing_by,
            proof_of_funds=self.proof_of_funds,
            message=self.message,
            valid_until=until,
        )


class DealQuery(PageQuery):
    """Which deals to list: of one organization, or of all of the caller's."""

    organization_id: Identifier | None = None
