"""Signing up, in and out in a browser, without a script."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from quart import Blueprint, Response, request

from tolsey.actors.refusals import Conflict, Refusal
from tolsey.http.layout import forms
from tolsey.http.layout.answers import (
    HOME,
    answer_with_pages,
    filled_again,
    login_address,
    sent_on,
    shown,
)
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.people import memberships, passwords, signing
from tolsey.http.people.passwords import Forgotten, Reset
from tolsey.http.people.signing import Login, Signup
from tolsey.http.web import api_model
from tolsey.http.web.access import identify, public
from tolsey.http.web.callers import cookies

OWN_PATH: Final = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,2047}")
"""A path and query of ours: no host, no backslash (browsers read it as a slash), no blank."""

routes = Blueprint("account_pages", __name__)
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class AccountForm(Page):
    """A form of an account: as it was sent, where it leads to, and the address of the other form."""

    filled: Filled
    next_path: str
    elsewhere: str
    email_characters = api_model.EMAIL_CHARACTERS
    name_characters = api_model.NAME_CHARACTERS
    password_characters = api_model.PASSWORD_CHARACTERS
    longest_password = api_model.LONGEST_PASSWORD


class SignupPage(AccountForm):
    """The page on which an account is made."""

    template = "people/signup.html"


@dataclass(frozen=True, kw_only=True)
class ForgottenPage(Page):
    """The page on which a link is asked for that chooses a new password."""

    template = "people/forgotten.html"
    filled: Filled
    is_done: bool = False
    email_characters = api_model.EMAIL_CHARACTERS


@dataclass(frozen=True, kw_only=True)
class ResetPage(Page):
    """The page on which a new password is chosen by a link."""

    template = "people/reset.html"
    filled: Filled
    token: str
    password_characters = api_model.PASSWORD_CHARACTERS
    longest_password = api_model.LONGEST_PASSWORD


class LoginPage(AccountForm):
    """The page on which people sign in."""

    template = "people/login.html"


def own_path(wanted: str) -> str:
    """Read where to go on to; what may lead elsewhere leads home."""
    return wanted if OWN_PATH.fullmatch(wanted) else HOME


@routes.get("/signup")
@public
async def signup_form() -> Response:
    """Show the form that makes an account, or go on when one is signed in."""
    next_path = own_path(request.args.get("next", ""))
    if await identify() is not None:
        return sent_on(next_path)
    return shown(_signup(await _invited(next_path), next_path))


@routes.post("/signup")
@public
async def signup() -> Response:
    """Make a user and their organization, sign them in and go on."""
    values, next_path = await _sent()
    try:
        made = await signing.sign_up(forms.read(Signup, values))
    except Conflict as taken:
        filled = filled_again(values, taken, place="email")
        return shown(_signup(filled, next_path), refusal=taken)
    except (Misfilled, Refusal) as wrong:
        return shown(_signup(filled_again(values, wrong), next_path), refusal=wrong)
    return _signed_in(made.token, next_path)


@routes.get("/login")
@public
async def login_form() -> Response:
    """Show the form that signs in, or go on when one is signed in."""
    next_path = own_path(request.args.get("next", ""))
    if await identify() is not None:
        return sent_on(next_path)
    return shown(_login(await _invited(next_path), next_path))


@routes.post("/login")
@public
async def login() -> Response:
    """Sign in with a new session and go on."""
    values, next_path = await _sent()
    try:
        found = await signing.sign_in(forms.read(Login, values))
    except (Misfilled, Refusal) as wrong:
        return shown(_login(filled_again(values, wrong), next_path), refusal=wrong)
    return _signed_in(found.token, next_path)


@routes.get("/password/forgot")
@public
async def forgotten_form() -> Response:
    """Show the form that asks for a new password."""
    return shown(ForgottenPage(filled=Filled()))


@routes.post("/password/forgot")
@public
async def forgotten() -> Response:
    """Have a link written; the page is one whoever has the address."""
    values = await forms.sent()
    try:
        await passwords.forgotten(forms.read(Forgotten, values))
    except (Misfilled, Refusal) as wrong:
        return shown(ForgottenPage(filled=filled_again(values, wrong)), refusal=wrong)
    return shown(ForgottenPage(filled=Filled(values), is_done=True))


@routes.get("/password/reset")
@public
async def reset_form() -> Response:
    """Show the form that chooses a new password, while the link works."""
    token = request.args.get("token", "")
    await passwords.require_open(token)
    return shown(ResetPage(filled=Filled(), token=token))


@routes.post("/password/reset")
@public
async def reset() -> Response:
    """Set the password and go on to sign in."""
    values = await forms.sent()
    token = values.get("token", "")
    try:
        await passwords.reset(forms.read(Reset, values))
    except Misfilled as wrong:
        return shown(ResetPage(filled=Filled(values, wrong.errors), token=token), 422)
    response = sent_on("/login")
    cookies.take_session(response)
    return response


@routes.post("/logout")
@public
async def logout() -> Response:
    """End the session and show the form that signs in, and goes on where the form says."""
    _, next_path = await _sent()
    await signing.sign_out()
    response = sent_on(login_address(next_path))
    cookies.take_session(response)
    return response


async def _sent() -> tuple[Mapping[str, str], str]:
    """Read the form that was sent, and where to go on to."""
    values = await forms.sent()
    return values, own_path(values.pop("next", ""))


async def _invited(next_path: str) -> Filled:
    """Fill the address in to which an invitation was sent, for who comes from one."""
    email = await memberships.invited_address(next_path)
    return Filled({"email": email} if email else {})


def _signup(filled: Filled, next_path: str) -> SignupPage:
    return SignupPage(filled=filled, next_path=next_path, elsewhere=login_address(next_path))


def _login(filled: Filled, next_path: str) -> LoginPage:
    elsewhere = "/signup" if next_path == HOME else f"/signup?next={quote(next_path, safe='/')}"
    return LoginPage(filled=filled, next_path=next_path, elsewhere=elsewhere)


def _signed_in(token: str, next_path: str) -> Response:
    response = sent_on(next_path)
    cookies.give_session(response, token)
    return response
