"""The endpoints of the authorization server that programs call (rules/agents#authorization)."""

from http import HTTPStatus
from typing import Final, cast

from quart import Blueprint, Response, request

from tolsey.http.answers.people.oauth import OAuthAnswer, OAuthErrorAnswer, RevokedAnswer
from tolsey.http.oauth import clients, metadata, parameters
from tolsey.http.oauth.parameters import InvalidClient, OAuthError
from tolsey.http.oauth.resources import METADATA
from tolsey.http.web import limits, policies
from tolsey.http.web.access import public
from tolsey.http.web.context import now, service
from tolsey.http.web.json import MalformedJson, parse
from tolsey.http.web.limits import TooManyRequests

FORM: Final = "application/x-www-form-urlencoded"
REGISTRATION_BYTES: Final = 64 * 1024
CORS: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, MCP-Protocol-Version",
    "Access-Control-Max-Age": "86400",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
"""Clients in browsers may call from anywhere: no cookie opens anything here."""
HOLDS: Final = "public, max-age=3600"

routes = Blueprint("oauth", __name__)


@routes.get("/.well-known/oauth-authorization-server", provide_automatic_options=False)
@public
async def server_metadata() -> Response:
    """Describe the authorization server (RFC 8414)."""
    return _said(metadata.of_server(_issuer()), holds=True)


@routes.get(f"{METADATA}/<path:resource>", provide_automatic_options=False)
@public
async def resource_metadata(resource: str) -> Response:
    """Describe one form of a store's address (RFC 9728), whether the store is there or not."""
    resources = service().agents.resources
    found = resources.described(f"{METADATA}/{resource}", host=request.host, on_subaddress=False)
    if found is None:
        return _said(OAuthErrorAnswer(error="not_found"), HTTPStatus.NOT_FOUND)
    return _said(metadata.of_resource(found, _issuer()), holds=True)


@routes.post("/oauth/register", provide_automatic_options=False)
@public
async def register() -> Response:
    """Register a client (RFC 7591)."""
    await limits.admit(policies.AGENT_REGISTRATION)
    body = cast("bytes", await request.get_data(as_text=False))
    if len(body) > REGISTRATION_BYTES:
        raise OAuthError(
            "invalid_client_metadata", "The request body is too large. Send a smaller one.", 413
        )
    try:
        said = parse(body)
    except MalformedJson as error:
        raise OAuthError(
            "invalid_client_metadata", "The request body is not valid JSON. Correct its syntax."
        ) from error
    made = await clients.register(service().database, said, now())
    return _said(made, HTTPStatus.CREATED)


@routes.post("/oauth/token", provide_automatic_options=False)
@public
async def token() -> Response:
    """Give tokens for a code or a refresh token (RFC 6749, 4.1.3 and 6)."""
    await limits.admit(policies.AGENT_TOKENS)
    sent = await _form()
    agents, at = service().agents, now()
    client = await agents.clients.prove(request.headers.get("Authorization"), sent)
    match parameters.needed(sent, "grant_type"):
        case "authorization_code":
            tokens = await agents.server.redeem(client, sent, at)
        case "refresh_token":
            tokens = await agents.server.rotate(client, sent, at)
        case _:
            raise OAuthError(
                "unsupported_grant_type",
                "This grant type isn't supported. Use authorization_code or refresh_token.",
            )
    return _said(tokens.body)


@routes.post("/oauth/revoke", provide_automatic_options=False)
@public
async def revoke() -> Response:
    """End what a token is part of; any token of nobody's is answered alike (RFC 7009)."""
    await limits.admit(policies.AGENT_TOKENS)
    sent = await _form()
    agents = service().agents
    client = await agents.clients.prove(request.headers.get("Authorization"), sent)
    await agents.server.revoke(client, parameters.needed(sent, "token"), now())
    return _said(RevokedAnswer())


@routes.post("/oauth/introspect")
@public
async def introspect() -> Response:
    """Tell a confidential client what one of its tokens is (RFC 7662)."""
    await limits.admit(policies.AGENT_TOKENS)
    sent = await _form()
    agents = service().agents
    client = await agents.clients.prove(request.headers.get("Authorization"), sent)
    if client.secret_hash is None:
        raise InvalidClient(
            "Only a client with a client secret can call this endpoint. Authenticate with the"
            " secret."
        )
    token = parameters.needed(sent, "token")
    return _said(await agents.server.introspect(client, token, now()))


@routes.errorhandler(OAuthError)
async def refused(error: OAuthError) -> Response:
    """Answer in OAuth's own shape (RFC 6749, 5.2)."""
    response = _said(error.body, error.status)
    if isinstance(error, InvalidClient):
        response.headers["WWW-Authenticate"] = 'Basic realm="tolsey"'
    return response


@routes.errorhandler(TooManyRequests)
async def too_many(error: TooManyRequests) -> Response:
    """Answer a flood in OAuth's own shape."""
    body = OAuthErrorAnswer(error="temporarily_unavailable", error_description=error.detail)
    response = _said(body, HTTPStatus.TOO_MANY_REQUESTS)
    response.headers["Retry-After"] = str(error.fields["retryAfter"])
    return response


@routes.route("/.well-known/oauth-authorization-server", methods=["OPTIONS"])
@routes.route(f"{METADATA}/<path:resource>", methods=["OPTIONS"])
@routes.route("/oauth/register", methods=["OPTIONS"])
@routes.route("/oauth/token", methods=["OPTIONS"])
@routes.route("/oauth/revoke", methods=["OPTIONS"])
@public
async def preflight(resource: str = "") -> Response:
    """Let pages of anywhere call (Fetch, "CORS-preflight request")."""
    del resource
    return Response(status=HTTPStatus.NO_CONTENT, headers=CORS)


def _issuer() -> str:
    return service().settings.base_url.rstrip("/")


async def _form() -> dict[str, str]:
    if request.mimetype != FORM:
        raise OAuthError(
            "invalid_request", f"The parameters have the wrong content type. Send them as {FORM}."
        )
    body = cast("bytes", await request.get_data(as_text=False))
    if len(body) > parameters.MOST_BYTES:
        raise OAuthError(
            "invalid_request", "The request body is too large. Send a smaller one.", 413
        )
    return parameters.parse(body)


def _said(body: OAuthAnswer, status: int = 200, *, holds: bool = False) -> Response:
    response = Response(body.model_dump_json(), status=status, mimetype="application/json")
    response.headers.update(CORS)
    response.headers["Cache-Control"] = HOLDS if holds else "no-store"
    return response
