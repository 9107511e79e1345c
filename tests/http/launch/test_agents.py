"""An agent moves a launch by the tools that its user let it use, and attests nothing for a person."""

from typing import Any

from tests.http.launch.merchant import Merchant
from tests.mcp.tools.shop import answered
from tests.mcp.tools.two_stores import refused


async def test_an_agent_runs_milestones_and_asks_for_a_look_but_attests_nothing(
    merchant: Merchant,
) -> None:
    two_stores = merchant.two_stores
    agent = await two_stores.agent(two_stores.ann, ["launch:write"])

    async def asked(tool: str, key: str, **more: Any) -> dict[str, Any]:
        return answered(await agent.call(tool, idempotency_key=f"key-{key:>08}", **more))

    wanted = {"idempotency_key": "key-early", "milestone_id": "brand.kit"}
    assert "launch_not_begun" in refused(await agent.call("run_launch_milestone", **wanted))
    assert (await merchant.launch()).status_code == 201
    await merchant.until("operations.shipping", "succeeded")
    await merchant.until("brand.kit", "succeeded")

    human = await asked("run_launch_milestone", "1", milestone_id="foundation.plan")
    assert (human["status"], human["after"]["result"]) == ("applied", "human_required")
    assert (await merchant.milestone("foundation.plan"))["state"] == "pending"
    nowhere = {"idempotency_key": "key-nowhere", "milestone_id": "no.such"}
    assert "not_found" in refused(await agent.call("run_launch_milestone", **nowhere))

    await merchant.decide("brand.approve", "skip")
    await merchant.until("brand.assets", "succeeded")
    merchant.shop.setup.location["name"] = "Main"
    shown = await asked(
        "run_launch_milestone", "2", milestone_id="operations.location", dry_run=True
    )
    assert (shown["status"], shown["after"]["result"]) == ("planned", "dry_run")
    done = await asked("run_launch_milestone", "3", milestone_id="brand.kit")
    assert done["after"]["result"] == "already_done"
    again = await asked("run_launch_milestone", "3", milestone_id="brand.kit")
    assert (again["status"], again["after"]) == ("replayed", done["after"])

    merchant.shop.plan, merchant.shop.partner_development = "Basic", False
    planned = await asked("request_launch_probe", "4", dry_run=True)
    assert (planned["status"], planned["after"]) == ("planned", {"requested": True})
    assert (await merchant.milestone("foundation.plan"))["state"] == "pending"
    assert (await asked("request_launch_probe", "4"))["status"] == "applied"
    plan = await merchant.until("foundation.plan", "approved")
    assert plan["decidedBy"] is None

    reader = await two_stores.agent(two_stores.ann, ["launch:read"])
    answer = await reader.call("run_launch_milestone", **wanted)
    assert answer.status_code == 403
