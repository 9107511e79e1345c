"""A store is launched as far as this version goes, by its merchant and by itself."""

import json
import re
from typing import Any

from tests.http.launch.merchant import SPEC, Merchant

OF_A_LAUNCH = re.compile(r"<(?:any\((\w+)[^)]*\):)?(\w+)>")
IN_PATHS = {"store_id": "{store}", "milestone": "brand.approve", "question": "name"}


async def test_a_merchant_launches_a_store_as_far_as_this_version_goes(merchant: Merchant) -> None:
    begun = await merchant.launch()
    assert begun.status_code == 201, begun.text
    assert len(begun.json()["milestones"]) == 29
    again = await merchant.launch()
    assert (again.status_code, again.json()["launchId"]) == (201, begun.json()["launchId"])

    shipping = await merchant.until("operations.shipping", "succeeded", "failed", "blocked")
    assert shipping["state"] == "succeeded", shipping
    kit = await merchant.until("brand.kit", "succeeded")
    assert kit["attempts"] == 1
    approved = await merchant.decide("brand.approve", "done", note="As we talked")
    assert approved.status_code == 200, approved.text
    assets = await merchant.until("brand.assets", "succeeded", "failed", "blocked")
    assert assets["state"] == "succeeded", assets

    setup = merchant.shop.setup
    assert (setup.location["name"], setup.location["address"]["city"]) == ("Mill", "Salem")
    assert {one["handle"] for one in setup.markets} == {"country-ca", "country-de"}
    assert {zone["name"]: zone["codes"] for zone in setup.zones} == {
        "Domestic": {"US"},
        "International": {"CA", "DE"},
    }
    assert sorted(file.filename.partition("-")[0] for file in setup.files.values()) == [
        "mark",
        "wordmark",
    ]
    assert all(file.content.startswith(b"<svg") for file in setup.files.values())

    cockpit = await merchant.cockpit()
    states = {one["id"]: one["state"] for one in cockpit["milestones"]}
    assert states["launch.verify"] == "pending"
    assert cockpit["modules"]["onboardingSpec"]["businessName"] == SPEC["businessName"]
    assert cockpit["modules"]["recommendations"]["pricing"][0]["isBelowMargin"] is True
    found = await merchant.client.get(f"/api/stores/{merchant.store_id}/memory/facts?limit=100")
    facts = {one["key"]: (one["value"], one["source"]) for one in found.json()["items"]}
    assert facts["brand.name"] == ("Loom & Co", "launch")
    assert facts["store.currency"] == ("USD", "launch")
    assert "brand.logo_file_id" in facts
    activity = await merchant.two_stores.database.fetch("SELECT milestone FROM platform_activity")
    assert len(activity) == 29
    await is_told_how_long_others_took(merchant)


async def is_told_what_the_shop_would_not_allow(merchant: Merchant) -> None:
    """Ask for the plan of permissions before the launch begins, under a grant that covers it, and one that does not."""
    address = f"/api/wizard/store/{merchant.store_id}/scopes"
    whole = (await merchant.client.get(address)).json()
    assert (whole["connected"], whole["blocked"], whole["missing"]) == (True, [], [])
    database = merchant.two_stores.database
    granted = [one for one in whole["granted"] if one != "write_themes"]
    changed = (
        "UPDATE integration_connections SET metadata = jsonb_set(metadata, '{scopes}', $2::jsonb)"
        " WHERE store_id = $1"
    )
    await database.execute(changed, merchant.store_id, json.dumps(granted))
    lacking = (await merchant.client.get(address)).json()
    assert lacking["missing"] == ["write_themes"]
    blocked = {"id": "storefront.theme", "title": "Prepare the theme", "scopes": ["write_themes"]}
    assert lacking["blocked"] == [blocked]
    await database.execute(changed, merchant.store_id, json.dumps(whole["granted"]))


async def is_told_how_long_others_took(merchant: Merchant) -> None:
    """Let other stores be done with a step: of 20 it is told how long they took, of fewer nothing."""
    plan = "foundation.plan"
    for stores in (19, 20):
        # Each took some hours from its turn on; the first three were done before it.
        await merchant.two_stores.database.execute(
            """
            INSERT INTO launch_milestones (store_id, milestone, state, changed_at, run, attempts,
                step, queued_at, finished_at)
            SELECT 'other_' || n, $1, 'approved', now(), 1, 0, 0, now(), now() + n * interval '1 hour'
            FROM generate_series(-2, $2) n ON CONFLICT DO NOTHING
            """,
            plan,
            stores - 1,
        )
        forecast = (await merchant.cockpit())["forecast"]
        told = {"stores": 20, "medianSeconds": 34_200, "p90Seconds": 61_560}
        assert forecast == ({} if stores == 19 else {plan: told})
    shown = (await merchant.client.get(f"/stores/{merchant.store_id}/launch/{plan}")).text
    assert "Half of 20 stores 10 h, nine in ten 17 h" in shown


async def test_a_launch_is_decided_by_people_shown_before_it_is_sent_and_seen_by_nobody_else(
    merchant: Merchant,
) -> None:
    shop = merchant.shop
    shop.scopes = tuple(one for one in shop.scopes if one != "write_locations")
    await is_told_what_the_shop_would_not_allow(merchant)
    missing = await merchant.client.get(f"/api/wizard/store/{merchant.store_id}")
    assert (missing.status_code, missing.json()["code"]) == (404, "launch_not_begun")
    assert (await merchant.launch()).status_code == 201
    other = await merchant.launch(businessName="Another")
    assert (other.status_code, other.json()["code"]) == (409, "launch_exists")
    await strangers_find_nothing(merchant)

    # The grant that the store knows covers it; the platform says otherwise, and what is missing.
    location = await merchant.until("operations.location", "blocked", "failed", "succeeded")
    assert (location["state"], location["reason"]) == ("blocked", "scope_missing"), location
    assert location["scope"] == "write_locations"

    await merchant.until("brand.kit", "succeeded")
    human = await merchant.run("approve-brand")
    assert human["result"] == "human_required"
    assert (await merchant.run("brand-assets"))["result"] == "not_ready"
    assert (await merchant.run("brand-kit"))["result"] == "already_done"
    early = await merchant.decide("launch.test_order", "done")
    assert (early.status_code, early.json()["code"]) == (409, "not_ready")
    fixed = await merchant.decide("legal.review", "skip")
    assert (fixed.status_code, fixed.json()["code"]) == (409, "not_skippable")
    auto = await merchant.decide("brand.kit", "done")
    assert (auto.status_code, auto.json()["code"]) == (409, "not_a_checkpoint")

    skipped = await merchant.decide("brand.approve", "skip", note="No brand yet")
    assert skipped.json()["state"] == "skipped"
    assets = await merchant.until("brand.assets", "succeeded")
    assert (await merchant.milestone("brand.approve"))["note"] == "No brand yet"
    late = await merchant.decide("brand.approve", "unskip")
    assert (late.status_code, late.json()["code"]) == (409, "dependant_started")
    assert len(shop.setup.files) == 2
    again = await merchant.run("brand-assets", force=True)
    assert (again["result"], len(shop.setup.files)) == ("succeeded", 2), assets

    shop.scopes = (*shop.scopes, "write_locations")
    shown = await merchant.run("location-setup", dryRun=True)
    assert shown["result"] == "dry_run"
    (document,) = shown["documents"]
    assert "locationEdit" in document["document"]
    assert document["variables"]["input"]["name"] == "Mill"
    assert shop.setup.location["name"] == "Main"
    assert (await merchant.run("location-setup"))["result"] == "succeeded"
    # What the merchant changed since stays as they want it, whoever asks again.
    shop.setup.location["name"] = "Old mill"
    assert (await merchant.run("location-setup", force=True))["result"] == "succeeded"
    assert shop.setup.location["name"] == "Old mill"
    assert (await merchant.milestone("operations.location"))["result"]["note"] == "merchant_edit"
    # A shop that lets nobody in any more is not failed: it waits for the merchant.
    shop.installed = False
    away = await merchant.run("location-setup", force=True)
    assert (away["result"], away["reason"]) == ("blocked", "token_unavailable"), away


async def strangers_find_nothing(merchant: Merchant) -> None:
    """Knock at every route of the launch as somebody of another organization."""
    two_stores = merchant.two_stores
    async with await two_stores.person(two_stores.bob.user_id) as bob:
        of = {"storeId": merchant.store_id}
        answers = [
            await bob.get(f"/api/wizard/store/{merchant.store_id}"),
            await bob.get(f"/api/wizard/store/{merchant.store_id}/scopes"),
            await bob.post("/api/wizard/store/launch", json={**of, "spec": SPEC, "brandKit": {}}),
            await bob.post("/api/wizard/skill/run", json={**of, "skill": "brand-kit"}),
            await bob.post(
                "/api/wizard/skill/run", json={**of, "skill": "brand-kit", "dryRun": True}
            ),
            await bob.post(
                "/api/wizard/store/checkpoint",
                json={**of, "milestone": "brand.approve", "action": "done"},
            ),
            await bob.patch(f"/api/wizard/store/{merchant.store_id}", json={"spec": SPEC}),
            await bob.post("/api/wizard/store/provision", json=of),
            await bob.post("/api/wizard/store/transfer", json={**of, "email": "bob@example.com"}),
        ]
        told = {(one.status_code, one.json()["code"]) for one in answers}
        paths = dict[str, int]()
        served: Any = two_stores.app
        for rule in served.application.url_map.iter_rules():
            if not rule.rule.startswith("/stores/<store_id>/launch"):
                continue
            address = OF_A_LAUNCH.sub(lambda part: part[1] or IN_PATHS[part[2]], rule.rule)
            address = address.replace("{store}", merchant.store_id)
            for method in sorted(set(rule.methods or ()) & {"GET", "POST"}):
                answer = await bob.request(method, address)
                paths[f"{method} {rule.rule}"] = answer.status_code
    assert told == {(404, "not_found")}
    assert len(paths) >= 7
    assert set(paths.values()) == {404}, paths


async def test_a_tick_approves_what_people_did_and_goes_to_launches_that_wait_alone(
    merchant: Merchant,
) -> None:
    assert (await merchant.tick())["launches"] == 0
    assert (await merchant.launch()).status_code == 201
    await merchant.until("operations.shipping", "succeeded")
    merchant.shop.plan, merchant.shop.partner_development = "Basic", False
    merchant.shop.setup.payments_activated = True
    counted = await merchant.tick()
    assert [counted[one] for one in ("launches", "probe", "report")] == [1, 1, 0]
    plan = await merchant.until("foundation.plan", "approved")
    assert plan["decidedBy"] is None
    payments = await merchant.until("operations.payments", "approved")
    assert payments["finishedAt"] is not None

    undone = await merchant.decide("operations.payments", "undo")
    assert undone.json()["state"] == "pending"
    probed_at = (await merchant.cockpit())["probedAt"]
    await merchant.tick()
    await merchant.until_probed_after(probed_at)
    assert (await merchant.milestone("operations.payments"))["state"] == "pending"
    marked = await merchant.decide("operations.payments", "done", note="Another provider")
    assert marked.json()["state"] == "approved"
    payments = await merchant.milestone("operations.payments")
    assert payments["decidedBy"] == merchant.two_stores.ann.user_id


async def test_a_merchant_tells_the_store_anew_until_its_products_were_made(
    merchant: Merchant,
) -> None:
    address = f"/api/wizard/store/{merchant.store_id}"
    early = await merchant.client.patch(address, json={"spec": SPEC})
    assert (early.status_code, early.json()["code"]) == (404, "launch_not_begun")
    assert (await merchant.launch()).status_code == 201
    await merchant.until("operations.shipping", "succeeded")
    await merchant.until("brand.kit", "succeeded")
    moved = {**SPEC["location"], "city": "Portland"}
    anew = {**SPEC, "businessName": "Loom & Sons", "location": moved}
    told = await merchant.client.patch(address, json={"spec": anew})
    assert told.status_code == 200, told.text
    assert told.json()["modules"]["onboardingSpec"]["businessName"] == "Loom & Sons"
    await merchant.until("operations.shipping", "succeeded")
    assert merchant.shop.setup.location["address"]["city"] == "Portland"
    kit = await merchant.until("brand.kit", "succeeded")
    assert kit["run"] == 2
    cockpit = await merchant.cockpit()
    assert cockpit["modules"]["brandKit"]["name"] == "Loom & Sons"
    # The form as it is now is the same launch.
    again = await merchant.launch(businessName="Loom & Sons", location=moved)
    assert (again.status_code, again.json()["launchId"]) == (201, cockpit["launchId"])
    two_stores = merchant.two_stores
    async with await two_stores.person(two_stores.bob.user_id) as bob:
        answer = await bob.patch(address, json={"spec": SPEC})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
