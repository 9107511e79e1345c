"""The catalogue, the storefront and growth are set up by themselves once people decided what only they can."""

from typing import Any

from tests.http.launch.merchant import SPEC, Merchant

FORM: dict[str, Any] = {
    "contactEmail": "hello@loom.example",
    "products": [
        {
            "title": "Blanket",
            "price": "120",
            "cost": "70",
            "type": "blankets",
            "options": [{"name": "Size", "values": ["Small", "Large"]}],
            "variants": [
                {"values": ["Small"], "stock": 3},
                {"values": ["Large"], "price": "150.5", "stock": 0},
            ],
            "imageUrl": "https://pictures.example/blanket.png",
            "oldPath": "/shop/blanket",
        },
        {"title": "Décor: Cushion", "price": "40", "description": "Stuffed with wool."},
        {"title": "Blanket", "price": "90"},
    ],
}


async def come_to(merchant: Merchant, *milestones: str) -> None:
    """Wait until milestones have succeeded."""
    for id in milestones:
        found = await merchant.until(id, "succeeded", "failed", "blocked")
        assert found["state"] == "succeeded", (found, merchant.shop.domain)


async def test_a_catalogue_is_made_reviewed_and_published(merchant: Merchant) -> None:
    shop = merchant.shop
    begun = (await merchant.launch(**FORM)).json()
    await merchant.until("brand.kit", "succeeded")
    await merchant.decide("brand.approve", "done")
    await come_to(merchant, "catalog.collections", "catalog.inventory")
    by_handle = {one.handle: one for one in shop.products.values()}
    assert sorted(by_handle) == ["blanket", "blanket-2", "decor-cushion"]
    blanket = by_handle["blanket"]
    assert (blanket.status, begun["launchId"] in blanket.tags) == ("DRAFT", True)
    prices = [(one.title, one.price, one.available) for one in blanket.variants]
    assert prices == [("Small", 12000, 3), ("Large", 15050, 0)]
    assert by_handle["decor-cushion"].description_html == "<p>Stuffed with wool.</p>"
    assert by_handle["blanket-2"].variants[0].tracked is False
    assert {one.handle for one in shop.collections.values()} == {"featured", "blankets"}

    # What the merchant changes stays, and nothing is made twice.
    by_handle["decor-cushion"].title = "Cushion"
    again = await merchant.run("product-import", force=True)
    assert (again["result"], by_handle["decor-cushion"].title) == ("succeeded", "Cushion")
    assert len(shop.products) == 3
    await merchant.decide("catalog.review", "done")
    await come_to(merchant, "catalog.publish")
    assert {one.status for one in shop.products.values()} == {"ACTIVE"}
    assert all(one.publications for one in shop.products.values())
    assert all(one.publications for one in shop.collections.values())
    blanket.status = "DRAFT"
    assert (await merchant.run("catalog-publish", force=True))["result"] == "succeeded"
    assert blanket.status == "DRAFT"


async def test_pages_policies_menus_and_growth_are_written_once_and_the_merchants_own_stay(
    merchant: Merchant,
) -> None:
    shop = merchant.shop
    shop.setup.policies.append(
        {
            "id": "gid://shopify/ShopPolicy/9",
            "type": "REFUND_POLICY",
            "title": "Refunds",
            "body": "Ours.",
            "updatedAt": "2026-01-01T00:00:00Z",
        }
    )
    await merchant.launch(**FORM)
    await merchant.until("brand.kit", "succeeded")
    await merchant.decide("brand.approve", "done")
    await come_to(merchant, "legal.policies", "storefront.navigation", "growth.seo", "growth.email")
    await come_to(merchant, "growth.analytics")
    pages = {one.handle: one for one in shop.pages.values()}
    assert set(pages) == {"about", "contact", "faq", "shipping-returns"}
    assert "hello@loom.example" in pages["contact"].body
    assert all(one.published_at is not None for one in pages.values())
    policies = {one["type"]: one["body"] for one in shop.setup.policies}
    assert policies["REFUND_POLICY"] == "Ours."
    assert set(policies) == {
        "REFUND_POLICY",
        "PRIVACY_POLICY",
        "TERMS_OF_SERVICE",
        "SHIPPING_POLICY",
        "CONTACT_INFORMATION",
    }
    menus = {
        one["handle"]: [item["title"] for item in one["items"]] for one in shop.setup.of("Menu")
    }
    assert menus["main-menu"][:2] == ["Home", "Featured"]
    assert "Privacy policy" in menus["footer"]
    blanket = next(one for one in shop.products.values() if one.handle == "blanket")
    assert blanket.seo["title"] == "Blanket | Loom & Co"
    assert [one["target"] for one in shop.setup.of("UrlRedirect")] == ["/products/blanket"]
    consent = {one["countryCode"] for one in shop.setup.of("ConsentPolicy")}
    assert consent == {"US", "DE"}
    assert len(shop.setup.of("Segment")) == 3
    assert "welcome10" in shop.discounts
    pixel = (await merchant.milestone("growth.analytics"))["result"]
    assert pixel["note"] == "pixel_unavailable"

    # Once more, after a merchant's edit of each: nothing is made again, and every edit stays.
    pages["about"].body = "<p>Since 1890.</p>"
    shop.setup.of("Menu")[0]["items"] = []
    shop.setup.of("Segment").pop()
    for skill in ("core-pages", "policies", "navigation", "seo", "email-audiences", "discount"):
        assert (await merchant.run(skill, force=True))["result"] == "succeeded", skill
    assert pages["about"].body == "<p>Since 1890.</p>"
    assert (len(shop.pages), shop.setup.of("Menu")[0]["items"]) == (4, [])
    assert len(shop.setup.of("Segment")) == 2


async def test_a_theme_is_made_of_the_services_own_in_the_brands_colours_or_says_what_is_missing(
    merchant: Merchant,
) -> None:
    await merchant.launch(**{**FORM, "products": SPEC["products"]})
    await merchant.until("brand.kit", "succeeded")
    await merchant.decide("brand.approve", "done")
    theme = await merchant.until("storefront.theme", "blocked", "failed", "succeeded")
    assert (theme["state"], theme["reason"]) == ("blocked", "missing_credential")
    assert "LAUNCH_THEME_URL" in theme["detail"]
