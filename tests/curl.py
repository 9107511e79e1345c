"""Writes an example for `curl` of every route, out of what `/openapi.json` says: `python -m tests.curl --write`.

They stand in `docs/api.md` below a line that says so; a test runs them.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.described import described

PAGE: Final = Path(__file__).parent.parent / "docs" / "api.md"
MARK: Final = "<!-- written by `python -m tests.curl --write` -->\n"
JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
KEY: Final = "Idempotency-Key"
SAFE: Final = frozenset({"get", "head"})
SESSION_GIVEN: Final = frozenset({"/api/auth/signup", "/api/auth/login"})
SESSION_TAKEN: Final = "/api/auth/logout"

VARIABLES: Final[Mapping[str, str]] = {
    "accessToken": "ACCESS_TOKEN",
    "client_id": "CLIENT_ID",
    "cron": "CRON_SECRET",
    "deal_id": "DEAL_ID",
    "event_id": "EVENT_ID",
    "listing_id": "LISTING_ID",
    "item": "ITEM",
    "metrics": "METRICS_TOKEN",
    "offer_id": "OFFER_ID",
    "signature_id": "SIGNATURE_ID",
    "organizationId": "ORGANIZATION_ID",
    "organization_id": "ORGANIZATION_ID",
    "session_id": "SESSION_ID",
    "slug": "SLUG",
    "storeId": "STORE_ID",
    "store_id": "STORE_ID",
    "token": "TOKEN",
    "user_id": "USER_ID",
}
"""What only the reader knows, by the names of fields and parameters."""
WORDS: Final[Mapping[str, Any]] = {
    "cadence": "monthly",
    "clientId": "8a1f0c",
    "clientSecret": "shpss_0123456789abcdef0123456789abcdef",
    "code": "BCDF-GHJK-LM",
    "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    "code_challenge_method": "S256",
    "content": "What sold best this month?",
    "current": "correct horse battery",
    "domain": "shop.example.com",
    "email": "ann@example.com",
    "grant_type": "refresh_token",
    "name": "Corner shop",
    "organizationName": "Ann's",
    "password": "correct horse battery",
    "paymentRef": "pi_1",
    "plan": "pro",
    "provider": "commerce",
    "recipient": "ann@example.com",
    "reason": "Asked for by the customer.",
    "redirect_uri": "http://127.0.0.1:9000/back",
    "redirect_uris": ["http://127.0.0.1:9000/back"],
    "resource": "api/mcp/v1/$STORE_ID",
    "response_type": "code",
    "restrictedKey": "rk_live_0123456789abcdef",
    "shopDomain": "corner.myshopify.com",
    "slot": 7,
    "title": "A corner shop",
}
"""Words that an example says, by the same names."""
OF_OPERATION: Final[Mapping[str, Mapping[str, Any]]] = {
    "/api/admin/live": {"looks": 1},
    "/api/status/subscribe": {"email": "ann@example.com"},
    "/api/admin/actors/{kind}/{id}": {"kind": "store", "id": "$STORE_ID"},
    "/api/admin/credits/adjust": {"amount": 1_000_000},
    "/api/credits/purchase": {"amount": {"amount": 2_000, "currency": "USD"}},
    "/api/affiliate/redeem": {"organizationId": "$ORGANIZATION_ID"},
    "/api/integrations/commerce/custom-app": {
        "clientId": "8a1f0c",
        "clientSecret": "shpss_0123456789abcdef0123456789abcdef",
    },
    "/api/admin/devstore-pool": {
        "clientId": "8a1f0c",
        "clientSecret": "shpss_0123456789abcdef0123456789abcdef",
    },
    "/api/sell/listings": {"askingPrice": {"amount": 12_000_000, "currency": "USD"}},
    "/api/marketplace/signatures": {
        "typedName": "Ann Owner",
        "consentVersion": "esign-consent-2026-01",
        "documentSha256": "0" * 64,
    },
    "/api/marketplace/deals/{deal_id}/files": {"name": "books.pdf"},
    "/api/marketplace": {"amount": {"amount": 9_000_000, "currency": "USD"}},
    "/api/admin/organizations/{organization_id}/contract": {"plan": "free"},
    "/api/chat/plans": {"plan": "$PLAN"},
    "/api/cron/{name}": {"name": "daily-bonus"},
    "/api/admin/crons/{name}/run": {"name": "daily-bonus"},
    "/api/admin/provider-events/{provider}/{event_id}": {"provider": "mail"},
    "/api/organizations": {"name": "Ann's other business"},
    "/api/organizations/{organization_id}": {"name": "Ann and Bob's"},
    "/api/stores/{store_id}/memory": {
        "key": "brand.voice",
        "query": "parcels",
        "text": "Parcels leave on Mondays.",
        "value": "Dry and kind",
    },
    "/api/wizard/skill/run": {"skill": "brand-kit"},
    "/api/wizard/store/checkpoint": {"milestone": "brand.approve", "action": "done"},
    "/api/wizard/store/launch": {
        "spec": {
            "businessName": "Corner shop",
            "country": "US",
            "shipping": {"countries": ["US", "CA"], "flatRate": "6.50", "freeFrom": "80"},
        },
        "brandKit": {"tagline": "Good things, near you."},
    },
    "/api/wizard/store/{store_id}": {
        "spec": {"businessName": "Corner shop & Sons", "country": "US"},
    },
    "/api/mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
}
"""Where a name says something else, or is said though nobody must, by how a path begins; the longest counts."""


PROOFS: Final[Mapping[str, str]] = {
    "apiKey": "Authorization: Bearer $API_KEY",
    "cronSecret": "Authorization: Bearer $CRON_SECRET",
    "metricsToken": "Authorization: Bearer $METRICS_TOKEN",
    "queueSignature": "Queue-Signature: $QUEUE_SIGNATURE",
}
"""The header that proves who calls, by the scheme of a route."""


def example(path: str, method: str, operation: Mapping[str, Any]) -> str:
    """Write how an operation is called from a shell."""
    return " \\\n  ".join(_parts(path, method, operation))


def _parts(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    address, parameters = path, operation.get("parameters", ())
    asked = list[str]()
    for one in parameters:
        value = str(_value(path, one["name"], one["schema"]))
        if one["in"] == "path":
            address = address.replace(f"{{{one['name']}}}", value)
        elif one["in"] == "query" and one.get("required"):
            asked.append(f"{one['name']}={value}")
    address += "?" + "&".join(asked) if asked else ""
    yield f'curl {"" if method == "get" else f"-X {method.upper()} "}"$TOLSEY{address}"'
    yield from _proof(path, method, operation)
    for one in parameters:
        if one["in"] == "header" and one.get("required"):
            yield f'-H "{one["name"]}: ${one["name"].upper().replace("-", "_")}"'
        elif one["name"] == KEY:
            yield f"-H '{KEY}: {operation['operationId']}-1'"
    yield from _body(path, operation)


def _proof(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    """Say who calls; a session comes with the origin of who uses it (rules/accounts#sessions)."""
    for scheme in operation.get("security", ()):
        match next(iter(scheme)):
            case "session":
                yield "-b session.txt"
                if method not in SAFE:
                    yield '-H "Origin: $TOLSEY"'
            case "agent":
                yield '-H "Authorization: Bearer $ACCESS_TOKEN"'
                yield "-H 'Accept: application/json, text/event-stream'"
            case name:
                yield f'-H "{PROOFS[name]}"'
    if path in SESSION_GIVEN:
        yield "-c session.txt"
    if path == SESSION_TAKEN:
        yield '-b session.txt -H "Origin: $TOLSEY"'


def _body(path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    if "requestBody" not in operation:
        return
    ((kind, content),) = operation["requestBody"]["content"].items()
    fields = _value(path, "", content["schema"])
    if kind == FORM:
        for name, value in fields.items():
            yield f'--data-urlencode "{name}={value}"'
        return
    yield f"-H 'Content-Type: {kind}'"
    yield f"-d {_quoted(json.dumps(fields))}"


def _quoted(text: str) -> str:
    """Write a text for a shell: as it is, but for the variables in it."""
    parts = list[str]()
    for index, part in enumerate(text.replace("'", "'\\''").split("$")):
        name = "".join(_leading(part)) if index else ""
        parts.append((f"'\"${name}\"'" if index else "") + part[len(name) :])
    return "'" + "".join(parts) + "'"


def _leading(part: str) -> Iterator[str]:
    for letter in part:
        if not (letter.isupper() or letter == "_"):
            return
        yield letter


def _value(path: str, name: str, schema: Mapping[str, Any]) -> Any:
    """Choose what an example says: what is known of the name, else the first that the schema takes."""
    said = _said(path)
    if name in said:
        return said[name]
    if not name and "jsonrpc" in said:
        return said
    return f"${VARIABLES[name]}" if name in VARIABLES else _first(path, name, schema)


def _first(path: str, name: str, schema: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        schema = described()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    match schema:
        case {"const": value} | {"enum": [value, *_]}:
            return value
        case {"type": "object"}:
            fields = schema.get("properties", {})
            needed = {*schema.get("required", ()), *_said(path)}
            return {each: _value(path, each, fields[each]) for each in fields if each in needed}
        case {"type": "array", "items": items} if name not in WORDS:
            return [_value(path, "", items)]
        case {"anyOf": [*_, {"type": "null"}]}:
            return None
    usual = {"integer": 1, "boolean": True}.get(schema.get("type", ""), f"${_shouted(name)}")
    return WORDS.get(name, usual)


def _said(path: str) -> Mapping[str, Any]:
    known = [part for part in OF_OPERATION if path.startswith(part)]
    return OF_OPERATION[max(known, key=len)] if known else {}


def _shouted(name: str) -> str:
    return "".join(f"_{one}" if one.isupper() else one for one in name).upper() or "ID"


def examples() -> Iterator[tuple[str, str, str]]:
    """Give the path, the method and the example of every operation, as `/openapi.json` has them."""
    for path, operations in described()["paths"].items():
        for method, operation in sorted(operations.items()):  # the framework has them in a set
            yield path, method, example(path, method, operation)


def written() -> str:
    """Write the part of the page that is made of the description."""
    parts = list[str]()
    by_tag: dict[str, list[str]] = {}
    for path, method, text in examples():
        operation = described()["paths"][path][method]
        tag = (operation.get("tags") or ["Others"])[0]
        # Beside the command, not in it: whoever types a comment into zsh calls a program `#`.
        said = f"{operation['summary']}\n\n```sh\n{text}\n```\n"
        by_tag.setdefault(tag, []).append(said)
    for tag, found in by_tag.items():
        parts.append(f"### {tag}\n\n" + "\n".join(found))
    return MARK + "\n" + "\n".join(parts)


def main() -> None:
    """Write the examples into the page, or say that they are not what the routes are."""
    head = PAGE.read_text().partition(MARK)[0]
    wanted = head + written()
    if "--write" in sys.argv:
        PAGE.write_text(wanted)
    elif PAGE.read_text() != wanted:
        sys.exit("docs/api.md is not what the routes are: python -m tests.curl --write")


if __name__ == "__main__":
    main()
