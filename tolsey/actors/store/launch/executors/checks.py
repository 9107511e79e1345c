"""The 24 checks of a store before it opens, each of what was read of the shop (rules/launch#checks-before-opening)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

Verdict = Literal["green", "red", "unknown"]
Judged = tuple[Verdict, str]

PAID_PLANS: Final = frozenset({"Basic", "Grow", "Advanced", "Plus"})
PLACEHOLDER: Final = re.compile(r"lorem ipsum|\bTODO\b|your text here|\[[a-z ]+\]", re.IGNORECASE)
NOT_ASKED: Final[Judged] = (
    "unknown",
    "The app lacks the scope to read this. Add the scope to the app.",
)
UNSEEN: Final[Judged] = (
    "unknown",
    (
        "The storefront is password-protected, and the form has no password. Enter the password in"
        " the form."
    ),
)
NOT_LET_IN: Final[Judged] = (
    "unknown",
    (
        "The password in the form doesn't open the storefront. Enter the one from Online Store >"
        " Preferences."
    ),
)
TAX_GONE: Final = (
    "Domestic orders no longer include tax, although they did when you confirmed the taxes."
    " Check Settings > Taxes and duties."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was read of a shop; what could not be is None.

    `orders` are calculated orders by country, `pages` what the storefront answered by path; it `has_password` if the
    merchant told one. The shop `was_taxed` when a person confirmed its taxes if an order at home carried some then.
    """

    state: Mapping[str, Any]
    products: Sequence[Mapping[str, Any]] | None
    menus: Sequence[Mapping[str, Any]] | None
    texts: Sequence[str] | None
    favicon: bool | None
    orders: Mapping[str, Mapping[str, Any]]
    home: str | None
    pages: Mapping[str, int | None]
    has_password: bool
    consent_missing: Sequence[str] | None
    is_paid_elsewhere: bool
    was_taxed: bool


def judged(seen: Seen) -> dict[str, Judged]:
    """Make every check, in the order of the playbook."""
    return {name: check(seen) for name, check in CHECKS.items()}


def _plan(seen: Seen) -> Judged:
    plan = seen.state["shop"]["plan"]
    is_paid = not plan["partnerDevelopment"] and plan["publicDisplayName"] in PAID_PLANS
    return _so(is_paid, "The shop has no paid Shopify plan. Choose one under Settings > Plan.")


def _domain(seen: Seen) -> Judged:
    host = seen.state["shop"]["primaryDomain"]["host"]
    return _so(
        not host.endswith(".myshopify.com"),
        "The shop has no custom primary domain. Connect your own domain and make it primary.",
    )


def _tls(seen: Seen) -> Judged:
    return _so(
        seen.state["shop"]["primaryDomain"]["sslEnabled"],
        "The primary domain has no TLS certificate yet. Shopify issues it within a day; check"
        " again later.",
    )


def _payments(seen: Seen) -> Judged:
    account = seen.state.get("shopifyPaymentsAccount")
    if account is not None and account["activated"]:
        return "green", ""
    # A person said that another provider takes the payments, which nothing here can read.
    if account is None or seen.is_paid_elsewhere:
        return (
            "unknown",
            "An active payment provider can't be detected through the API. Place a test order to check it.",
        )
    return "red", "No payment provider is active. Activate one under Settings > Payments."


def _tax(seen: Seen) -> Judged:
    order = seen.orders.get(seen.home or "")
    if order is None:
        return (
            "unknown",
            "A domestic order couldn't be calculated. Check the products and the shipping rates.",
        )
    if order["taxLines"]:
        return "green", ""
    # Who is below the threshold of registration charges none, and a person confirmed the taxes so: only what
    # was charged then and is no longer is wrong (rules/launch#checks-before-opening).
    if not seen.was_taxed:
        return (
            "unknown",
            "Domestic orders include no tax, as when you confirmed the taxes. No action is needed.",
        )
    return "red", TAX_GONE


def _rates(seen: Seen) -> Judged:
    if not seen.orders:
        return "unknown", "No order could be calculated. Publish a product and set a shipping rate."
    bare = sorted(
        country for country, one in seen.orders.items() if not one["availableShippingRates"]
    )
    return _so(not bare, f"No shipping rate for {', '.join(bare)}: set one, or do not ship there.")


def _policy(kind: str) -> Callable[[Seen], Judged]:
    def check(seen: Seen) -> Judged:
        policies = seen.state["shop"].get("shopPolicies")
        if policies is None:
            return NOT_ASKED
        named = kind.replace("_", " ").lower()
        has = any(one["type"] == kind and one["body"].strip() for one in policies)
        return _so(has, f"Write the {named} under Settings > Policies.")

    return check


def _published(seen: Seen) -> Judged:
    counted = seen.state.get("published")
    if counted is None:
        return NOT_ASKED
    return _so(counted["count"] > 0, "No product is for sale. Publish at least one.")


def _of_products(
    is_bad: Callable[[Mapping[str, Any]], bool], advice: str
) -> Callable[[Seen], Judged]:
    """Check each product that is on sale, and name those that are not as they should be."""

    def check(seen: Seen) -> Judged:
        if seen.products is None:
            return NOT_ASKED
        bad = [one["title"] for one in seen.products if is_bad(one)]
        return _so(not bad, f"{advice}: {', '.join(bad[:5])}.")

    return check


def _variants(product: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = product["variants"]["nodes"]
    return found


def _costs_nothing(product: Mapping[str, Any]) -> bool:
    return any(Decimal(one["price"]) == 0 for one in _variants(product))


def _is_sold_out(product: Mapping[str, Any]) -> bool:
    return all(
        one["inventoryItem"]["tracked"]
        and one["inventoryPolicy"] != "CONTINUE"
        and (one["inventoryQuantity"] or 0) <= 0
        for one in _variants(product)
    )


def _is_unnamed(product: Mapping[str, Any]) -> bool:
    return not (product["seo"]["title"] and product["seo"]["description"])


def _menu(handle: str, kind: str | None, advice: str) -> Callable[[Seen], Judged]:
    def check(seen: Seen) -> Judged:
        if seen.menus is None:
            return NOT_ASKED
        menu = next((one for one in seen.menus if one["handle"] == handle), None)
        items = [] if menu is None else menu["items"]
        return _so(any(kind is None or one["type"] == kind for one in items), advice)

    return check


def _theme(seen: Seen) -> Judged:
    themes = seen.state.get("themes")
    if themes is None:
        return NOT_ASKED
    is_ready = any(not one["processing"] for one in themes["nodes"])
    return _so(
        is_ready,
        "No theme is published, or Shopify is still processing it. Publish a theme, or try"
        " again later.",
    )


def _favicon(seen: Seen) -> Judged:
    if seen.favicon is None:
        return (
            "unknown",
            "The published theme's settings don't show whether it has a favicon. Check it in the theme editor.",
        )
    return _so(seen.favicon, "The theme has no favicon. Choose one in the theme settings.")


def _placeholders(seen: Seen) -> Judged:
    if seen.texts is None:
        return NOT_ASKED
    found = sum(PLACEHOLDER.search(one) is not None for one in seen.texts)
    return _so(not found, f"{found} pages or products still say what a draft says.")


def _links(seen: Seen) -> Judged:
    if not seen.pages:
        return NOT_LET_IN if seen.has_password else UNSEEN
    bad = [path for path, status in seen.pages.items() if status is None or status >= 400]  # noqa: PLR2004 - RFC 9110
    return _so(not bad, f"These pages do not answer: {', '.join(bad)}.")


def _contact(seen: Seen) -> Judged:
    email = seen.state["shop"]["contactEmail"]
    return _so(bool(email), "The shop has no contact email. Set one under Settings > General.")


def _consent(seen: Seen) -> Judged:
    if seen.consent_missing is None:
        return NOT_ASKED
    return _so(
        not seen.consent_missing,
        f"Buyers of {', '.join(seen.consent_missing)} are not asked for consent: see Settings > Customer privacy.",
    )


def _so(is_green: bool, advice: str) -> Judged:
    return ("green", "") if is_green else ("red", advice)


CHECKS: Final[Mapping[str, Callable[[Seen], Judged]]] = {
    "plan.paid": _plan,
    "domain.primary": _domain,
    "domain.tls": _tls,
    "payments.active": _payments,
    "tax.lines_domestic": _tax,
    "shipping.rate_every_country": _rates,
    "policy.refund": _policy("REFUND_POLICY"),
    "policy.privacy": _policy("PRIVACY_POLICY"),
    "policy.terms": _policy("TERMS_OF_SERVICE"),
    "policy.shipping": _policy("SHIPPING_POLICY"),
    "policy.contact": _policy("CONTACT_INFORMATION"),
    "catalog.published_count": _published,
    "catalog.no_zero_price": _of_products(_costs_nothing, "These cost nothing"),
    "catalog.image_every_product": _of_products(
        lambda one: one["featuredMedia"] is None, "These have no picture"
    ),
    "catalog.stock_or_continue": _of_products(_is_sold_out, "Of these there is nothing to sell"),
    "menu.main_not_empty": _menu(
        "main-menu", None, "The main menu is empty. Add links to it under Content > Menus."
    ),
    "menu.footer_policies": _menu(
        "footer",
        "SHOP_POLICY",
        "The footer menu has no link to a store policy. Add the policies to it under"
        " Content > Menus.",
    ),
    "theme.main_ready": _theme,
    "theme.favicon": _favicon,
    "pages.no_placeholder_text": _placeholders,
    "seo.title_description": _of_products(_is_unnamed, "These have no texts for search engines"),
    "links.no_4xx_5xx": _links,
    "contact.email_set": _contact,
    "consent.policy_for_markets": _consent,
}


def red(found: Mapping[str, Judged]) -> Iterator[str]:
    """Say of each check that is red what to do."""
    for name, (verdict, advice) in found.items():
        if verdict == "red":
            yield f"{name}: {advice}"
