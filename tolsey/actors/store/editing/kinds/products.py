"""Edits of products: their texts, status, prices and stock."""

from typing import Any

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing.kinds.kind import EditKind, Facts, Planned, Rejected, same


class ProductEdit(EditKind):
    """New texts, tags or status of a product."""

    tools = ("update_product", "set_product_status")
    thing = "product"
    ids = ("product_id",)
    platform_scope = "write_products"

    def plan(self, wanted: Facts, facts: Facts) -> Planned:
        """Overwrite what is another."""
        is_so = same(wanted, self.shown(wanted, facts))
        return Planned({**facts, **wanted}, None if is_so else wanted)

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show what is overwritten."""
        return {name: facts[name] for name in wanted}

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether all of it is as wanted."""
        del before
        return same(edit.wanted, now)

    def undo(self, before: Facts, after: Facts, version: str | None) -> Facts:
        """Write what was there, unless somebody wrote something since."""
        del after
        return {**before, "expected_version": version}


class PriceEdit(EditKind):
    """New prices of variants of a product, all of them or none."""

    tools = ("change_price",)
    thing = "product"
    ids = ("product_id",)
    platform_scope = "write_products"

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Overwrite what is another, in the currency that the shop has."""
        asked, held = wanted["prices"], facts["prices"]
        for variant, prices in asked.items():
            if variant not in held:
                return Rejected(
                    "not_found",
                    f"The product has no variant with the id {variant}. Fetch the product for its variant ids.",
                )
            # A price of another currency is no price of this shop (rules/agents#tools).
            if any(one and one["currency"] != facts["currency"] for one in prices.values()):
                return Rejected(
                    "other_currency",
                    f"The shop's currency is {facts['currency']}. Send amounts in that currency.",
                )
        after = {variant: {**prices, **asked[variant]} for variant, prices in held.items()}
        change = {**wanted, "currency": facts["currency"]} if after != held else None
        return Planned({**facts, "prices": after}, change)

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show the prices of the variants that are asked for."""
        held = facts["prices"]
        return {
            "prices": {variant: held[variant] for variant in wanted["prices"] if variant in held}
        }

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether every price is as wanted."""
        del before
        held = now["prices"]
        return all(
            variant in held and same(prices, held[variant])
            for variant, prices in edit.wanted["prices"].items()
        )

    def undo(self, before: Facts, after: Facts, version: str | None) -> Facts:
        """Write the prices that were there, unless somebody wrote others since."""
        del after
        prices = [
            {
                "variant_id": variant,
                "price": held["price"],
                # Nothing says that there was none.
                "compare_at_price": held["compare_at_price"] or {**held["price"], "amount": 0},
            }
            for variant, held in before["prices"].items()
        ]
        return {"prices": prices, "expected_version": version}


class StockEdit(EditKind):
    """More or less of an item at a location."""

    tools = ("adjust_inventory",)
    thing = "stock"
    ids = ("inventory_item_id", "location_id")
    platform_scope = "write_inventory"
    is_keyed = True
    is_compared = True

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Move it from what was read: the platform refuses when it is another by then."""
        available: int = facts["available"]
        compare, delta = wanted.get("compare"), wanted["delta"]
        if compare is not None and compare != available:
            return Rejected(
                "quantity_changed",
                f"The available stock is {available}, not {compare}. Fetch the stock again and retry.",
            )
        change = {"delta": delta, "from": available} if delta else None
        return Planned({"available": available + delta}, change)

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show what is available."""
        del wanted
        return {"available": facts["available"]}

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether there are as many more."""
        return bool(now["available"] == before["available"] + edit.wanted["delta"])

    def undo(self, before: Facts, after: Facts, version: str | None) -> Facts:
        """Move as much back, whatever others moved since."""
        del version
        return {"delta": before["available"] - after["available"]}
