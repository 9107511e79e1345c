"""All that a real store offers and answers, held against the official schema of every revision."""

import warnings
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types

from tests.mcp.real.served_stores import ServedStores
from tests.mcp.wire import Agent
from tolsey.http.mcp import wire
from tolsey.http.oauth.scopes import SCOPES

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what this package says of its own dependencies
    from mcp_types import methods

LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


async def asked(
    agent: Agent, revision: str, method: str, params: Mapping[str, Any]
) -> dict[str, Any]:
    """Ask in a revision's way; answers what is valid in its schema."""
    if revision == wire.MODERN:
        answer = await agent.ask(method, params)
    else:
        answer = await agent.older(revision, method, params)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()["result"]
    methods.validate_server_result(method, revision, result)
    return result


@pytest.mark.parametrize("revision", wire.SUPPORTED)
async def test_a_real_store_speaks_every_revision(two_keepers: ServedStores, revision: str) -> None:
    await two_keepers.live_site.running.service.database.execute(
        "UPDATE organizations SET plan = 'max_20x'"
    )
    token = await two_keepers.ann.token(" ".join(SCOPES))
    async with httpx.AsyncClient() as web:
        agent = Agent(web, two_keepers.ann.address, {"Authorization": f"Bearer {token}"})
        found = {name: (await asked(agent, revision, name, {}))[key] for name, key in LISTS.items()}
        assert all(found.values())

        called = 0
        for tool in found["tools/list"]:
            reads = tool["annotations"]["readOnlyHint"]
            if not reads or tool["inputSchema"].get("required"):
                continue
            result = await asked(agent, revision, "tools/call", {"name": tool["name"]})
            called += not result.get("isError")
            if not result.get("isError") and revision != wire.BATCHING:  # it knows no schemas
                Draft202012Validator(tool["outputSchema"]).validate(result["structuredContent"])
        assert called > 5

        for resource in found["resources/list"]:
            await asked(agent, revision, "resources/read", {"uri": resource["uri"]})
        for prompt in found["prompts/list"]:
            ref = {"type": "ref/prompt", "name": prompt["name"]}
            given = {}
            for argument in prompt.get("arguments", []):
                wanted = {"ref": ref, "argument": {"name": argument["name"], "value": ""}}
                proposed = await asked(agent, revision, "completion/complete", wanted)
                given[argument["name"]] = (*proposed["completion"]["values"], "1")[0]
            params = {"name": prompt["name"], "arguments": given}
            await asked(agent, revision, "prompts/get", params)
