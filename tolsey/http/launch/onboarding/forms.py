"""The onboarding form: what a merchant tells of the store that is to be launched."""

from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from tolsey.http.web.api_model import ApiModel, Email, Identifier, Name

Country = Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}$")]
Price = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,10}(\.[0-9]{1,4})?$")]
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Colour = Annotated[str, StringConstraints(pattern=r"^#[0-9A-Fa-f]{6}$")]
Font = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9 ]{1,60}$")]
Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]

Stock = Annotated[int, Field(ge=0, le=1_000_000)]
ImageUrl = Annotated[str, StringConstraints(pattern=r"^https://[^\s]+$", max_length=2_000)]
OldPath = Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9/_.~%-]{1,250}$")]

StorefrontPassword = Annotated[str, StringConstraints(min_length=1, max_length=100)]

MOST_COUNTRIES = 250
MOST_PRODUCTS = 100
MOST_OPTIONS = 3
MOST_VARIANTS = 20
STOREFRONT_KEY = (
    "What keeps buyers out until the store opens. It is kept sealed, lets the pre-launch check read the pages of"
    " the storefront, and is forgotten once the launch is done. Left out, the one that was told before stays."
)


class LocationForm(ApiModel):
    """Where orders are shipped from; what is left out stays as the shop has it."""

    name: Line | None = None
    address1: Line | None = None
    address2: Line | None = None
    city: Line | None = None
    zip: Line | None = None
    province_code: Line | None = None
    country_code: Country | None = None
    phone: Line | None = None


class ShippingForm(ApiModel):
    """Where orders are shipped to, at what rate in the shop's currency, and from which amount for nothing."""

    countries: Annotated[list[Country], Field(min_length=1, max_length=MOST_COUNTRIES)]
    flat_rate: Price | None = None
    free_from: Price | None = None


class OptionForm(ApiModel):
    """What a product can be chosen by, such as its size."""

    name: Line
    values: Annotated[list[Line], Field(min_length=1, max_length=MOST_VARIANTS)]


class VariantForm(ApiModel):
    """One form of a product: a value of each option, and what is another than of the product itself."""

    values: Annotated[list[Line], Field(min_length=1, max_length=MOST_OPTIONS)]
    price: Price | None = None
    cost: Price | None = None
    sku: Line | None = None
    stock: Stock | None = None


class ProductForm(ApiModel):
    """Something that is to be sold, at the merchant's price; `cost` is what it costs them.

    `old_path` is where it was found in the shop before: it leads to the product then.
    """

    title: Line
    price: Price
    cost: Price | None = None
    description: Sentence | None = None
    type: Line | None = None
    tags: Annotated[list[Line], Field(default_factory=list, max_length=50)]
    sku: Line | None = None
    stock: Stock | None = None
    image_url: ImageUrl | None = None
    old_path: OldPath | None = None
    options: Annotated[list[OptionForm], Field(default_factory=list, max_length=MOST_OPTIONS)]
    variants: Annotated[list[VariantForm], Field(default_factory=list, max_length=MOST_VARIANTS)]

    @model_validator(mode="after")
    def _each_variant_chooses(self) -> Self:
        """Hold every variant against the options: each names one value of each, and no two the same."""
        chosen = [tuple(one.values) for one in self.variants]
        if bool(self.options) != bool(self.variants) or len(set(chosen)) != len(chosen):
            raise ValueError("list each variant once; no two variants can have the same options")
        for values in chosen:
            if len(values) != len(self.options) or any(
                value not in option.values
                for value, option in zip(values, self.options, strict=True)
            ):
                raise ValueError(
                    "give each variant one value for each option, in the order of the options"
                )
        return self


class PricingForm(ApiModel):
    """What the merchant wants of prices: a margin in percent, and a range."""

    margin_percent: Annotated[int, Field(ge=0, le=99)] | None = None
    lowest: Price | None = None
    highest: Price | None = None


class OnboardingSpec(ApiModel):
    """What a merchant tells of the store that is to be launched."""

    business_name: Name
    country: Country
    industry: Line | None = None
    description: Sentence | None = None
    tone: Literal["warm", "playful", "plain", "luxurious"] | None = None
    contact_email: Email | None = None
    location: LocationForm | None = None
    shipping: ShippingForm | None = None
    products: Annotated[list[ProductForm], Field(default_factory=list, max_length=MOST_PRODUCTS)]
    pricing: PricingForm | None = None
    storefront_password: Annotated[
        StorefrontPassword | None, Field(exclude=True, repr=False, description=STOREFRONT_KEY)
    ] = None


class PaletteForm(ApiModel):
    """Colours that the merchant has already."""

    primary: Colour | None = None
    secondary: Colour | None = None
    accent: Colour | None = None
    background: Colour | None = None
    text: Colour | None = None


class FontsForm(ApiModel):
    """Fonts that the merchant has already."""

    heading: Font | None = None
    body: Font | None = None


class BrandKitForm(ApiModel):
    """What a merchant has of a brand kit; the rest is drafted."""

    palette: PaletteForm | None = None
    fonts: FontsForm | None = None
    voice: Sentence | None = None
    tagline: Line | None = None


class LaunchBody(ApiModel):
    """A launch that is to be begun."""

    store_id: Identifier
    spec: OnboardingSpec
    brand_kit: BrandKitForm = BrandKitForm()


class SpecBody(ApiModel):
    """What a merchant tells of the store now."""

    spec: OnboardingSpec


def pricing_of(spec: OnboardingSpec) -> list[dict[str, Any]]:
    """Compare each price with the margin and the range of the form; nothing is changed (rules/launch#executors)."""
    wanted = spec.pricing or PricingForm()
    return [_compared(one, wanted) for one in spec.products]


def _compared(product: ProductForm, wanted: PricingForm) -> dict[str, Any]:
    price = Decimal(product.price)
    margin = None
    if product.cost is not None and price:
        margin = round(float((price - Decimal(product.cost)) / price * 100), 1)
    verdict = "no_range"
    if wanted.lowest is not None and price < Decimal(wanted.lowest):
        verdict = "below_range"
    elif wanted.highest is not None and price > Decimal(wanted.highest):
        verdict = "above_range"
    elif wanted.lowest is not None or wanted.highest is not None:
        verdict = "in_range"
    is_short = (
        None if margin is None or wanted.margin_percent is None else margin < wanted.margin_percent
    )
    return {
        "title": product.title,
        "price": product.price,
        "marginPercent": margin,
        "isBelowMargin": is_short,
        "verdict": verdict,
    }
