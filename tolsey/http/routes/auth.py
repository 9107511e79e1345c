"""Signing up, in and out (contract section 3)."""

from typing import Any

import orjson
from quart import Blueprint, Response, request
from quart_schema import tag_blueprint, validate_request

from tolsey.actors.refusals import Conflict, Forbidden, Unauthorized
from tolsey.http import addresses, cookies, limits, policies
from tolsey.http.access import caller, public, session
from tolsey.http.api_model import Account, ApiModel, Email, Name, Password
from tolsey.http.context import new_id, now, service
from tolsey.http.views import organization_view, user_view
from tolsey.storage import accounts, audit, passwords, tokens
from tolsey.storage.accounts import OrganizationRow, UserRow
from tolsey.storage.database import Transaction
from tolsey.storage.sealed import fingerprint

routes = Blueprint("auth", __name__, url_prefix="/api/auth")
tag_blueprint(routes, ["Accounts"])


class Signup(Account):
    """Who signs up, and the name of their first organization."""

    organization_name: Name


class Login(ApiModel):
    """Who signs in."""

    email: Email
    password: Password


@routes.post("/signup")
@public
@validate_request(Signup)
@limits.limited(policies.ACCOUNT_CREATION)
async def signup(data: Signup) -> Response:
    """Make a user and their organization, and sign them in."""
    running, at = service(), now()
    password_hash = await passwords.hash_password(data.password)
    user_id, organization_id = new_id("usr"), new_id("org")
    async with running.database.transaction() as tx:
        if not await accounts.create_user(tx, user_id, data.email, password_hash, at):
            raise Conflict("There is an account with this e-mail address.", code="email_taken")
        await accounts.create_organization(tx, organization_id, data.organization_name, user_id, at)
        await audit.write(
            tx, "user.signed_up", user_id, organization_id=organization_id, actor=user_id
        )
        token = await _rotate(tx, user_id)
    user = UserRow(
        user_id,
        data.email,
        password_hash,
        banned=False,
        deletion_requested_at=None,
        created_at=at,
    )
    made = OrganizationRow(organization_id, data.organization_name, "free", {}, at, "owner")
    body = {"user": user_view(user), "organization": organization_view(made)}
    return _signed_in(body, token, 201)


@routes.post("/login")
@public
@validate_request(Login)
@limits.limited(policies.LOGINS)
async def login(data: Login) -> Response:
    """Sign a user in with a new session; the one the request came with ends."""
    running = service()
    await limits.admit(policies.LOGINS_PER_ACCOUNT, whose=_attempt(data.email))
    user = await accounts.find_user(running.database, data.email)
    if not await passwords.matches(data.password, user.password_hash if user else None) or not user:
        raise Unauthorized(
            "The e-mail address or the password is wrong.", code="invalid_credentials"
        )
    if user.banned:
        async with running.database.transaction() as tx:
            await tokens.end_all(tx, user.id)
        raise Forbidden("This account is banned.", code="banned")
    if user.deletion_requested_at is not None:
        raise Forbidden("This account is being deleted; restore it first.", code="account_deleted")
    renewed = (
        await passwords.hash_password(data.password)
        if passwords.is_outdated(user.password_hash)
        else None
    )
    async with running.database.transaction() as tx:
        if renewed is not None:
            await accounts.set_password_hash(tx, user.id, renewed)
        await audit.write(tx, "user.signed_in", user.id, actor=user.id)
        token = await _rotate(tx, user.id)
    return _signed_in({"user": user_view(user)}, token, 200)


@routes.post("/logout")
@public
async def logout() -> Response:
    """End the session of the request, if it has one."""
    token = cookies.session_token()
    if token is not None:
        async with service().database.transaction() as tx:
            user_id = await tokens.end(tx, token)
            if user_id is not None:
                await audit.write(tx, "user.signed_out", user_id, actor=user_id)
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


async def _rotate(tx: Transaction, user_id: str) -> str:
    """Open a new session and end the one the request came with, so that none is ever fixed."""
    former = cookies.session_token()
    if former is not None:
        await tokens.end(tx, former)
    return await tokens.begin(tx, user_id, now())


def _signed_in(body: dict[str, Any], token: str, status: int) -> Response:
    response = Response(orjson.dumps(body), status=status, content_type="application/json")
    cookies.give_session(response, token)
    return response


def _attempt(email: str) -> str:
    """Name who tries an account, by address and account: no one else can lock a user out."""
    client = addresses.identity(request.scope, service().settings.trusted_proxies)
    return f"login:{client}:{fingerprint(email).hex()[:32]}"
