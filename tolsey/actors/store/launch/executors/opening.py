"""The two looks at a whole store: before it opens, and once it is open."""

import json
import re
from collections.abc import Generator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from tolsey.actors.store.launch.executors import checks
from tolsey.actors.store.launch.executors.catalogue import ON_SALE
from tolsey.actors.store.launch.executors.growth import CONSENTING
from tolsey.actors.store.launch.executors.theme import READ_SETTINGS, SETTINGS
from tolsey.actors.store.launch.executors.work import (
    CountDeliveries,
    CountSales,
    Finished,
    LaunchWork,
    Question,
    ReadPages,
    ReadShop,
    Taken,
)
from tolsey.actors.store.launch.grants import covers
from tolsey.actors.store.launch.graph import MilestoneStop
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.storage.records.commerce.launches import SoldHour

Asked = Generator[Question, Any, Any]

READ_PRODUCTS: Final = """
query OnSale($query: String!, $after: String) {
  products(first: 50, query: $query, after: $after) {
    nodes {
      id title handle descriptionHtml
      featuredMedia { id }
      seo { title description }
      variants(first: 3) {
        nodes { id price inventoryPolicy inventoryQuantity inventoryItem { tracked } }
      }
    }
    pageInfo { hasNextPage endCursor }
  }
}
"""
READ_MENUS: Final = "query MenusToCheck { menus(first: 25) { nodes { handle items { type } } } }"
READ_PAGES: Final = "query PagesToCheck { pages(first: 50) { nodes { title body } } }"
READ_ZONES: Final = """
query Zones {
  deliveryProfiles(first: 3) {
    nodes {
      default
      profileLocationGroups { countriesInAnyZone { zone country { code { countryCode } } } }
    }
  }
}
"""
MOST_PAGES: Final = 5
"""So many pages of products are checked, of fifty each."""
MOST_ORDERS: Final = 50
LATELY: Final = timedelta(hours=1)
A_DAY: Final = timedelta(days=1)
BLOCKS: Final = {
    "policies": "read_legal_policies",
    "products": "read_products",
    "themes": "read_themes",
    "menus": "read_online_store_navigation",
    "payments": "read_shopify_payments_accounts",
}
"""The parts of the look that take a permission: a field that is refused may blank the whole answer."""
CANONICAL: Final = re.compile(
    r"<link[^>]+rel=[\"']canonical[\"'][^>]+href=[\"']https://([^/\"']+)", re.IGNORECASE
)


def _may(work: LaunchWork, scope: str) -> bool:
    return not work.scopes or covers(work.scopes, scope)


def preflight(work: LaunchWork) -> Taken:
    """Look at everything that buyers will meet; what is red fails, what could not be looked at does not."""
    blocks = {name: _may(work, scope) for name, scope in BLOCKS.items()}
    state = yield ReadShop(document=PLAYBOOK.documents["launch.preflight.state"], variables=blocks)
    products = (yield from _on_sale()) if blocks["products"] else None
    menus = (yield ReadShop(document=READ_MENUS)) if blocks["menus"] else None
    written = (yield ReadShop(document=READ_PAGES)) if _may(work, "read_content") else None
    home = work.results["foundation.audit"]["shop"]["country"]
    orders = yield from _orders(work, state, products or (), home)
    seen = checks.Seen(
        state=state,
        products=products,
        menus=None if menus is None else menus["menus"]["nodes"],
        texts=_texts(written, products),
        favicon=(yield from _favicon(state)),
        orders=orders,
        home=home,
        pages=(yield from _storefront(work, state)),
        has_password=work.storefront_password is not None,
        consent_missing=_consent_missing(work, state),
        is_paid_elsewhere="operations.payments" in work.decided,
        was_taxed=bool(work.tax_lines),
    )
    found = checks.judged(seen)
    wrong = list(checks.red(found))
    # One red check keeps the store from being opened (rules/launch#checks-before-opening).
    if wrong:
        detail = f"{len(wrong)} of {len(found)} checks are red. {' '.join(wrong)}"
        return MilestoneStop(kind="permanent", reason="preflight_red", detail=detail)
    verdicts = {name: verdict for name, (verdict, _) in found.items()}
    unknown = {name: why for name, (verdict, why) in found.items() if verdict == "unknown"}
    result = {"checks": verdicts, "unknown": unknown, "countries": sorted(orders)}
    report = {"green": len(found) - len(unknown), "unknown": sorted(unknown)}
    return Finished(result=result, facts={"launch.preflight_report": json.dumps(report)})


def _on_sale() -> Asked:
    """Read what is on sale, some pages of it."""
    found, after = list[Mapping[str, Any]](), None
    for _ in range(MOST_PAGES):
        asked = {"query": ON_SALE, "after": after}
        page = (yield ReadShop(document=READ_PRODUCTS, variables=asked))["products"]
        found += page["nodes"]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    return found


def _texts(written: Any, products: Sequence[Mapping[str, Any]] | None) -> Sequence[str] | None:
    if written is None or products is None:
        return None
    pages = (f"{one['title']} {one['body']}" for one in written["pages"]["nodes"])
    return [*pages, *(one["descriptionHtml"] for one in products)]


def _favicon(state: Mapping[str, Any]) -> Asked:
    """Look into the settings of the published theme for the mark of the shop."""
    themes = (state.get("themes") or {}).get("nodes") or ()
    if not themes:
        return None
    asked = {"id": themes[0]["id"], "names": [SETTINGS]}
    read = yield ReadShop(document=READ_SETTINGS, variables=asked)
    files = ((read["theme"] or {}).get("files") or {}).get("nodes") or ()
    text = next((one["body"].get("content") for one in files), None)
    return None if text is None else bool(re.search(r'"favicon"\s*:\s*"[^"]', text))


def _orders(
    work: LaunchWork, state: Mapping[str, Any], products: Sequence[Mapping[str, Any]], home: str
) -> Asked:
    """Calculate an order to each country that the shop ships to, one of each zone first."""
    variants = (one["id"] for product in products for one in product["variants"]["nodes"])
    variant = next(variants, None)
    if variant is None:
        return {}
    countries = yield from _countries(work, state["shop"]["shipsToCountries"], home)
    found = dict[str, Any]()
    for country in countries[:MOST_ORDERS]:
        order = {
            "lineItems": [{"variantId": variant, "quantity": 1}],
            "shippingAddress": _address(work, country, home),
        }
        document = PLAYBOOK.documents["launch.preflight"]
        asked = yield ReadShop(document=document, variables={"input": order})
        calculated = asked["draftOrderCalculate"]["calculatedDraftOrder"]
        # What cannot be calculated at all cannot be bought there.
        found[country] = calculated or {"availableShippingRates": [], "taxLines": []}
    return found


def _countries(work: LaunchWork, ships_to: Sequence[str], home: str) -> Asked:
    zones = dict[str, str]()
    if _may(work, "read_shipping"):
        profiles = (yield ReadShop(document=READ_ZONES))["deliveryProfiles"]["nodes"]
        for profile in profiles:
            for group in profile["profileLocationGroups"] if profile["default"] else ():
                for one in group["countriesInAnyZone"]:
                    zones.setdefault(one["zone"], one["country"]["code"]["countryCode"] or "")
    first = [home, *(country for country in zones.values() if country)]
    return [one for one in dict.fromkeys([*first, *ships_to]) if one in ships_to]


def _address(work: LaunchWork, country: str, home: str) -> dict[str, str]:
    if country != home:
        return {"countryCode": country}
    form = work.spec.get("location") or {}
    known = {
        name: form[name] for name in ("address1", "city", "zip", "provinceCode") if form.get(name)
    }
    return {**known, "countryCode": country}


def _storefront(work: LaunchWork, state: Mapping[str, Any]) -> Asked:
    """Look at the pages that buyers come by, unless a password keeps us out."""
    is_closed = state["onlineStore"]["passwordProtection"]["enabled"]
    password = work.storefront_password if is_closed else None
    if is_closed and password is None:
        return {}
    host = state["shop"]["primaryDomain"]["host"]
    paths = ("/", "/collections/all", "/pages/contact")
    pages = yield ReadPages(host=host, paths=paths, password=password)
    if any(page.asks_password for page in pages.values()):
        return {}
    return {path: page.status for path, page in pages.items()}


def _consent_missing(work: LaunchWork, state: Mapping[str, Any]) -> list[str]:
    asked = work.results["growth.analytics"].get("consent", ())
    ships_to = state["shop"]["shipsToCountries"]
    return sorted(one for one in ships_to if one in CONSENTING and one not in asked)


def verify(work: LaunchWork) -> Taken:
    """Look at the open store as a buyer does: its pages, their own address, and what it tells us."""
    state = yield ReadShop(document=PLAYBOOK.documents["launch.verify"])
    domain = state["shop"]["primaryDomain"]
    pages = yield ReadPages(host=domain["host"], paths=_paths(work))
    wrong = [
        f"{path} answers {page.status or 'nothing'}"
        for path, page in pages.items()
        if page.status != 200  # noqa: PLR2004 - RFC 9110
    ]
    canonical = CANONICAL.search(pages["/"].text)
    if canonical is not None and canonical[1] != domain["host"]:
        wrong.append(f"the home page says that it is at {canonical[1]}")
    if not domain["sslEnabled"]:
        wrong.append("the primary domain has no certificate")
    # The admin may say that it is open while its pages still ask, and the other way round.
    asks = any(page.asks_password for page in pages.values())
    if asks or state["onlineStore"]["passwordProtection"]["enabled"]:
        wrong.append("the storefront asks for a password")
    if not state["webhookSubscriptionsCount"]["count"]:
        wrong.append("the shop tells nobody of its orders")
    # A quiet shop tells of nothing: that it did is reported, and nothing else follows from it.
    told = yield CountDeliveries(work.began_at - LATELY)
    sold = yield CountSales(work.began_at - A_DAY)
    if wrong:
        detail = f"The open store is not yet as it should be: {'; '.join(wrong)}."
        return MilestoneStop(kind="retryable", reason="not_live", detail=detail)
    result = {
        "host": domain["host"],
        "pages": {path: page.status for path, page in pages.items()},
        "asksPassword": False,
        "subscriptions": state["webhookSubscriptionsCount"]["count"],
        "deliveriesOfTheLastHour": told,
        "baseline": _baseline(work.began_at, sold),
    }
    return Finished(result=result, facts={"launch.live_at": work.began_at.isoformat()})


def _baseline(at: datetime, sold: Sequence[SoldHour]) -> dict[str, Any]:
    """Say what the store sold in the day before it was found open: what its first days are held against."""
    currencies = sorted({one.currency for one in sold})
    return {
        "at": at.isoformat(),
        "hours": round(A_DAY.total_seconds() / 3_600),
        "sold": [
            {
                "currency": currency,
                "orders": sum(one.orders for one in sold if one.currency == currency),
                "grossMinor": sum(one.gross_minor for one in sold if one.currency == currency),
            }
            for currency in currencies
        ],
    }


def _paths(work: LaunchWork) -> tuple[str, ...]:
    products = work.results["catalog.products"].get("products", ())
    collections = work.results["catalog.collections"].get("collections", ())
    some = [f"/products/{one['handle']}" for one in products[:1]]
    some += [f"/collections/{one['handle']}" for one in collections[:1]]
    return ("/", *some, "/cart", "/sitemap.xml", "/robots.txt")
