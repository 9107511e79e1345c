"""What OpenAPI says of paths that describe themselves to nobody: raw ASGI, streams, OAuth's own shapes.

A test compares this, and what the routes say of themselves, with all that is served.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tolsey.http.answers.base import ApiAnswer
from tolsey.http.answers.people.oauth import (
    ClientAnswer,
    IntrospectionAnswer,
    OAuthErrorAnswer,
    ResourceMetadataAnswer,
    RevokedAnswer,
    ServerMetadataAnswer,
    TokensAnswer,
)

PROBLEM: Final = {"$ref": "#/components/responses/Problem"}
TEXT: Final = {"type": "string"}
OBJECT: Final = {"type": "object"}
FORM: Final = "application/x-www-form-urlencoded"
JSON: Final = "application/json"

Described = dict[str, Any]


def _parameter(name: str, place: str, *, required: bool = True) -> Described:
    return {"name": name, "in": place, "required": required, "schema": TEXT}


def _answer(description: str, schema: Described | None = None, kind: str = JSON) -> Described:
    answer: Described = {"description": description}
    if schema is not None:
        answer["content"] = {kind: {"schema": schema}}
    return answer


def _fields(*required: str, **others: Any) -> Described:
    properties = {**dict.fromkeys(required, TEXT), **others}
    return {"type": "object", "required": list(required), "properties": properties}


def _body(schema: Described, kind: str = JSON) -> Described:
    return {"required": True, "content": {kind: {"schema": schema}}}


def _receiver(summary: str, *said: str, headers: Sequence[Described], states: Any) -> Described:
    schema = {"type": "object", "required": ["status"], "properties": {"status": {"enum": states}}}
    return {
        "tags": ["Webhooks"],
        "summary": summary,
        "description": " ".join(said),
        "security": [],
        "parameters": list(headers),
        "requestBody": _body(OBJECT),
        "responses": {
            "200": _answer("What is to be kept is on disk, with its effects or before.", schema),
            "default": PROBLEM,
        },
    }


EVENTS: Final[Described] = {
    "post": _receiver(
        "Take a delivery of the commerce platform.",
        "The body is verified as the bytes it is: base64 of its HMAC-SHA256 under the secret of a",
        "store connected to the shop. `X-Commerce-*`, `X-Shopify-*` and `Shopify-*` mean the same;",
        "one family is used. A repeat of a delivery id answers `duplicate`.",
        headers=[
            _parameter(f"X-Commerce-{name}", "header", required=required)
            for name, required in (
                ("Topic", True),
                ("Hmac-Sha256", True),
                ("Shop-Domain", True),
                ("Webhook-Id", False),
                ("Event-Id", False),
                ("Triggered-At", False),
                ("API-Version", False),
            )
        ],
        states=["accepted", "duplicate"],
    )
}


def _asked(what: str, body: str) -> Described:
    return {
        "post": _receiver(
            what,
            f"The body is exactly {body}, signed under `COMMERCE_CLIENT_SECRET` and no other secret: base64",
            "of its HMAC-SHA256. The request is kept before anything is done about it; a repeat, or the same",
            "body while the first is worked on, answers `duplicate`.",
            headers=[
                _parameter("X-Commerce-Hmac-Sha256", "header"),
                _parameter("X-Commerce-Webhook-Id", "header", required=False),
            ],
            states=["accepted", "duplicate"],
        )
    }


PAYMENTS: Final[Described] = {
    "post": _receiver(
        "Take an event of the payment processor.",
        "The body is verified as the bytes it is, under any secret of `PAYMENTS_WEBHOOK_SECRET`,",
        "and must be signed within 300 seconds of now. A repeat of an event answers `duplicate`; a",
        "type that is not handled, a thin event, and an event of someone else answer `ignored`. An",
        "event that cannot be read answers 422, is kept as failed, and is read again when it is",
        "sent again.",
        headers=[_parameter("Stripe-Signature", "header")],
        states=["accepted", "duplicate", "ignored"],
    )
}


def _provided(what: str, proof: str, *names: str, variable: str) -> Described:
    return {
        "post": _receiver(
            what,
            f"The body is verified as the bytes it is, under any secret of `{variable}`: {proof}",
            "A repeat answers `duplicate`; an event without a name answers 422. Each is kept for a week.",
            headers=[_parameter(name, "header") for name in names],
            states=["accepted", "duplicate"],
        )
    }


MESSAGING: Final = _provided(
    "Take an event of the messaging service.",
    "hex of the HMAC-SHA256 of `v0:timestamp:body`, signed within 300 seconds of now. `url_verification` is answered with its `challenge`.",
    "X-Slack-Signature",
    "X-Slack-Request-Timestamp",
    variable="MESSAGING_WEBHOOK_SECRET",
)
MESSAGING["post"]["responses"]["200"]["content"][JSON]["schema"] = {
    "anyOf": [
        MESSAGING["post"]["responses"]["200"]["content"][JSON]["schema"],
        _fields("challenge"),
    ]
}

CREDENTIALS: Final = {"client_id": TEXT, "client_secret": TEXT}
"""For clients that prove themselves in the body; others do so by HTTP Basic (RFC 6749, 2.3.1)."""


def _shaped(answer: type[ApiAnswer], kind: str = JSON) -> Described:
    """Describe an answer by its class, which holds no other one."""
    return _answer(str(answer.__doc__), answer.model_json_schema(mode="serialization"), kind)


PROBLEM_KIND: Final = "application/problem+json"
PROBLEM_BODY: Final = {PROBLEM_KIND: {"schema": {"$ref": "#/components/schemas/Problem"}}}


def _or_problem(answer: Described) -> Described:
    """Say that what lies before the protocol refuses in the service's own shape."""
    return {**answer, "content": answer["content"] | PROBLEM_BODY}


OAUTH_ERROR: Final = _or_problem(_shaped(OAuthErrorAnswer))


def _oauth(summary: str, *, sends: Described | None, gives: Described, status: str = "200") -> Any:
    operation: Described = {
        "tags": ["OAuth"],
        "summary": summary,
        "security": [],
        "responses": {status: gives, "default": OAUTH_ERROR},
    }
    return operation if sends is None else {**operation, "requestBody": sends}


REDIRECT: Final = _answer("To the page that asks the user, or back to the client with an error.")
AUTHORIZE: Final[Described] = {
    "get": {
        "tags": ["OAuth"],
        "summary": "Ask a user to let a client in (RFC 6749, 4.1.1; PKCE by S256, RFC 8707).",
        "security": [],
        "parameters": [
            _parameter("response_type", "query"),
            _parameter("client_id", "query"),
            _parameter("redirect_uri", "query"),
            _parameter("code_challenge", "query"),
            _parameter("code_challenge_method", "query"),
            _parameter("resource", "query", required=False),
            _parameter("scope", "query", required=False),
            _parameter("state", "query", required=False),
        ],
        "responses": {
            "303": REDIRECT,
            "400": _or_problem(
                _answer("A page that says what is wrong with the link.", TEXT, "text/html")
            ),
            "default": PROBLEM,
        },
    }
}


RPC_ANSWER: Final = {
    "type": "object",
    "required": ["jsonrpc"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer", "null"]},
        "result": {"type": "object", "description": "as the revision of the protocol says"},
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "integer"},
                "message": TEXT,
                "data": {"type": "object", "description": "of the case"},
            },
        },
    },
}
RPC_REFERENCE: Final = {"$ref": "#/components/schemas/RpcAnswer"}
RPC: Final = {"oneOf": [RPC_REFERENCE, {"type": "array", "items": RPC_REFERENCE}]}
"""What agents are answered with (JSON-RPC 2.0, 5), alone or as a batch."""


def _for_agents(form: str) -> Described:
    stores = _parameter("storeId", "path")
    return {
        "post": {
            "tags": ["Agents"],
            "summary": "Speak the Model Context Protocol with a store.",
            "description": f"One message, or a batch where the revision has batches; {form}.",
            "security": [{"agent": []}],
            "parameters": [stores],
            "requestBody": _body({}),
            "responses": {
                "200": {
                    "description": "The answer, whole or as a stream.",
                    "content": {JSON: {"schema": RPC}, "text/event-stream": {"schema": TEXT}},
                },
                "202": _answer("A notification was taken."),
                "default": _or_problem(
                    _answer("An error of the protocol, or of who may call.", RPC_REFERENCE)
                ),
            },
        }
    }


DOCUMENT: Final = {
    "type": "object",
    "required": ["openapi", "info", "paths"],
    "properties": {"openapi": TEXT},
    "additionalProperties": True,
}

PATHS: Final[Mapping[str, Described]] = {
    "/api/webhooks/commerce/events": EVENTS,
    "/api/webhooks/commerce/redact": _asked(
        "Take a shop's wish to be forgotten.", "`{shop_id, shop_domain}`"
    ),
    "/api/webhooks/commerce/data-request": _asked(
        "Take a customer's question what is kept of them.",
        "`{shop_id, shop_domain, customer, orders_requested, data_request}`",
    ),
    "/api/webhooks/commerce/customer-redact": _asked(
        "Take a customer's wish to be forgotten.",
        "`{shop_id, shop_domain, customer, orders_to_redact}`",
    ),
    "/api/webhooks/payments": PAYMENTS,
    "/api/webhooks/mail": _provided(
        "Take an event of the mail provider.",
        "base64 of the HMAC-SHA256 of `id.timestamp.body` (Standard Webhooks), signed within 300 seconds of now. An address that bounces is written to no more.",
        "Webhook-Id",
        "Webhook-Timestamp",
        "Webhook-Signature",
        variable="MAIL_WEBHOOK_SECRET",
    ),
    "/api/webhooks/code-host": _provided(
        "Take an event of the code host.",
        "hex of its HMAC-SHA256. The same body is the same event.",
        "X-Hub-Signature-256",
        "X-GitHub-Event",
        variable="CODE_HOST_WEBHOOK_SECRET",
    ),
    "/api/webhooks/messaging": MESSAGING,
    "/api/webhooks/esign": _provided(
        "Take an event of the e-signature provider.",
        "base64 of the HMAC-SHA256 of `id.timestamp.body` (Standard Webhooks), signed within 300 seconds of now. The envelope is fetched again before it counts.",
        "Webhook-Id",
        "Webhook-Timestamp",
        "Webhook-Signature",
        variable="ESIGN_WEBHOOK_SECRET",
    ),
    "/api/webhooks/escrow": {
        "post": _receiver(
            "Take an event of the escrow provider.",
            "It is not signed: the transaction that it names is fetched again before it counts.",
            "A repeat answers `duplicate`; an event without a name answers 422. One of a transaction that no deal names is answered, and not kept.",
            headers=[],
            states=["accepted", "duplicate"],
        )
    },
    "/api/mcp/v1/{storeId}": _for_agents("the form that agents are told"),
    "/api/mcp/{storeId}": _for_agents("the form from before it, served for ever"),
    "/openapi.json": {
        "get": {
            "tags": ["Health"],
            "summary": "Answer with this description.",
            "security": [],
            "responses": {"200": _answer("An OpenAPI document.", DOCUMENT), "default": PROBLEM},
        }
    },
    "/.well-known/oauth-authorization-server": {
        "get": _oauth(
            "Describe the authorization server (RFC 8414).",
            sends=None,
            gives=_shaped(ServerMetadataAnswer),
        )
    },
    "/.well-known/oauth-protected-resource/{resource}": {
        "get": {
            **_oauth(
                "Describe a store's address for agents (RFC 9728).",
                sends=None,
                gives=_shaped(ResourceMetadataAnswer),
            ),
            "parameters": [_parameter("resource", "path")],
        }
    },
    "/oauth/authorize": AUTHORIZE,
    "/oauth/register": {
        "post": _oauth(
            "Register a client (RFC 7591).",
            sends=_body(
                {
                    "type": "object",
                    "required": ["redirect_uris"],
                    "properties": {
                        "redirect_uris": {"type": "array", "items": TEXT},
                        "client_name": TEXT,
                        "token_endpoint_auth_method": TEXT,
                        "grant_types": {"type": "array", "items": TEXT},
                        "response_types": {"type": "array", "items": TEXT},
                    },
                }
            ),
            gives=_shaped(ClientAnswer),
            status="201",
        )
    },
    "/oauth/token": {
        "post": _oauth(
            "Give tokens for a code or a refresh token (RFC 6749, 4.1.3 and 6).",
            sends=_body(
                _fields(
                    "grant_type",
                    **CREDENTIALS,
                    code=TEXT,
                    redirect_uri=TEXT,
                    code_verifier=TEXT,
                    refresh_token=TEXT,
                    resource=TEXT,
                    scope=TEXT,
                ),
                FORM,
            ),
            gives=_shaped(TokensAnswer),
        )
    },
    "/oauth/revoke": {
        "post": _oauth(
            "End what a token is part of (RFC 7009).",
            sends=_body(_fields("token", **CREDENTIALS), FORM),
            gives=_shaped(RevokedAnswer),
        )
    },
    "/oauth/introspect": {
        "post": _oauth(
            "Tell a client with a secret what one of its tokens is (RFC 7662).",
            sends=_body(_fields("token", **CREDENTIALS), FORM),
            gives=_shaped(IntrospectionAnswer),
        )
    },
}
