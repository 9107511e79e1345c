"""Signing up, in and out (rules/accounts#sessions)."""

from collections.abc import Callable
from functools import partial
from typing import Any

from quart import Blueprint, Response, after_this_request
from quart_schema import tag_blueprint

from tolsey.http.answers.base import Accepted, Created, ListAnswer, NoBody, NoContent
from tolsey.http.answers.people.members import (
    CallerAnswer,
    OpenSessionAnswer,
    OrganizationAnswer,
    SessionAnswer,
    SignedInAnswer,
    SignedUpAnswer,
    UserAnswer,
)
from tolsey.http.people import passwords, signing
from tolsey.http.people.passwords import Forgotten, PasswordChange, Reset
from tolsey.http.people.signing import Login, Signup
from tolsey.http.web.access import caller, public, session
from tolsey.http.web.callers import cookies
from tolsey.http.web.context import now, service
from tolsey.storage.people import accounts, tokens

routes = Blueprint("auth", __name__, url_prefix="/api/auth")
tag_blueprint(routes, ["Accounts"])


@routes.post("/signup")
@public
async def signup(data: Signup) -> tuple[SignedUpAnswer, Created]:
    """Make a user and their organization, and sign them in."""
    made = await signing.sign_up(data)
    _dress(partial(cookies.give_session, token=made.token))
    user, organization = UserAnswer.read(made.user), OrganizationAnswer.read(made.organization)
    return SignedUpAnswer(user=user, organization=organization), 201


@routes.post("/login")
@public
async def login(data: Login) -> SignedInAnswer:
    """Sign a user in with a new session; the one the request came with ends."""
    found = await signing.sign_in(data)
    _dress(partial(cookies.give_session, token=found.token))
    return SignedInAnswer(user=UserAnswer.read(found.user))


@routes.post("/logout")
@public
async def logout() -> tuple[NoBody, NoContent]:
    """End the session of the request, if it has one."""
    await signing.sign_out()
    _dress(cookies.take_session)
    return "", 204


@routes.get("/session")
@session
async def current() -> SessionAnswer:
    """Tell who is signed in, and the organizations they belong to."""
    signed_in = caller()
    found = await accounts.organizations_of(service().database, signed_in.user_id, "", 200)
    return SessionAnswer(
        user=CallerAnswer(id=signed_in.user_id, email=signed_in.email),
        organizations=[OrganizationAnswer.read(organization) for organization in found],
    )


@routes.post("/password/forgot")
@public
async def forgotten(data: Forgotten) -> tuple[NoBody, Accepted]:
    """Write a link that chooses a new password to whoever has the address; the answer is one."""
    await passwords.forgotten(data)
    return "", 202


@routes.post("/password/reset")
@public
async def reset(data: Reset) -> tuple[NoBody, NoContent]:
    """Set a password by the token of a link, which works once and for an hour; sessions end."""
    await passwords.reset(data)
    return "", 204


@routes.post("/password")
@session
async def change(data: PasswordChange) -> tuple[NoBody, NoContent]:
    """Set another password; the user's other sessions end."""
    await passwords.change(data)
    return "", 204


@routes.get("/sessions")
@session
async def list_sessions() -> ListAnswer[OpenSessionAnswer]:
    """List where the caller is signed in: device, place and last use, to the hour."""
    found = await tokens.open_sessions(
        service().database, caller().user_id, cookies.session_token() or "", now()
    )
    return ListAnswer(items=[OpenSessionAnswer.of(one) for one in found], next_cursor=None)


@routes.delete("/sessions/<session_id>")
@session
async def end_session(session_id: str) -> tuple[NoBody, NoContent]:
    """End one of the caller's sessions."""
    await signing.end_session(session_id)
    return "", 204


def _dress(change: Callable[[Response], None]) -> None:
    """Change the answer of this request, once it is made."""

    @after_this_request
    async def dressed(response: Any) -> Any:
        change(response)
        return response
