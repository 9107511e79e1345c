"""What a launch writes into a shop where nobody wrote anything yet: product copy, pages, policies.

They are drafts in plain words, filled from the merchant's form, for them to review; what the form does not say is left
out, but returns within a month, which are proposed (rules/launch#executors). A language model may put them in the voice of
the brand (`drafting`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final, TypeAlias

Spec = Mapping[str, Any]

RETURN_DAYS: Final = 30
RETURNS: Final = (
    f"You can send an item back within {RETURN_DAYS} days after it came, unused and in its packaging.",
    "Tell us first, and we will say where to send it. We pay back what you paid for it once it is here.",
    "An item that came damaged or is not what you ordered is replaced or paid back at our cost.",
)
NOTICE_COUNTRIES: Final = frozenset({"AT", "BE", "CH", "DE", "ES", "FR", "IT", "LI", "LU", "PT"})
"""Where a shop names who runs it in a notice of its own (Directive 2000/31/EC, article 5, and the like)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """A part of a text: plain paragraphs, under a heading where it has one."""

    heading: str | None
    paragraphs: tuple[str, ...]


Text: TypeAlias = tuple[TextPart, ...]


def html(text: Text) -> str:
    """Write a text as the shop shows it; a part without words is left out, heading and all."""
    return "".join(
        (f"<h2>{escape(one.heading)}</h2>" if one.heading else "")
        + "".join(f"<p>{escape(said)}</p>" for said in one.paragraphs)
        for one in text
        if one.paragraphs
    )


def facts(spec: Spec) -> dict[str, Any]:
    """Say what is told of a shop to whoever writes its texts."""
    names = ("businessName", "country", "industry", "description", "tone")
    return {name: spec[name] for name in names if spec.get(name)}


def _part(heading: str | None, *paragraphs: str | None) -> TextPart:
    """Take what is told of some paragraphs."""
    return TextPart(heading=heading, paragraphs=tuple(one for one in paragraphs if one))


def product(spec: Spec, form: Spec) -> Text:
    """Describe a product: in the merchant's words where they gave some."""
    name, title = spec["businessName"], form["title"]
    if form.get("description"):
        return (_part(None, form["description"]),)
    kind = form.get("type") or spec.get("industry")
    of = f", part of our {kind}" if kind else ""
    return (_part(None, f"{title} from {name}{of}.", _variety(form)),)


def _variety(form: Spec) -> str | None:
    options = form.get("options") or ()
    if not options:
        return None
    told = " and ".join(f"{one['name'].lower()} ({', '.join(one['values'])})" for one in options)
    return f"Choose your {told}."


def collection(spec: Spec, title: str) -> Text:
    """Introduce a collection."""
    return (_part(None, f"{title} from {spec['businessName']}."),)


def page_titles(spec: Spec) -> dict[str, str]:
    """Name the core pages, by their handles."""
    return {
        "about": f"About {spec['businessName']}",
        "contact": "Contact",
        "faq": "Frequently asked questions",
        "shipping-returns": "Shipping and returns",
    }


def pages(spec: Spec, kit: Spec) -> dict[str, Text]:
    """Write the core pages, by their handles."""
    name = spec["businessName"]
    about = _part(
        None,
        kit.get("tagline"),
        spec.get("description")
        or f"{name} is a shop for {spec.get('industry') or 'things we are glad to make'}.",
        "Questions are welcome. We answer each one ourselves.",
    )
    contact = _part(
        None,
        f"Write to us at {spec['contactEmail']}." if spec.get("contactEmail") else None,
        "Use the form below and we will get back to you.",
        _address(spec),
    )
    return {
        "about": (about,),
        "contact": (contact,),
        "faq": _questions(spec),
        "shipping-returns": (_part("Shipping", *_shipping(spec)), _part("Returns", *RETURNS)),
    }


def _questions(spec: Spec) -> Text:
    where, mail = _countries(spec), spec.get("contactEmail")
    reach = f"Write to {mail}." if mail else "Use the form on our contact page."
    return (
        _part("Where do you ship to?", f"We ship to {where}." if where else None),
        _part("What does shipping cost?", _rate(spec)),
        _part("Can I send something back?", *RETURNS),
        _part("How do I reach you?", reach),
    )


def _countries(spec: Spec) -> str | None:
    countries: Sequence[str] = (spec.get("shipping") or {}).get("countries") or ()
    return _and(countries)


def _and(names: Sequence[str]) -> str | None:
    if len(names) <= 1:
        return next(iter(names), None)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _rate(spec: Spec) -> str | None:
    form = spec.get("shipping") or {}
    if form.get("flatRate") is None:
        return None
    free = f" Orders from {form['freeFrom']} ship for free." if form.get("freeFrom") else ""
    return f"Shipping costs {form['flatRate']} for each order, in the currency of the shop.{free}"


def _shipping(spec: Spec) -> Iterable[str | None]:
    where = _countries(spec)
    return (f"We ship to {where}." if where else None, _rate(spec), "The checkout shows all costs.")


def _address(spec: Spec) -> str | None:
    form = spec.get("location") or {}
    lines = [form.get(name) for name in ("address1", "address2", "zip", "city")]
    told = ", ".join(one for one in lines if one)
    return f"{spec['businessName']}, {told}" if told else None


def policies(spec: Spec) -> dict[str, Text]:
    """Write the policies that a shop of this country needs, by their types."""
    name = spec["businessName"]
    reach = f"Write to {spec['contactEmail']}." if spec.get("contactEmail") else None
    told = {
        "REFUND_POLICY": (_part("Returns and refunds", *RETURNS, reach),),
        "PRIVACY_POLICY": _privacy(name, reach),
        "TERMS_OF_SERVICE": _terms(spec, name),
        "SHIPPING_POLICY": (_part("Shipping", *_shipping(spec)),),
        "CONTACT_INFORMATION": (_part(None, name, _address(spec), reach),),
    }
    if spec["country"] in NOTICE_COUNTRIES:
        told["LEGAL_NOTICE"] = (_part("Who runs this shop", name, _address(spec), reach),)
    return told


def _privacy(name: str, reach: str | None) -> Text:
    return (
        _part(
            "What we keep about you",
            f"{name} keeps what you give us when you order or write to us: your name, addresses, e-mail, phone number"
            " and what you bought. Payment details go to the payment provider and are not kept by us.",
        ),
        _part(
            "What we use it for",
            "We use it to carry out your order, to answer you, to keep the books that the law asks for, and, where you"
            " agreed to it, to write to you about our shop.",
        ),
        _part(
            "Who else sees it",
            "The platform that runs our shop, the payment provider and the carrier get what they need for their part.",
        ),
        _part(
            "Your rights",
            "You can ask what we keep about you, have it put right or erased, and take back an agreement at any time.",
            reach,
        ),
    )


def _terms(spec: Spec, name: str) -> Text:
    return (
        _part("Who you buy from", f"You buy from {name}.", _address(spec)),
        _part(
            "Orders and prices",
            "An order is an offer from you; it binds us once we confirm it. The price is the one shown at checkout, which"
            " also names shipping and taxes.",
        ),
        _part("Returns", *RETURNS),
        _part(
            "Law",
            "What the law of your country gives you as a buyer is not limited by these terms.",
        ),
    )


def seo(spec: Spec, title: str, body: str | None = None) -> dict[str, str]:
    """Write what search engines show: a title of up to 70 letters, and a description of up to 160."""
    name = spec["businessName"]
    about = body or spec.get("description") or spec.get("industry") or name
    return {
        "title": _cut(title if name in title else f"{title} | {name}", 70),
        "description": _cut(about if about != title else f"{title} from {name}.", 160),
    }


def _cut(text: str, most: int) -> str:
    """Cut a text at a word."""
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    return text[: most - 1].rsplit(" ", 1)[0].rstrip(",.;:") + "…"
