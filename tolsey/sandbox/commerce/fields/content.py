"""Collections and pages: what stands under a handle, a new one, and its texts."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tolsey.sandbox.clock import instant
from tolsey.sandbox.commerce.fields import catalogue, things
from tolsey.sandbox.commerce.fields.leaves import gid, when
from tolsey.sandbox.commerce.fields.mutations import Wrong, mutation, number
from tolsey.sandbox.commerce.fields.reads import need
from tolsey.sandbox.commerce.query.pages import Listing, Page
from tolsey.sandbox.commerce.query.projection import Call, Getter
from tolsey.sandbox.commerce.query.refused import access_denied
from tolsey.sandbox.commerce.query.search import Reader, compile_search
from tolsey.sandbox.commerce.shop.content import Collection, ContentPage
from tolsey.sandbox.commerce.shop.state import Shop

PAGE_SCOPES = ("content", "online_store_pages")
PAGE_SEARCH: Mapping[str, Reader] = {
    "id": lambda p: p.id,
    "handle": lambda p: p.handle,
    "title": lambda p: p.title,
}


def by_identifier(_root: Any, call: Call) -> Collection | None:
    """Find a collection by its handle or id."""
    shop = need(call, "collectionByIdentifier", "read_products")
    asked = call.args["identifier"]
    if asked.get("handle") is not None:
        return next((c for c in shop.collections.values() if c.handle == asked["handle"]), None)
    return shop.collections.get(number(asked.get("id") or ""))


def pages(_root: Any, call: Call) -> Page:
    """Page through the pages that a search finds."""
    shop = call.request.shop
    if not any(shop.grants(f"read_{area}") for area in PAGE_SCOPES):
        raise access_denied("pages", "read_content")
    search = compile_search(call.args.get("query"), PAGE_SEARCH)
    call.request.warnings.extend(search.warnings)
    found = filter(search.matches, shop.pages.values())
    return Listing.of(found, lambda page: (page.id, page.id)).page(call.args)


@mutation("collectionCreate", "write_products")
def create_collection(shop: Shop, call: Call) -> dict[str, Any]:
    """Make a collection, which is in no sales channel yet."""
    asked = call.args["collection"]
    title, handle = _named(asked, (one.handle for one in shop.collections.values()))
    made = Collection(next(shop.ids), handle, title, asked.get("descriptionHtml") or "")
    shop.collections[made.id] = made
    return {"collection": made}


@mutation("collectionUpdate", "write_products")
def update_collection(shop: Shop, call: Call) -> dict[str, Any]:
    """Change what is given of a collection."""
    asked = call.args["collection"]
    found = shop.collections.get(number(asked.get("id") or ""))
    if found is None:
        raise Wrong(["id"], "Collection does not exist")
    found.title = asked.get("title") or found.title
    if asked.get("descriptionHtml") is not None:
        found.description_html = asked["descriptionHtml"]
    return {"collection": found, "job": None}


def _writes_pages(call: Call) -> str:
    """Name the scope that writes pages: either of two will do."""
    held = call.request.shop.scopes
    return next(
        (f"write_{area}" for area in PAGE_SCOPES if f"write_{area}" in held), "write_content"
    )


@mutation("pageCreate", _writes_pages)
def create_page(shop: Shop, call: Call) -> dict[str, Any]:
    """Make a page, which is seen at once unless it is said to be hidden."""
    asked, now = call.args["page"], call.request.platform.now()
    title, handle = _named(asked, (one.handle for one in shop.pages.values()))
    hidden = asked.get("isPublished") is False
    made = ContentPage(
        next(shop.ids),
        handle,
        title,
        now,
        now,
        asked.get("body") or "",
        None if hidden else now,
    )
    shop.pages[made.id] = made
    return {"page": made}


@mutation("pageUpdate", _writes_pages)
def update_page(shop: Shop, call: Call) -> dict[str, Any]:
    """Change what is given of a page."""
    asked, now = call.args["page"], call.request.platform.now()
    found = shop.pages.get(number(call.args["id"]))
    if found is None:
        raise Wrong(["id"], "Page does not exist", "NOT_FOUND")
    found.title = asked.get("title") or found.title
    if asked.get("body") is not None:
        found.body = asked["body"]
    if asked.get("isPublished") is not None:
        found.published_at = now if asked["isPublished"] else None
    found.updated_at = now
    return {"page": found}


def _named(asked: Mapping[str, Any], taken: Iterable[str]) -> tuple[str, str]:
    """Take the title of something new, and its handle, which is nobody else's."""
    title = (asked.get("title") or "").strip()
    if not title:
        raise Wrong(["title"], "Title can't be blank", "BLANK")
    handle = asked.get("handle") or re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    if handle in taken:
        raise Wrong(["handle"], "Handle has already been taken", "TAKEN")
    return title, handle


def _is_published(page: ContentPage, call: Call) -> bool:
    return page.published_at is not None and page.published_at <= call.request.platform.now()


COLLECTION: dict[str, Getter] = {
    "id": gid("Collection"),
    "handle": lambda c, _: c.handle,
    "title": lambda c, _: c.title,
    "descriptionHtml": lambda c, _: c.description_html,
    "metafield": things.metafield("Collection"),
    "publishedOnPublication": catalogue.is_published,
    "resourcePublicationsCount": lambda c, _: {"count": c.channels, "precision": "EXACT"},
}
PAGE: dict[str, Getter] = {
    "id": gid("Page"),
    "handle": lambda p, _: p.handle,
    "title": lambda p, _: p.title,
    "body": lambda p, _: p.body,
    "metafield": things.metafield("Page"),
    "isPublished": _is_published,
    "publishedAt": lambda p, _: when(p.published_at),
    "createdAt": lambda p, _: instant(p.created_at),
    "updatedAt": lambda p, _: instant(p.updated_at),
}
