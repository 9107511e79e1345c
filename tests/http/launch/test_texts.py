"""A language model writes the texts of a launch, paid for once; without credits the templates stand in and say so."""

from datetime import timedelta
from typing import Any

import pytest

from tests.http.launch.merchant import Merchant
from tests.http.launch.test_catalogue_and_storefront import FORM, come_to
from tests.timing import until
from tolsey.actors.organization.ledger.messages import GrantCredits, SpendCredits
from tolsey.actors.organization.messages import organization
from tolsey.sandbox.model import Model, Script

DOLLAR = 1_000_000
OURS = "That is how we do it."


@pytest.fixture
def given(model: Model) -> dict[str, Any]:
    """Set a model."""
    return {**model.settings}


async def grant(merchant: Merchant, amount: int) -> None:
    service, owner = merchant.two_stores.service, merchant.two_stores.ann
    at = service.clock()
    message = GrantCredits(
        key="gift", kind="bonus", amount=amount, at=at, expires_at=at + timedelta(days=30)
    )
    await service.runtime.ask(organization(owner.organization_id), message)


async def spend_all(merchant: Merchant) -> None:
    """Spend what the day brought."""
    service, owner = merchant.two_stores.service, merchant.two_stores.ann
    for key in ("one", "all"):
        there = (await credits_of(merchant))["available"]
        spend = SpendCredits(key=key, amount=max(1, there), reason="test", at=service.clock())
        await service.runtime.ask(organization(owner.organization_id), spend)


async def entries(merchant: Merchant, kind: str) -> list[dict[str, Any]]:
    """List what the organization's ledger has of a kind."""
    owner = merchant.two_stores.ann.organization_id
    answer = await merchant.client.get(f"/api/credits/ledger?organizationId={owner}&limit=100")
    assert answer.status_code == 200, answer.text
    return [one for one in answer.json()["items"] if one["kind"] == kind]


async def test_a_model_writes_kit_pages_policies_and_copy_and_is_paid_once_for_each(
    merchant: Merchant, model: Model
) -> None:
    await grant(merchant, 10 * DOLLAR)
    await merchant.launch(**FORM)
    await merchant.until("brand.kit", "succeeded")
    await merchant.decide("brand.approve", "done")
    await come_to(merchant, "legal.policies", "storefront.pages", "catalog.products")
    cockpit = await merchant.cockpit()
    for id in ("brand.kit", "legal.policies", "storefront.pages", "catalog.products"):
        found = next(one for one in cockpit["milestones"] if one["id"] == id)
        assert found["result"]["texts"] == {"by": "model"}, found
    assert cockpit["modules"]["brandKit"]["tagline"].endswith(OURS)
    shop = merchant.shop
    pages = {one.handle: one.body for one in shop.pages.values()}
    assert OURS in pages["faq"]
    assert "<h2>Can I send something back?</h2>" in pages["faq"]
    assert OURS not in pages["contact"]
    assert {one["type"]: OURS in one["body"] for one in shop.setup.policies} == {
        "REFUND_POLICY": True,
        "PRIVACY_POLICY": True,
        "TERMS_OF_SERVICE": True,
        "SHIPPING_POLICY": True,
        "CONTACT_INFORMATION": False,
    }
    copy = {one.handle: one.description_html for one in shop.products.values()}
    assert OURS in copy["blanket"]
    assert copy["decor-cushion"] == "<p>Stuffed with wool.</p>"
    assert len(model.asked) == 4
    assert model.asked[0]["messages"][0]["role"] == "system"

    # Each was held for and settled, and nothing is held any more; the same brief is not written twice.
    assert (await merchant.run("core-pages", force=True))["result"] == "succeeded"
    assert len(model.asked) == 4
    held = await entries(merchant, "hold")

    async def is_done() -> bool:
        return not ((await credits_of(merchant))["held"])

    await until(is_done)
    settled = await entries(merchant, "settle")
    assert {one["reference"] for one in settled} == {one["reference"] for one in held}
    assert 0 < -sum(one["amount"] for one in settled) < DOLLAR
    assert (len(held), len(settled)) == (4, 4)


async def credits_of(merchant: Merchant) -> dict[str, Any]:
    owner = merchant.two_stores.ann.organization_id
    found: dict[str, Any] = (
        await merchant.client.get(f"/api/credits?organizationId={owner}")
    ).json()
    return found


async def test_templates_stand_in_where_credits_are_short_or_the_model_fails_and_the_result_says_so(
    merchant: Merchant, model: Model
) -> None:
    await spend_all(merchant)
    await merchant.launch(**FORM)
    kit = await merchant.until("brand.kit", "succeeded")
    assert kit["result"]["texts"] == {"by": "template", "because": "insufficient_credits"}
    # What follows by itself wants texts, too.
    await come_to(merchant, "legal.policies")
    assert model.asked == []

    # With credits the next run asks, and what cannot be used is not used.
    await grant(merchant, DOLLAR)
    model.scripts.append(Script(said=("I'd rather not.",)))
    await merchant.run("brand-kit", force=True)
    kit = await merchant.milestone("brand.kit")
    assert kit["result"]["texts"] == {"by": "template", "because": "model_unusable"}
    assert len(await entries(merchant, "hold")) == 1
    await merchant.run("brand-kit", force=True)
    kit = await merchant.milestone("brand.kit")
    assert kit["result"]["texts"] == {"by": "model"}

    # A dry run asks nobody and costs nothing.
    await merchant.decide("brand.approve", "done")
    await come_to(merchant, "storefront.pages", "legal.policies", "catalog.products")
    asked, held = len(model.asked), len(await entries(merchant, "hold"))
    shown = await merchant.run("core-pages", dryRun=True)
    assert shown["result"] == "dry_run", shown
    assert len(model.asked) == asked
    assert len(await entries(merchant, "hold")) == held
