"""Choosing another password: what the API and the pages do alike (rules/accounts#passwords)."""

from typing import Annotated

from pydantic import Field

from tolsey.actors.refusals import Refusal, Unauthorized
from tolsey.http.web import limits, policies
from tolsey.http.web.access import caller
from tolsey.http.web.api_model import PASSWORD_CHARACTERS, ApiModel, Email, Password
from tolsey.http.web.callers import cookies
from tolsey.http.web.context import now, service
from tolsey.storage import audit
from tolsey.storage.oauth import grants
from tolsey.storage.people import accounts, api_keys, passwords, resets, tokens

NewPassword = Annotated[Password, Field(min_length=PASSWORD_CHARACTERS)]


class Forgotten(ApiModel):
    """Whose password was forgotten."""

    email: Email


class Reset(ApiModel):
    """The token of a link, and the password that takes the old one's place."""

    token: Annotated[str, Field(max_length=tokens.TOKEN_CHARACTERS, repr=False)]
    password: NewPassword


class PasswordChange(ApiModel):
    """The password as it is, and as it is to be."""

    current: Password
    password: NewPassword


class InvalidToken(Refusal):
    """A link is used up, too old, or not ours."""

    code = "invalid_token"

    def __init__(self) -> None:
        super().__init__("This link was already used or has expired. Request a new one.")


async def forgotten(wanted: Forgotten) -> None:
    """Have a link written, one an hour; nothing tells whether anyone has the address; 429, 503."""
    service().mail.require()
    await limits.admit(policies.PASSWORD_MAILS)
    await service().mail.ask_for_reset(wanted.email)


async def require_open(token: str) -> None:
    """Refuse a link that works no more; 400."""
    if not await resets.is_open(service().database, token, now()):
        raise InvalidToken


async def reset(wanted: Reset) -> None:
    """Set a password by a link, once, and end every session, agent and key of its user; 400, 429."""
    await limits.admit(policies.PASSWORD_RESETS)
    await require_open(wanted.token)
    password_hash = await passwords.hash_password(wanted.password)
    async with service().database.transaction() as tx:
        user_id = await resets.use(tx, wanted.token, now())
        if user_id is None:
            raise InvalidToken
        await accounts.set_password_hash(tx, user_id, password_hash)
        await tokens.end_all(tx, user_id)
        # Who had the old password may have let agents in, and made keys.
        await grants.end_all(tx, user_id, "password", actor=user_id, at=now())
        await api_keys.end_all(tx, user_id, actor=user_id, at=now())
        await audit.write(tx, "user.password_reset", user_id, actor=user_id)
    await service().agents.access_tokens.forget()


async def change(wanted: PasswordChange) -> None:
    """Set the caller's password, and end every other session of theirs; 401, 429."""
    await limits.admit(policies.PASSWORD_CHANGES)
    user = await accounts.find_user(service().database, caller().email)
    known = user.password_hash if user else None
    if not await passwords.matches(wanted.current, known):
        raise Unauthorized(
            "The current password is incorrect. Check it and try again.", code="invalid_credentials"
        )
    password_hash = await passwords.hash_password(wanted.password)
    user_id = caller().user_id
    async with service().database.transaction() as tx:
        await accounts.set_password_hash(tx, user_id, password_hash)
        await tokens.end_others(tx, user_id, cookies.session_token() or "")
        await resets.forget(tx, user_id)
        await audit.write(tx, "user.password_changed", user_id, actor=user_id)
