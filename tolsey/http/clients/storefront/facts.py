"""What a storefront's pages come to: fields with their provenance, and a verdict on each category."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit

from tolsey.actors.bodies import clean
from tolsey.actors.storefront.observed import (
    Fact,
    Judged,
    ObservedProduct,
    ObservedVariant,
    Provenance,
    ScanVerdict,
    unavailable,
)
from tolsey.http.clients.storefront.markup import Marks
from tolsey.http.clients.storefront.technologies import Technology, named

SOCIAL: Final = {
    "instagram.com": "instagram",
    "facebook.com": "facebook",
    "tiktok.com": "tiktok",
    "youtube.com": "youtube",
    "pinterest.com": "pinterest",
    "twitter.com": "x",
    "x.com": "x",
    "linkedin.com": "linkedin",
}
IDENTITY: Final = ("name", "description", "city", "country", "currency", "myshopify_domain")
MOST_COUNTRIES: Final = 250

Facts = Mapping[str, Fact]
Found = tuple[Facts, Judged]
OK: Final = Judged(verdict=ScanVerdict.OK)


def observed(value: Any, source: str) -> Fact:
    """Say what the storefront states itself."""
    return Fact(value=value, provenance=Provenance.OBSERVED, source=source)


def identity(meta: Mapping[str, Any], marks: Marks | None) -> Found:
    """Read who the shop says it is."""
    found = {
        name: observed(clean(value, 500), "/meta.json")
        for name in IDENTITY
        if isinstance(value := meta.get(name), str) and value
    }
    if "name" not in found and marks is not None and marks.title:
        found["name"] = Fact(value=marks.title, provenance=Provenance.INFERRED, source="title of /")
    missing = [name for name in ("name", "country", "currency") if name not in found]
    if not found:
        return found, Judged(verdict=ScanVerdict.EMPTY, reason="It says nowhere who it is.")
    if missing:
        reason = f"It does not say its {', '.join(missing)}."
        return found, Judged(verdict=ScanVerdict.PARTIAL, reason=reason)
    return found, OK


def platform(technologies: Sequence[Technology], has_catalogue: bool) -> Found:
    """Say what the shop runs on."""
    names = named(technologies, "platform")
    if names:
        mark = next(one.mark for one in technologies if one.name == names[0])
        return {"platform": Fact(value=names[0], provenance=Provenance.DETECTED, source=mark)}, OK
    if has_catalogue:
        fact = Fact(value="Shopify", provenance=Provenance.INFERRED, source="/products.json")
        return {"platform": fact}, OK
    return {}, Judged(verdict=ScanVerdict.EMPTY, reason="No mark of a shop's platform was found.")


def pricing(products: Sequence[ObservedProduct], currency: str | None) -> Found:
    """Read the prices of a catalogue."""
    variants = [one for product in products for one in product.variants]
    prices = [one.price for one in variants if one.price is not None]
    if not prices:
        return {}, Judged(verdict=ScanVerdict.EMPTY, reason="No product shows a price.")
    source = "/products.json"
    found = {
        "median_price": observed(_text(median(prices)), source),
        "lowest_price": observed(_text(min(prices)), source),
        "highest_price": observed(_text(max(prices)), source),
        "discounted_share": observed(_share(map(_is_discounted, variants)), source),
    }
    stocked = [one.available for one in variants if one.available is not None]
    if stocked:
        found["in_stock_share"] = observed(_share(stocked), source)
    if currency is None:
        reason = "The shop does not say the currency of its prices."
        return found, Judged(verdict=ScanVerdict.PARTIAL, reason=reason)
    return found, OK


def category(products: Sequence[ObservedProduct]) -> Facts:
    """Say what the shop mostly sells: the type that most of its products have."""
    types = Counter(one.product_type for one in products if one.product_type)
    if not types:
        return {}
    value, _ = types.most_common(1)[0]
    source = "product types of /products.json"
    return {"category": Fact(value=value, provenance=Provenance.INFERRED, source=source)}


def technology(technologies: Sequence[Technology], marks: Marks) -> Found:
    """Say which apps and theme the shop is made with."""
    apps = [
        {"name": one.name, "category": one.category, "mark": one.mark}
        for one in technologies
        if one.category != "platform"
    ]
    found = {"apps": Fact(value=apps, provenance=Provenance.DETECTED, source="marks of /")}
    name = marks.theme.get("schema_name") or marks.theme.get("name")
    if isinstance(name, str):
        theme = {"name": clean(name, 120), "version": _version(marks.theme)}
        found["theme"] = observed(theme, "Shopify.theme of /")
    if not apps and "theme" not in found:
        return found, Judged(verdict=ScanVerdict.EMPTY, reason="No known mark was found.")
    return found, OK


def content(marks: Marks, sitemaps: int | None) -> Found:
    """Read what the shop tells search engines."""
    told = {
        "title": marks.title,
        "description": marks.meta.get("description", ""),
        "language": marks.language,
        "canonical": marks.canonical,
    }
    found = {name: observed(value, "head of /") for name, value in told.items() if value}
    found["headings"] = observed(marks.headings, "h1 of /")
    if sitemaps is None:
        found["sitemaps"] = unavailable("The sitemap could not be read.")
    else:
        found["sitemaps"] = observed(sitemaps, "/sitemap.xml")
    missing = [name for name, value in told.items() if not value]
    if sitemaps is None:
        missing.append("sitemap")
    if missing:
        return found, Judged(verdict=ScanVerdict.PARTIAL, reason=f"It has no {', '.join(missing)}.")
    return found, OK


def shipping(meta: Mapping[str, Any], marks: Marks) -> Found:
    """Read where the shop says that it delivers, and whether it links a policy."""
    found = dict[str, Fact]()
    countries = meta.get("ships_to_countries")
    if isinstance(countries, list):
        listed = [clean(one, 8) for one in countries[:MOST_COUNTRIES] if isinstance(one, str)]
        found["ships_to"] = observed(listed, "/meta.json")
    links = [one for one in marks.links if "shipping" in one.lower() or "delivery" in one.lower()]
    if links:
        # Default robots files close /policies/: the link is what may be seen.
        found["shipping_policy"] = observed(clean(links[0], 500), "link of /")
    if not found:
        return found, Judged(verdict=ScanVerdict.EMPTY, reason="It says nothing of its deliveries.")
    if len(found) == 1:
        missing = "countries" if "ships_to" not in found else "policy"
        return found, Judged(verdict=ScanVerdict.PARTIAL, reason=f"It shows no {missing}.")
    return found, OK


def reviews(technologies: Sequence[Technology], marks: Marks) -> Found:
    """Read what the shop states of its reviews."""
    found = dict[str, Fact]()
    apps = named(technologies, "reviews")
    if apps:
        found["review_apps"] = Fact(value=apps, provenance=Provenance.DETECTED, source="marks of /")
    for one in marks.structured:
        rating = one.get("aggregateRating")
        if isinstance(rating, dict):
            read = {
                "value": _plain(rating.get("ratingValue")),
                "count": _plain(rating.get("reviewCount") or rating.get("ratingCount")),
            }
            found["rating"] = observed(read, "structured data of /")
            return found, OK
    if apps:
        return found, Judged(
            verdict=ScanVerdict.PARTIAL,
            reason="An app for reviews is there, but no rating is stated.",
        )
    return found, Judged(
        verdict=ScanVerdict.EMPTY, reason="No reviews are shown on the first page."
    )


def profiles(marks: Marks) -> Mapping[str, str]:
    """Name the profiles that the shop links to."""
    return {
        place: clean(link, 300)
        for link in reversed(marks.links)
        if (place := SOCIAL.get(_registered(link)))
    }


def _is_discounted(variant: ObservedVariant) -> bool:
    was, price = variant.compare_at_price, variant.price
    return was is not None and price is not None and was > price


def _share(flags: Iterable[bool]) -> float:
    listed = list(flags)
    return round(sum(listed) / len(listed), 4)


def _text(price: Decimal) -> str:
    return str(price)


def _version(theme: Mapping[str, Any]) -> str | None:
    version = theme.get("schema_version")
    return clean(version, 40) if isinstance(version, str) else None


def _plain(value: Any) -> str | None:
    return clean(str(value), 40) if isinstance(value, int | float | str) else None


def _registered(link: str) -> str:
    """Name the site of a link, without `www.` and other parts before it."""
    try:
        host = urlsplit(link).hostname or ""
    except ValueError:
        return ""
    return ".".join(host.lower().split(".")[-2:])
