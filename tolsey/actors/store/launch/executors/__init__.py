"""What carries out the milestones of a launch that run by themselves (rules/launch#executors).

An executor is a generator: it yields what it has to know of the shop and returns what came out. It
calls nothing itself, so that the same answers always lead to the same end.
"""

from collections.abc import Mapping
from typing import Final

from tolsey.actors.store.launch.executors import (
    assets,
    audit,
    brand,
    catalogue,
    growth,
    location,
    opening,
    shipping,
    storefront,
    theme,
)
from tolsey.actors.store.launch.executors.work import Executor

EXECUTORS: Final[Mapping[str, Executor]] = {
    "foundation.audit": audit.audit,
    "brand.kit": brand.draft,
    "brand.assets": assets.upload,
    "catalog.products": catalogue.products,
    "catalog.inventory": catalogue.inventory,
    "catalog.collections": catalogue.collections,
    "catalog.publish": catalogue.publish,
    "storefront.pages": storefront.pages,
    "storefront.theme": theme.prepare,
    "storefront.navigation": storefront.navigation,
    "operations.location": location.set_up,
    "operations.shipping": shipping.set_up,
    "legal.policies": storefront.policies,
    "growth.seo": growth.seo,
    "growth.analytics": growth.analytics,
    "growth.discount": growth.discount,
    "growth.email": growth.email,
    "launch.preflight": opening.preflight,
    "launch.verify": opening.verify,
}
BUILT: Final = frozenset(EXECUTORS)
"""The milestones that have an executor."""
