"""A developer's program reads what the service says of itself."""

from collections import Counter
from typing import Any

import httpx
import orjson
import pytest
from werkzeug.routing import AnyConverter, Map, Rule

import tests.described
from tests.described import schemas_in
from tolsey.http.mcp.doors import PREFIX
from tolsey.service import Running

FOR_PROGRAMS = ("/api/", "/oauth/", "/.well-known/", "/metrics", "/openapi.json")
FOR_BROWSERS = ("/oauth/consent/", "/api/files/{file_id}/content")
"""Beside all that is not for programs: pages, and what they send; a program has no use of them."""


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    said: dict[str, Any] = orjson.loads(orjson.dumps(tests.described.described()))
    return said


async def test_it_is_served_as_it_is_made(
    described: dict[str, Any], browser: httpx.AsyncClient
) -> None:
    answer = await browser.get("/openapi.json")
    assert answer.status_code == 200
    assert answer.json() == described


def paths_of(rule: Rule) -> list[str]:
    """Write a rule as the paths that a description names."""
    paths = [""]
    for dynamic, text in rule._trace:
        converter = rule._converters.get(text) if dynamic else None
        if isinstance(converter, AnyConverter):
            parts = list(converter.items)
        else:
            parts = [f"{{{text}}}" if dynamic else text]
        paths = [path + part for path in paths for part in parts]
    return [path.removeprefix("|") for path in paths]


async def test_all_that_is_served_is_described_and_nothing_else(
    live: Running, described: dict[str, Any]
) -> None:
    application: Any = live.app
    url_map: Map = application.application.url_map
    served = {
        (method.lower(), path)
        for rule in url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        for path in paths_of(rule)
    }
    served |= {("post", path) for path in application.receivers}
    named = {(method, path) for path, found in described["paths"].items() for method in found}
    of_agents = {one for one in named if one[1].startswith(PREFIX)}

    for_programs = {
        (method, path)
        for method, path in served
        if path.startswith(FOR_PROGRAMS) and not path.startswith(FOR_BROWSERS)
    }

    assert named - of_agents == for_programs
    assert of_agents == {("post", f"{PREFIX}v1/{{storeId}}"), ("post", f"{PREFIX}{{storeId}}")}


async def test_every_operation_has_a_name_of_its_own_and_says_who_may_call(
    described: dict[str, Any],
) -> None:
    operations = [one for path in described["paths"].values() for one in path.values()]
    names = Counter(one["operationId"] for one in operations if "operationId" in one)

    assert [name for name, times in names.items() if times > 1] == []
    assert [one["summary"] for one in operations if "security" not in one] == []


KEPT_WHOLE = {
    "ChatPlanAnswer.after": "what the tool's change would make of a thing",
    "ChatPlanAnswer.before": "what the thing was, as the tool shows it",
    "AuditAnswer.metadata": "what an event says besides",
    "CockpitAnswer.modules": "what a merchant told of a store, and what was made of it",
    "DeadLetterAnswer.payload": "a message, whatever its class",
    "LetterAct.payload": "a message, whatever its class",
    "DocumentAnswer.variables": "what a document of the platform is sent with",
    "FieldAnswer.value": "what a scan saw: a text, a number, a list, by the field",
    "InspectedActorAnswer.state": "an actor's state, whatever its kind",
    "MilestoneAnswer.result": "what a milestone came to, whatever it is",
    "OperationAnswer.result": "what the route of its kind answers with",
    "OrganizationAnswer.rules": "rules/accounts#members",
    "OrganizationDetailAnswer.rules": "rules/accounts#members",
    "ProposalAnswer.after": "how a thing of the shop would be, whatever it is",
    "ProposalAnswer.before": "how a thing of the shop is, whatever it is",
    "StateBeforeAnswer.before": "an actor's state, whatever its kind",
    "StateBeforeAnswer.now": "an actor's state, whatever its kind",
    "StateDifferenceAnswer.before": "a part of an actor's state",
    "StateDifferenceAnswer.now": "a part of an actor's state",
    "RpcAnswer.error.data": "of the protocol",
    "RpcAnswer.result": "of the protocol",
    "Rules": "rules/accounts#members",
    "RulesAnswer": "rules/accounts#members",
    "CompetitorDownloadAnswer.items[]": "rows as they are kept, of whatever was asked for",
    "OwnedRowsAnswer[][]": "rows as they are kept",
    "WholeProviderEventAnswer.payload": "an event as another service sent it",
    "StoreExportAnswer[][]": "rows as they are kept",
    "get /openapi.json": "OpenAPI's own shape",
}
"""Where an answer holds an object of any shape, and why; everything else is typed."""


def says_nothing(schema: dict[str, Any]) -> bool:
    if schema.get("additionalProperties") in (True, {}):
        return True
    if schema.get("type") == "object":
        return not ("properties" in schema or schema.get("additionalProperties"))
    return not schema.keys() & {"type", "$ref", "anyOf", "oneOf", "enum", "const"}


async def test_every_operation_says_what_it_answers_with_when_all_goes_well(
    described: dict[str, Any],
) -> None:
    bodiless, shapes = set[str](), list(described["components"]["schemas"].items())
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            answered = {
                code: one for code, one in operation["responses"].items() if code[0] in "23"
            }
            assert answered, f"{method} {path} says nothing of its success"
            for status, answer in answered.items():
                schemas = [one["schema"] for one in answer.get("content", {}).values()]
                shapes += [(f"{method} {path}", one) for one in schemas]
                if not schemas and status not in {"202", "204", "303", "304"}:
                    bodiless.add(f"{method} {path} {status}")
    free = {
        name + place
        for name, shape in shapes
        if name != "Problem"
        for place, schema in schemas_in(shape)
        if says_nothing(schema)
    }

    assert bodiless == set()
    assert free == KEPT_WHOLE.keys()


async def test_what_must_be_sent_is_said(described: dict[str, Any]) -> None:
    credits = described["paths"]["/api/credits"]["get"]["parameters"]

    assert [one["name"] for one in credits if one["required"]] == ["organizationId"]
    assert described["paths"]["/api/stores"]["post"]["requestBody"]["required"]


async def test_an_operation_names_its_refusals_with_their_codes(described: dict[str, Any]) -> None:
    bought = described["paths"]["/api/credits/purchase"]["post"]
    signed_up = described["paths"]["/api/auth/signup"]["post"]
    refusals = described["components"]["responses"]

    assert {"400", "401", "403", "409", "422", "default"} <= bought["responses"].keys()
    assert "Idempotency-Key" in [one["name"] for one in bought["parameters"]]
    assert "401" not in signed_up["responses"]
    assert "`insufficient_credits`" not in refusals["Conflict"]["description"]
    assert "`request_in_progress`" in refusals["Conflict"]["description"]
    assert {"Retry-After", "RateLimit"} <= refusals["TooManyRequests"]["headers"].keys()


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/api/admin/actors/{kind}/{id}/passivate", "Reason"),
        ("/api/admin/dead-letters/{id}/discard", "LetterAct"),
        ("/api/admin/dead-letters/groups/{fingerprint}/replay", "GroupAct"),
        ("/api/admin/listings/{listing_id}/suspend", "Reason"),
        ("/api/admin/listings/{listing_id}/verification/clear", "Reason"),
    ],
)
async def test_each_act_of_an_operator_is_an_operation_that_takes_a_reason(
    described: dict[str, Any], path: str, shape: str
) -> None:
    operation = described["paths"][path]["post"]

    assert [one["name"] for one in operation["parameters"]] == [
        part[1:-1] for part in path.split("/") if part.startswith("{")
    ]
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": f"#/components/schemas/{shape}"}
    assert described["components"]["schemas"][shape]["required"] == ["reason"]


async def test_raw_and_streamed_routes_answer_as_they_are_described(
    browser: httpx.AsyncClient, described: dict[str, Any]
) -> None:
    """Each is called as it is described, by nobody: what comes back is no 404, 405 or 5xx."""
    wrong: list[tuple[str, object]] = []
    for path in [one for one in described["paths"] if "webhooks" in one or "oauth" in one]:
        for method, operation in described["paths"][path].items():
            where = path.replace("{resource}", "api/mcp/v1/store_1").replace("{storeId}", "store_1")
            answer = await browser.request(method, where)
            kind = answer.headers["content-type"].partition(";")[0]
            kinds = {
                one
                for answered in operation["responses"].values()
                for one in (*answered.get("content", ()), "application/problem+json")
            }
            unset = (
                (answer.status_code, answer.json().get("code")) == (503, "missing_credential")
                if ("json" in kind)
                else False
            )
            if (answer.status_code in {404, 405} or answer.status_code >= 500) and not unset:
                wrong.append((path, answer.status_code))
            if kind not in kinds:
                wrong.append((path, kind))
    assert wrong == []
