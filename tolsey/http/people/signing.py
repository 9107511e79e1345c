"""Signing up, in and out: what the API and the pages do alike (rules/accounts#sessions)."""

from dataclasses import dataclass

from quart import request

from tolsey.actors.refusals import Conflict, Forbidden, NotFound, Unauthorized
from tolsey.http.layout.answers import asked_language
from tolsey.http.web import limits, policies
from tolsey.http.web.access import caller
from tolsey.http.web.api_model import Account, ApiModel, Email, Name, Password
from tolsey.http.web.callers import addresses, cookies
from tolsey.http.web.context import new_id, now, service
from tolsey.storage import audit
from tolsey.storage.database import Transaction
from tolsey.storage.oauth import grants
from tolsey.storage.people import accounts, passwords, tokens
from tolsey.storage.people.accounts import OrganizationRow
from tolsey.storage.records.people import UserRow
from tolsey.storage.sealing.sealed import fingerprint


class Signup(Account):
    """Who signs up, and the name of their first organization."""

    organization_name: Name


class Login(ApiModel):
    """Who signs in."""

    email: Email
    password: Password


@dataclass(frozen=True, slots=True)
class SignedUp:
    """A user just made, their organization, and the token of their session."""

    user: UserRow
    organization: OrganizationRow
    token: str


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A user, and the token of their new session."""

    user: UserRow
    token: str


async def sign_up(wanted: Signup) -> SignedUp:
    """Make a user and their organization, and sign them in; 409 for a taken address, 429."""
    await limits.admit(policies.ACCOUNT_CREATION)
    running, at = service(), now()
    password_hash = await passwords.hash_password(wanted.password)
    user_id, organization_id = new_id("usr"), new_id("org")
    name = wanted.organization_name
    async with running.database.transaction() as tx:
        if not await accounts.create_user(tx, user_id, wanted.email, password_hash, at):
            raise Conflict(
                "An account with this email address already exists. Sign in, or use another"
                " address.",
                code="email_taken",
            )
        await accounts.create_organization(tx, organization_id, name, user_id, at)
        await audit.write(
            tx, "user.signed_up", user_id, organization_id=organization_id, actor=user_id
        )
        token = await _begin(tx, user_id)
    user = UserRow(
        id=user_id,
        email=wanted.email,
        password_hash=password_hash,
        banned=False,
        deletion_requested_at=None,
        created_at=at,
    )
    return SignedUp(
        user,
        OrganizationRow(
            id=organization_id, name=name, plan="free", rules={}, created_at=at, role="owner"
        ),
        token,
    )


async def proven(wanted: Login) -> UserRow:
    """Find whose address and password these are; 401, 403 for who is banned, 429."""
    await limits.admit(policies.LOGINS)
    running = service()
    await limits.admit(policies.LOGINS_PER_ACCOUNT, whose=_attempt(wanted.email))
    user = await accounts.find_user(running.database, wanted.email)
    password_hash = user.password_hash if user else None
    if not await passwords.matches(wanted.password, password_hash) or not user:
        raise Unauthorized(
            "The email address or the password is incorrect. Check both and try again.",
            code="invalid_credentials",
        )
    if user.banned:
        async with running.database.transaction() as tx:
            await tokens.end_all(tx, user.id)
        raise Forbidden(
            "This account was suspended by an operator. Contact support.", code="banned"
        )
    return user


async def sign_in(wanted: Login) -> SignedIn:
    """Sign a user in with a new session, and end the one the request came with; 401, 403, 429."""
    running, user = service(), await proven(wanted)
    if user.deletion_requested_at is not None:
        raise Forbidden(
            "This account is scheduled for deletion. Restore it to sign in again.",
            code="account_deleted",
        )
    renewed = (
        await passwords.hash_password(wanted.password)
        if passwords.is_outdated(user.password_hash)
        else None
    )
    async with running.database.transaction() as tx:
        if renewed is not None:
            await accounts.set_password_hash(tx, user.id, renewed)
        await audit.write(tx, "user.signed_in", user.id, actor=user.id)
        token = await _begin(tx, user.id)
    return SignedIn(user, token)


async def sign_out() -> None:
    """End the session of the request, if it has one, and what its user lets agents do.

    RFC 9700, 4.14: who signs out leaves nothing open behind them.
    """
    token = cookies.session_token()
    if token is None:
        return
    async with service().database.transaction() as tx:
        user_id = await tokens.end(tx, token)
        if user_id is None:
            return
        await audit.write(tx, "user.signed_out", user_id, actor=user_id)
        ended = await grants.end_all(tx, user_id, "logout", actor=user_id, at=now())
    if ended:
        await service().agents.access_tokens.forget()


async def end_session(session_id: str) -> None:
    """End one of the caller's sessions; 404."""
    user_id = caller().user_id
    async with service().database.transaction() as tx:
        if not await tokens.end_one(tx, user_id, session_id):
            raise NotFound(
                "This session doesn't exist or has already ended. Reload the list of sessions."
            )
        await audit.write(tx, "user.session_ended", user_id, actor=user_id)


async def end_other_sessions() -> None:
    """End every session of the caller but the one that asks."""
    user_id = caller().user_id
    async with service().database.transaction() as tx:
        await tokens.end_others(tx, user_id, cookies.session_token() or "")
        await audit.write(tx, "user.other_sessions_ended", user_id, actor=user_id)


async def _begin(tx: Transaction, user_id: str) -> str:
    """Open a session, and keep in which language its browser reads: mails are written in it."""
    if language := asked_language():
        await accounts.set_language(tx, user_id, language)
    return await _rotate(tx, user_id)


async def _rotate(tx: Transaction, user_id: str) -> str:
    """Open a new session and end the one the request came with, so that none is ever fixed."""
    former = cookies.session_token()
    if former is not None:
        await tokens.end(tx, former)
    return await tokens.begin(
        tx,
        user_id,
        now(),
        device=request.headers.get("User-Agent", ""),
        place=addresses.identity(request.scope, service().settings.believed_proxies),
    )


def _attempt(email: str) -> str:
    """Name who tries an account, by address and account: no one else can lock a user out."""
    client = addresses.identity(request.scope, service().settings.believed_proxies)
    return f"login:{client}:{fingerprint(email).hex()[:32]}"
