"""Signing up, in and out (contract section 3)."""

from typing import Any

import orjson
from quart import Blueprint, Response
from quart_schema import tag_blueprint, validate_request

from tolsey.http.answers.views import organization_view, session_view, user_view
from tolsey.http.people import passwords, signing
from tolsey.http.people.passwords import Forgotten, PasswordChange, Reset
from tolsey.http.people.signing import Login, Signup
from tolsey.http.web import cookies
from tolsey.http.web.access import caller, public, session
from tolsey.http.web.context import now, service
from tolsey.storage.people import accounts, tokens

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


@routes.post("/password/forgot")
@public
@validate_request(Forgotten)
async def forgotten(data: Forgotten) -> Response:
    """Write a link that chooses a new password to whoever has the address; the answer is one."""
    await passwords.forgotten(data)
    return Response(b"", status=202)


@routes.post("/password/reset")
@public
@validate_request(Reset)
async def reset(data: Reset) -> Response:
    """Set a password by the token of a link, which works once and for an hour; sessions end."""
    await passwords.reset(data)
    return Response(b"", status=204)


@routes.post("/password")
@session
@validate_request(PasswordChange)
async def change(data: PasswordChange) -> Response:
    """Set another password; the user's other sessions end."""
    await passwords.change(data)
    return Response(b"", status=204)


@routes.get("/sessions")
@session
async def list_sessions() -> dict[str, Any]:
    """List where the caller is signed in: device, place and last use, to the hour."""
    found = await tokens.open_sessions(
        service().database, caller().user_id, cookies.session_token() or "", now()
    )
    return {"items": [session_view(one) for one in found], "nextCursor": None}


@routes.delete("/sessions/<session_id>")
@session
async def end_session(session_id: str) -> Response:
    """End one of the caller's sessions."""
    await signing.end_session(session_id)
    return Response(b"", status=204)


def _signed_in(body: dict[str, Any], token: str, status: int) -> Response:
    response = Response(orjson.dumps(body), status=status, content_type="application/json")
    cookies.give_session(response, token)
    return response
