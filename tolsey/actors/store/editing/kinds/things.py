"""What a launch makes in a shop, one class for each kind of thing, told apart by what each says of itself.

Facts of all of them are `{"found": ...}`: what stands there, by the platform's own names of its fields, or None.
What is wanted is compared by those names; `extra` of it is sent and compared with nothing.
"""

import hashlib
import json
from abc import ABC
from decimal import Decimal
from typing import Any, ClassVar, Final

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing.kinds.kind import (
    MISSING,
    EditKind,
    Facts,
    Planned,
    Rejected,
    same,
)

EXTRA: Final = "extra"
LONGEST_SHOWN: Final = 200
"""What is longer is shown and kept as a digest: a policy or a page may be all of somebody's texts."""


class ThingEdit(EditKind, ABC):
    """A thing that is made where there is none; one that is there is set where its kind says so."""

    makes: ClassVar[bool] = True
    """Whether one is made where there is none."""
    sets: ClassVar[bool] = False
    """Whether one that is there is set to what is wanted."""

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Make it, or set what is another."""
        found, compared = facts["found"], _compared(wanted)
        if found is None and not self.makes:
            return MISSING
        if found is None:
            return Planned({"found": {"id": None, **compared}}, {**wanted, "id": None})
        if not self.sets or _holds(compared, found):
            return Planned(facts, None)
        return Planned({"found": {**found, **compared}}, {**wanted, "id": found["id"]})

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show what stands there, long texts by their digests."""
        del wanted
        found = facts["found"]
        return {self.thing: None if found is None else _short(found)}

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether it is there as wanted; a new one may have its texts as the platform cleaned them."""
        found = now[self.thing]
        if found is None:
            return False
        compared = _compared(edit.wanted)
        short = _short(compared)
        if before.get(self.thing) is None:
            short = {name: value for name, value in short.items() if value == compared[name]}
        return _holds(short, found)


def _compared(wanted: Facts) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if name != EXTRA}


def _holds(wanted: Facts, found: Facts) -> bool:
    return wanted.keys() <= found.keys() and same(_counted(wanted), _counted(found))


def _counted(facts: Facts) -> Facts:
    """Take prices as amounts: the platform writes as many digits of one as it likes."""
    prices = facts.get("prices")
    if not isinstance(prices, list):
        return facts
    return {**facts, "prices": [None if one is None else Decimal(one) for one in prices]}


def _short(found: Facts) -> dict[str, Any]:
    return {name: _digested(value) for name, value in found.items()}


def _digested(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    if len(text) <= LONGEST_SHOWN:
        return value
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


class NewProductEdit(ThingEdit):
    """A draft of a product with its options, variants and pictures."""

    tools = ("catalog.products",)
    thing = "new-product"
    ids = ("handle",)
    platform_scope = "write_products"
    sets = True


class OpeningStockEdit(ThingEdit):
    """What is available of an item at a location: the platform makes it once for each key."""

    tools = ("catalog.inventory",)
    thing = "stock"
    ids = ("inventory_item_id", "location_id")
    platform_scope = "write_inventory"
    is_keyed = True
    is_compared = True
    sets = True


class NewCollectionEdit(ThingEdit):
    """A collection of what its conditions say."""

    tools = ("catalog.collections",)
    thing = "collection"
    ids = ("handle",)
    platform_scope = "write_products"


class PublishedEdit(ThingEdit):
    """A product or collection in a sales channel."""

    tools = ("catalog.publish",)
    thing = "published"
    ids = ("type", "number", "publication_id")
    platform_scope = "write_publications"
    makes = False
    sets = True


class CorePageEdit(ThingEdit):
    """A page of the online store that buyers see."""

    tools = ("storefront.pages",)
    thing = "page"
    ids = ("handle",)
    platform_scope = "write_content"
    or_scope = "write_online_store_pages"
    sets = True


class PolicyEdit(ThingEdit):
    """A policy of the shop."""

    tools = ("legal.policies",)
    thing = "policy"
    ids = ("type",)
    platform_scope = "write_legal_policies"
    sets = True


class MenuEdit(ThingEdit):
    """A menu with its entries."""

    tools = ("storefront.navigation",)
    thing = "menu"
    ids = ("handle",)
    platform_scope = "write_online_store_navigation"
    sets = True


class ThemeEdit(ThingEdit):
    """A theme that nobody sees yet, of a file that the platform fetches."""

    tools = ("storefront.theme",)
    thing = "theme"
    ids = ("name",)
    platform_scope = "write_themes"


class ThemeFilesEdit(ThingEdit):
    """Files of a theme by their digests, all of them or none."""

    tools = ("storefront.theme",)
    thing = "theme-files"
    ids = ("theme_id",)
    platform_scope = "write_themes"
    makes = False
    sets = True


class FillEdit(ThingEdit, ABC):
    """Words where nobody wrote any: what stands there already stays."""

    makes = False

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Fill what is empty."""
        found = facts["found"]
        if found is None:
            return MISSING
        change = {name: value for name, value in wanted.items() if not found[name]}
        if not change:
            return Planned(facts, None)
        return Planned({"found": {**found, **change}}, {**change, "id": found["id"]})

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether what was empty has the words that were sent."""
        del before
        found = now[self.thing]
        sent = _short({name: value for name, value in (edit.change or {}).items() if name != "id"})
        return found is not None and _holds(sent, found)


class ProductSeoEdit(FillEdit):
    """Title and description of a product for search engines."""

    tools = ("growth.seo",)
    thing = "product-seo"
    ids = ("product_id",)
    platform_scope = "write_products"


class SeoFieldsEdit(FillEdit):
    """Title and description of a page or a collection for search engines."""

    tools = ("growth.seo",)
    thing = "seo-fields"
    ids = ("type", "number")
    platform_scope = "write_products"
    or_scope = "write_content"


class AltTextEdit(FillEdit):
    """What a picture shows, for those who do not see it."""

    tools = ("growth.seo",)
    thing = "alt-text"
    ids = ("media_id",)
    platform_scope = "write_files"


class RedirectEdit(ThingEdit):
    """Where an address of the shop before leads now."""

    tools = ("growth.seo",)
    thing = "redirect"
    ids = ("path",)
    platform_scope = "write_online_store_navigation"


class ConsentEdit(ThingEdit):
    """Where buyers are asked for their consent, one row for each country or state."""

    tools = ("growth.analytics",)
    thing = "consent-policies"
    ids = ("of",)
    platform_scope = "write_privacy_settings"
    makes = False
    sets = True

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Send the rows that are another, and leave all others as they are."""
        found = facts["found"]
        rows = {**found["rows"], **wanted["rows"]}
        changed = {
            name: row for name, row in wanted["rows"].items() if found["rows"].get(name) != row
        }
        if not changed:
            return Planned(facts, None)
        return Planned({"found": {**found, "rows": rows}}, {"id": found["id"], "rows": changed})

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show the rows that are wanted."""
        rows = facts["found"]["rows"]
        return {self.thing: {name: rows.get(name) for name in wanted["rows"]}}

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether all rows are as wanted."""
        del before
        return same(edit.wanted["rows"], now[self.thing])


class PixelEdit(ThingEdit):
    """What the app is told of a buyer's visit, where it ships something that listens."""

    tools = ("growth.analytics",)
    thing = "pixel"
    ids = ("of",)
    platform_scope = "write_pixels"


class WelcomeCodeEdit(ThingEdit):
    """A code that takes a part off a first order, at work from now on."""

    tools = ("growth.discount",)
    thing = "discount"
    ids = ("code",)
    platform_scope = "write_discounts"


class SegmentEdit(ThingEdit):
    """A part of the shop's customers, by what they did."""

    tools = ("growth.email",)
    thing = "segment"
    ids = ("name",)
    platform_scope = "write_customers"
