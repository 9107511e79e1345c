"""The shapes of what sellers send about a listing."""

import re
from datetime import date
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from tolsey.http.web.api_model import ApiModel, Identifier, Whole
from tolsey.storage.records.selling.listing import ListingFields, Visibility

HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{1,62}")
LARGEST_AMOUNT = 10**15
HOURS_OF_A_WEEK = 168


def _host(text: str) -> str:
    """Keep the host of a pasted address, in its ASCII spelling."""
    bare = re.sub(r"^https?://", "", text.strip().lower()).split("/", 1)[0].rstrip(".")
    try:
        host = bare.encode("idna").decode()
    except UnicodeError as error:
        raise ValueError("must be a domain") from error
    if not HOST.fullmatch(host):
        raise ValueError("must be a domain")
    return host


def _upper(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


def _text(longest: int) -> Any:
    return StringConstraints(strip_whitespace=True, min_length=1, max_length=longest)


Currency = Annotated[str, BeforeValidator(_upper), StringConstraints(pattern=r"^[A-Z]{3}$")]
Country = Annotated[str, BeforeValidator(_upper), StringConstraints(pattern=r"^[A-Z]{2}$")]
Title = Annotated[str, _text(140)]
Short = Annotated[str, _text(80)]
Long = Annotated[str, _text(4000)]
Asset = Annotated[str, _text(200)]
Assets = Annotated[tuple[Asset, ...], Field(max_length=50)]
DocumentKind = Literal[
    "profit_and_loss",
    "tax_return",
    "bank_statement",
    "contract",
    "traffic",
    "advertising",
    "inventory",
    "incorporation",
    "other",
]
"""What a file of a data room is about."""
Domain = Annotated[str, StringConstraints(max_length=260), AfterValidator(_host)]


class PositiveAmount(ApiModel):
    """An amount in minor units of its currency."""

    amount: Annotated[Whole, Field(gt=0, le=LARGEST_AMOUNT)]
    currency: Currency


class Reported(ApiModel):
    """An amount that a seller reports; a profit may be a loss."""

    amount: Annotated[Whole, Field(ge=-LARGEST_AMOUNT, le=LARGEST_AMOUNT)]
    currency: Currency


class SelfReported(ApiModel):
    """Numbers that nobody but the seller stands behind."""

    ttm_revenue: Reported | None = None
    ttm_profit: Reported | None = None
    hours_per_week: Annotated[float, Field(ge=0, le=HOURS_OF_A_WEEK)] | None = None
    headcount: Annotated[Whole, Field(ge=0, le=1_000_000)] | None = None


class ShownMetrics(ApiModel):
    """How each verified metric is shown: as it is, as a range, or not at all.

    `revenue30d` goes for what is annualised from it, `mrr` for the recurring revenue of a year.
    """

    revenue30d: Annotated[Visibility, Field(alias="revenue30d")] = Visibility.EXACT
    mrr: Visibility = Visibility.EXACT
    subscribers: Visibility = Visibility.EXACT


class PrivateDetails(ApiModel):
    """What a buyer is shown after the NDA, and nobody before."""

    business_name: Short | None = None
    url: Annotated[str, _text(300)] | None = None
    profit_and_loss: Long | None = None
    team: Long | None = None
    ad_accounts: Long | None = None
    suppliers: Long | None = None
    notes: Long | None = None


def _without_defaults(schema: dict[str, Any]) -> None:
    """Take the defaults out of a description: what is not given stays as it is."""
    for field in schema["properties"].values():
        field.pop("default", None)


class ListingChanges(ApiModel):
    """What a seller may say about a business; what is not given stays as it is."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)

    title: Title = ""
    teaser: Long | None = None
    anonymous: bool = False
    category: Short | None = None
    business_model: Short | None = None
    founded_at: date | None = None
    country: Country | None = None
    asking_price: PositiveAmount | None = None
    min_offer: PositiveAmount | None = None
    reason_for_sale: Long | None = None
    included_assets: Assets = ()
    excluded_assets: Assets = ()
    domain: Domain | None = None
    self_reported: SelfReported = SelfReported()
    auto_approve_access: bool = False
    financing_offered: bool = False
    visibility: ShownMetrics = ShownMetrics()
    private: PrivateDetails = PrivateDetails()
    required_documents: Annotated[tuple[DocumentKind, ...], Field(max_length=20)] = ()

    @model_validator(mode="after")
    def _one_currency(self) -> Self:
        if self.asking_price and self.min_offer:
            if self.asking_price.currency != self.min_offer.currency:
                raise ValueError("must be in the same currency as askingPrice")
            if self.asking_price.amount < self.min_offer.amount:
                raise ValueError("must not exceed askingPrice")
        return self

    def fields(self) -> ListingFields:
        """Say it in the service's own words."""
        price, offer = self.asking_price, self.min_offer
        return ListingFields(
            title=self.title,
            teaser=self.teaser,
            anonymous=self.anonymous,
            category=self.category,
            business_model=self.business_model,
            founded_at=self.founded_at,
            country=self.country,
            asking_price=price.amount if price else None,
            currency=price.currency if price else None,
            min_offer=offer.amount if offer else None,
            reason_for_sale=self.reason_for_sale,
            included_assets=_json(self.included_assets),
            excluded_assets=_json(self.excluded_assets),
            domain=self.domain,
            self_reported=_json(self.self_reported.model_dump(exclude_none=True)),
            auto_approve_access=self.auto_approve_access,
            financing_offered=self.financing_offered,
            visibility=_json(self.visibility.model_dump(mode="json")),
            private=_json(self.private.model_dump(exclude_none=True)),
            required_documents=_json(sorted(set(self.required_documents))),
        )

    def given(self) -> tuple[str, ...]:
        """Name the fields that were given."""
        names = set(self.model_fields_set) & set(ListingFields.__dataclass_fields__)
        if "asking_price" in names:
            names.add("currency")
        return tuple(sorted(names))


class NewListing(ListingChanges):
    """A listing to be made."""

    organization_id: Identifier
    store_id: Identifier | None = None
    title: Title


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
