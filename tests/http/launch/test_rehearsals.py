"""Each milestone that runs by itself shows what it would send, document by document, and sends nothing."""

from copy import deepcopy
from typing import Any

import orjson
import pytest
from graphql import FieldNode, OperationDefinitionNode, parse

from tests.http.launch.merchant import Merchant
from tests.http.launch.test_catalogue_and_storefront import FORM, come_to
from tolsey.actors.store.launch.executors import BUILT
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.sandbox.commerce.shop.state import Shop

KEPT = ("products", "collections", "pages", "discounts", "setup", "subscriptions")
ON_OTHERS = frozenset({"catalog.inventory", "catalog.publish", "growth.seo", "launch.preflight"})
"""What works on what others made in the shop."""
OTHERWISE = {
    # The platform ships its menus, and an app without an extension that listens has no pixel.
    "storefront.navigation": {"menuUpdate"},
    "growth.analytics": {"consentPolicyUpdate"},
}


@pytest.fixture
def given() -> dict[str, Any]:
    """Name a theme."""
    return {"launch_theme_url": "https://themes.example/ours.zip"}


async def test_every_milestone_that_runs_by_itself_shows_what_it_would_send_and_sends_nothing(
    merchant: Merchant,
) -> None:
    shop, database = merchant.shop, merchant.two_stores.database
    empty = kept(shop)
    await merchant.launch(**{**FORM, "products": [{**one, "stock": 4} for one in FORM["products"]]})
    await merchant.until("brand.kit", "succeeded")
    await merchant.decide("brand.approve", "done")
    await come_to(merchant, "growth.seo", "growth.email", "storefront.navigation")
    untouched(shop)
    made = kept(shop)
    # Nothing runs from here on: the actor knows nothing of these, which a dry run reads from the disk.
    await database.execute("UPDATE launch_milestones SET state = 'approved', decided_by = 'ann'")
    told = [one for one in orjson.loads(PLAYBOOK.text)["milestones"] if one["id"] in BUILT]
    assert len(told) == 19
    for one in told:
        for name, value in deepcopy(made if one["id"] in ON_OTHERS else empty).items():
            setattr(shop, name, value)
        if one["id"] == "launch.preflight":
            put_on_sale(shop)
        before = seen(shop)
        result = await database.fetch(
            "UPDATE launch_milestones AS m SET state = 'queued', written = '{}', result = NULL"
            " FROM launch_milestones AS was WHERE m.milestone = $1"
            " AND (was.store_id, was.milestone) = (m.store_id, m.milestone) RETURNING was.result",
            one["id"],
        )
        shown = await merchant.run(one["skill"], dryRun=True)
        assert shown["result"] == "dry_run", shown
        mutations = {name.split()[0] for name in one["executor"]["mutations"]}
        said = (one["id"], shown)
        assert {sent(each) for each in shown["documents"]} == OTHERWISE.get(one["id"], mutations), (
            said
        )
        assert all(each["variables"] for each in shown["documents"]), said
        assert seen(shop) == before, said
        await database.execute(
            "UPDATE launch_milestones SET state = 'approved', result = $2 WHERE milestone = $1",
            one["id"],
            result[0]["result"],
        )


def kept(shop: Shop) -> dict[str, Any]:
    """Copy all of a shop that a launch changes."""
    return deepcopy({name: getattr(shop, name) for name in KEPT})


def seen(shop: Shop) -> str:
    """Write down all of it; what was only looked for is no thing."""
    copied = kept(shop)
    copied["setup"].things = {name: some for name, some in copied["setup"].things.items() if some}
    return repr(copied)


def untouched(shop: Shop) -> None:
    """Take back what milestones did to what others made."""
    for one in shop.products.values():
        one.seo.clear()
        for each in one.variants:
            each.available = 0
    next(iter(shop.products.values())).variants[0].is_stocked = False
    for name in ("Metafield", "UrlRedirect"):
        shop.setup.of(name).clear()
    for file in shop.setup.files.values():
        file.alt = ""


def put_on_sale(shop: Shop) -> None:
    """Publish the products, so that orders of them can be calculated."""
    for one in shop.products.values():
        one.status = "ACTIVE"
        one.publications.add(1)
        for each in one.variants:
            each.available = 4


def sent(shown: dict[str, Any]) -> str:
    """Name the one mutation of a document."""
    (operation,) = parse(shown["document"]).definitions
    assert isinstance(operation, OperationDefinitionNode)
    names = {
        one.name.value for one in operation.selection_set.selections if isinstance(one, FieldNode)
    }
    (name,) = names
    return name
