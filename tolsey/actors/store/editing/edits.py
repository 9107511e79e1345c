"""What an agent's edit does to a thing of the shop: planned, compared, and recognised afterwards."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing.kinds import things
from tolsey.actors.store.editing.kinds.discounts import DiscountEdit
from tolsey.actors.store.editing.kinds.drafts import CollectionEdit, PageEdit
from tolsey.actors.store.editing.kinds.fulfilment import FulfilEdit, TrackEdit
from tolsey.actors.store.editing.kinds.kind import (
    MISSING,
    EditKind,
    EditVerdict,
    Facts,
    Planned,
    Rejected,
    same,
)
from tolsey.actors.store.editing.kinds.orders import NoteEdit, TagsEdit
from tolsey.actors.store.editing.kinds.products import PriceEdit, ProductEdit, StockEdit
from tolsey.actors.store.editing.kinds.refunds import RefundEdit
from tolsey.actors.store.editing.kinds.setup import FileEdit, LocationEdit, MarketEdit, RatesEdit

PRODUCT: Final = "product"
PRICE: Final = "price"
STOCK: Final = "stock"
NOTE: Final = "note"
TAGS: Final = "tags"
FULFILMENT: Final = "fulfilment"
TRACKING: Final = "tracking"
REFUND: Final = "refund"
DISCOUNT: Final = "discount"
COLLECTION: Final = "collection"
PAGE: Final = "page"
LOCATION: Final = "location"
MARKET: Final = "market"
RATES: Final = "rates"
FILE: Final = "file"
NEW_PRODUCT: Final = "new-product"
OPENING_STOCK: Final = "opening-stock"
NEW_COLLECTION: Final = "new-collection"
PUBLISHED: Final = "published"
CORE_PAGE: Final = "core-page"
POLICY: Final = "policy"
MENU: Final = "menu"
THEME: Final = "theme"
THEME_FILES: Final = "theme-files"
PRODUCT_SEO: Final = "product-seo"
SEO_FIELDS: Final = "seo-fields"
ALT_TEXT: Final = "alt-text"
REDIRECT: Final = "redirect"
CONSENT: Final = "consent"
PIXEL: Final = "pixel"
WELCOME_CODE: Final = "welcome-code"
SEGMENT: Final = "segment"

KINDS: Final[Mapping[str, EditKind]] = {
    PRODUCT: ProductEdit(),
    PRICE: PriceEdit(),
    STOCK: StockEdit(),
    NOTE: NoteEdit(),
    TAGS: TagsEdit(),
    FULFILMENT: FulfilEdit(),
    TRACKING: TrackEdit(),
    REFUND: RefundEdit(),
    DISCOUNT: DiscountEdit(),
    COLLECTION: CollectionEdit(),
    PAGE: PageEdit(),
    LOCATION: LocationEdit(),
    MARKET: MarketEdit(),
    RATES: RatesEdit(),
    FILE: FileEdit(),
    NEW_PRODUCT: things.NewProductEdit(),
    OPENING_STOCK: things.OpeningStockEdit(),
    NEW_COLLECTION: things.NewCollectionEdit(),
    PUBLISHED: things.PublishedEdit(),
    CORE_PAGE: things.CorePageEdit(),
    POLICY: things.PolicyEdit(),
    MENU: things.MenuEdit(),
    THEME: things.ThemeEdit(),
    THEME_FILES: things.ThemeFilesEdit(),
    PRODUCT_SEO: things.ProductSeoEdit(),
    SEO_FIELDS: things.SeoFieldsEdit(),
    ALT_TEXT: things.AltTextEdit(),
    REDIRECT: things.RedirectEdit(),
    CONSENT: things.ConsentEdit(),
    PIXEL: things.PixelEdit(),
    WELCOME_CODE: things.WelcomeCodeEdit(),
    SEGMENT: things.SegmentEdit(),
}
"""Every kind of edit. Another one is a class of `kinds`, and one of `http.clients.commerce.edits` with its two documents."""


def subject_of(edit: Edit) -> str:
    """Name the thing that is edited."""
    return "/".join((KINDS[edit.kind].thing, *edit.ids))


def version_of(edit: Edit, facts: Facts) -> str:
    """Name the state of a thing, as far as edits of this kind go."""
    told = json.dumps([edit.kind, list(edit.ids), dict(facts)], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def plan(edit: Edit, facts: Facts | None) -> Planned | Rejected:
    """Say what the edit makes of a thing, or why it is not to be made."""
    if facts is None:
        return MISSING
    # A plan of many changes names the version of each by its beginning.
    if edit.version is not None and not version_of(edit, facts).startswith(edit.version):
        return Rejected(
            "version_changed",
            "The item changed after the version you named. Fetch it again and retry with its"
            " current version.",
        )
    return KINDS[edit.kind].plan(edit.wanted, facts)


def shown(edit: Edit, facts: Facts) -> dict[str, Any]:
    """Show what a thing is, as far as the edit is about it."""
    return KINDS[edit.kind].shown(edit.wanted, facts)


def verdict(edit: Edit, before: Facts, found: Facts | None) -> EditVerdict:
    """Tell from a thing whether an edit was made; `before` is how it was shown before that."""
    if found is None:
        return EditVerdict.UNCLEAR
    kind, now = KINDS[edit.kind], shown(edit, found)
    if kind.is_made(edit, before, now):
        return EditVerdict.APPLIED
    is_unchanged = kind.only_grows or same(before, now)
    return EditVerdict.UNCHANGED if is_unchanged else EditVerdict.UNCLEAR


def wants_person(tool: str) -> bool:
    """Tell whether a person of the store confirms what a tool asks for."""
    return any(kind.needs_person and tool in kind.tools for kind in KINDS.values())


def undo(tool: str, subject: str, before: Facts, after: Facts, version: str | None) -> Facts | None:
    """Say what a tool is asked of which thing, to undo what it made of it; None where nothing does."""
    kind = next((one for one in KINDS.values() if tool in one.tools), None)
    wanted = None if kind is None else kind.undo(before, after, version)
    if kind is None or wanted is None:
        return None
    _, *ids = subject.split("/")
    return {**dict(zip(kind.ids, ids, strict=True)), **wanted}
