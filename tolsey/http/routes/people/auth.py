"""Signing up, in and out (contract section 3)."""

from typing import Any

import orjson
from quart import Blueprint, Response
from quart_schema import tag_blueprint, validate_request

from tolsey.http import cookies, signing
from tolsey.http.access import caller, public, session
from tolsey.http.context import service
from tolsey.http.signing import Login, Signup
from tolsey.http.views import organization_view, user_view
from tolsey.storage.people import accounts

routes = Blueprint("auth", __name__, url_prefix="/api/auth")
tag_blueprint(routes, ["Accounts"])


@routes.post("/signup")
@public
@validate_request(Signup)
async def signup(data: Signup) -> Response:
    """Make a user and their organization, and sign them in."""
    made = await signing.sign_up(data)
    body = {"user": user_view(made.user), "organization": organization_view(made.organization)}
    return _signed_in(body, made.token, 201)


@routes.post("/login")
@public
@validate_request(Login)
async def login(data: Login) -> Response:
    """Sign a user in with a new session; the one the request came with ends."""
    found = await signing.sign_in(data)
    return _signed_in({"user": user_view(found.user)}, found.token, 200)


@routes.post("/logout")
@public
async def logout() -> Response:
    """End the session of the request, if it has one."""
    await signing.sign_out()
    response = Response(b"", status=204)
    cookies.take_session(response)
    return response


@routes.get("/session")
@session
async def current() -> dict[str, Any]:
    """Tell who is signed in, and the organizations they belong to."""
    signed_in = caller()
    found = await accounts.organizations_of(service().database, signed_in.user_id, "", 200)
    return {
        "user": {"id": signed_in.user_id, "email": signed_in.email},
        "organizations": [organization_view(organization) for organization in found],
    }


def _signed_in(body: dict[str, Any], token: str, status: int) -> Response:
    response = Response(orjson.dumps(body), status=status, content_type="application/json")
    cookies.give_session(response, token)
    return response
