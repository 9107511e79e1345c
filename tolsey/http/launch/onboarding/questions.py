"""The questions before a launch, and the form that their answers make."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tolsey.http.layout.amounts import localized, plain
from tolsey.http.layout.catalogue import marked
from tolsey.http.layout.forms import Misfilled

PARTS: Final = ("price", "cost")
"""What a line of a product has after its name."""
Answers = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blank:
    """One field of a question; `name` is where it stands in the form of a launch."""

    name: str
    label: str
    hint: str = ""
    wanted: str = ""
    type: str = "text"
    required: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnboardingQuestion:
    """One question, with the fields that answer it."""

    id: str
    title: str
    why: str
    blanks: Sequence[Blank]


PRICE: Final = marked("An amount in the shop's currency, such as 19.90.")
QUESTIONS: Final[Sequence[OnboardingQuestion]] = (
    OnboardingQuestion(
        id="name",
        title=marked("What is the business called?"),
        why=marked("It stands on pages, policies and the brand kit."),
        blanks=(
            Blank(
                name="businessName",
                label=marked("Name"),
                wanted=marked("Give the business a name."),
                required=True,
            ),
        ),
    ),
    OnboardingQuestion(
        id="country",
        title=marked("Where is the business?"),
        why=marked("It decides the first market and which policies are drafted."),
        blanks=(
            Blank(
                name="country",
                label=marked("Country"),
                hint=marked("Two letters, such as US or DE."),
                wanted=marked("Give the country as two letters, such as US or DE."),
                required=True,
            ),
        ),
    ),
    OnboardingQuestion(
        id="goods",
        title=marked("What do you sell?"),
        why=marked("Texts are drafted from it; you approve them before anyone sees them."),
        blanks=(
            Blank(name="industry", label=marked("In a few words")),
            Blank(name="description", label=marked("In a few sentences"), type="textarea"),
            Blank(
                name="tone",
                label=marked("How should it sound?"),
                type="select",
                options={
                    "": marked("No wish"),
                    "warm": marked("Warm"),
                    "playful": marked("Playful"),
                    "plain": marked("Plain"),
                    "luxurious": marked("Luxurious"),
                },
            ),
        ),
    ),
    OnboardingQuestion(
        id="contact",
        title=marked("Where do customers write to?"),
        why=marked("The contact page and the policies name it."),
        blanks=(
            Blank(
                name="contactEmail",
                label=marked("E-mail address"),
                type="email",
                wanted=marked("Give an address such as hello@example.com."),
            ),
        ),
    ),
    OnboardingQuestion(
        id="location",
        title=marked("Where are orders sent from?"),
        why=marked("What is left out stays as the shop has it."),
        blanks=(
            Blank(name="location.name", label=marked("Name of the place")),
            Blank(name="location.address1", label=marked("Street and number")),
            Blank(name="location.zip", label=marked("Postal code")),
            Blank(name="location.city", label=marked("City")),
            Blank(name="location.provinceCode", label=marked("State or province, by its code")),
        ),
    ),
    OnboardingQuestion(
        id="shipping",
        title=marked("Where do you ship to, and for how much?"),
        why=marked("Markets, zones and rates are made from it, and prices come from you alone."),
        blanks=(
            Blank(
                name="shipping.countries",
                label=marked("Countries"),
                hint=marked("Two letters each, with commas between: US, CA, DE."),
                wanted=marked("Give countries as two letters each, such as US, CA, DE."),
            ),
            Blank(name="shipping.flatRate", label=marked("Rate"), hint=PRICE, wanted=PRICE),
            Blank(
                name="shipping.freeFrom",
                label=marked("Free from an order of"),
                hint=PRICE,
                wanted=PRICE,
            ),
        ),
    ),
    OnboardingQuestion(
        id="products",
        title=marked("Which products come first?"),
        why=marked("They are made as drafts, which you review."),
        blanks=(
            Blank(
                name="products",
                label=marked("Products"),
                type="textarea",
                hint=marked(
                    "One a line: name; price; what it costs you. The cost may be left out."
                ),
                wanted=marked("Write one a line, as in: Blanket; 120; 70"),
            ),
        ),
    ),
    OnboardingQuestion(
        id="pricing",
        title=marked("What do you want of prices?"),
        why=marked("They are compared with it, and never changed."),
        blanks=(
            Blank(
                name="pricing.marginPercent",
                label=marked("Margin in percent"),
                wanted=marked("Give a whole number from 0 to 99."),
            ),
            Blank(name="pricing.lowest", label=marked("Lowest price"), wanted=PRICE),
            Blank(name="pricing.highest", label=marked("Highest price"), wanted=PRICE),
        ),
    ),
)
NUMBERS: Final = {one.id: number for number, one in enumerate(QUESTIONS, 1)}


PRICES: Final = tuple(
    blank.name for one in QUESTIONS for blank in one.blanks if blank.wanted == PRICE
)


def form_of(answers: Answers) -> dict[str, Any]:
    """Make the form of a launch of what was answered; raises Misfilled where a product cannot be read."""
    form: dict[str, Any] = {}
    for name, text in answers.items():
        if not text or name == "products":
            continue
        part, dot, inner = name.partition(".")
        place, key = (form.setdefault(part, {}), inner) if dot else (form, name)
        place[key] = READINGS.get(name, str)(text)
    # Without countries there is nothing to ship to, whatever it would cost.
    if "countries" not in form.get("shipping", {}):
        form.pop("shipping", None)
    form["products"] = [
        _product(line) for line in answers.get("products", "").splitlines() if line.strip()
    ]
    return form


def _codes(text: str) -> list[str]:
    return [one.strip().upper() for one in text.split(",") if one.strip()]


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() else text


def _price(text: str) -> str:
    return plain(text) or text


READINGS: Final[Mapping[str, Callable[[str], Any]]] = {
    **dict.fromkeys(PRICES, _price),
    "country": str.upper,
    "shipping.countries": _codes,
    "pricing.marginPercent": _number,
}
"""What is not taken as it was typed."""


def _product(line: str) -> dict[str, str]:
    title, *rest = (part.strip() for part in line.split(";"))
    if not 1 <= len(rest) <= len(PARTS):
        raise Misfilled({"products": ""})
    named = dict(zip(PARTS, rest, strict=False))
    return {"title": title, **{name: _price(value) for name, value in named.items() if value}}


def answers_of(spec: Mapping[str, Any]) -> dict[str, str]:
    """Write a launch's form as it would have been typed."""
    found = dict[str, str]()
    for name, value in spec.items():
        if name == "products":
            lines = (
                [one["title"], *(localized(one[part]) for part in PARTS if one.get(part))]
                for one in value
            )
            found[name] = "\n".join("; ".join(line) for line in lines)
        elif isinstance(value, dict):
            parts = ((f"{name}.{inner}", one) for inner, one in value.items())
            found |= {
                key: ", ".join(one) if isinstance(one, list) else str(one) for key, one in parts
            }
            found |= {key: localized(found[key]) for key in PRICES if key in found}
        else:
            found[name] = str(value)
    return found
