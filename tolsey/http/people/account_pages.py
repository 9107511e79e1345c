"""`/account`: what is kept of the reader to take along, the end of their account, and the way back."""

from dataclasses import dataclass, field
from typing import Final

from quart import Blueprint, Response

from tolsey.actors.refusals import Refusal
from tolsey.http.answers.people.account import AccountDeletionAnswer
from tolsey.http.layout import forms, shell
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, sentence, shown
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.people import account
from tolsey.http.people.signing import Login
from tolsey.http.web import api_model
from tolsey.http.web.access import page, public
from tolsey.http.web.callers import cookies

ACCOUNT: Final = "/account"
DELETE: Final = f"{ACCOUNT}/delete"
RESTORE: Final = f"{ACCOUNT}/restore"

routes = Blueprint("account_of_reader", __name__)
answer_with_pages(routes)


class AccountPage(Page):
    """Where everything of the reader's account is."""

    template = "people/account.html"


@dataclass(frozen=True)
class DeletePage(Page):
    """What the end of the account takes along, before it begins."""

    template = "people/delete.html"
    refused: str = ""


@dataclass(frozen=True)
class DeletedPage(Page):
    """That the account is being deleted, and until when it can be restored."""

    template = "people/deleted.html"
    answer: AccountDeletionAnswer


@dataclass(frozen=True, kw_only=True)
class RestorePage(Page):
    """The form that takes a deletion back."""

    template = "people/restore.html"
    filled: Filled = field(default_factory=Filled)
    email_characters = api_model.EMAIL_CHARACTERS
    longest_password = api_model.LONGEST_PASSWORD


@routes.get(ACCOUNT)
@page
async def show_account() -> Response:
    """Show what the reader can do with their account."""
    return shown(AccountPage())


@routes.get(DELETE)
@page
async def ask_to_delete() -> Response:
    """Tell what goes and what stays before an account is deleted."""
    return shown(DeletePage())


@routes.post(DELETE)
@page
async def delete() -> Response:
    """Begin the deletion, as the route does, and sign the browser out."""
    try:
        answer, _status = await account.delete_account()
    except Refusal as refusal:
        return shown(DeletePage(sentence(refusal)), refusal=refusal)
    shell.leave()
    response = shown(DeletedPage(answer))
    cookies.take_session(response)
    return response


@routes.get(RESTORE)
@public
async def ask_to_restore() -> Response:
    """Show the form that restores an account that is being deleted."""
    return shown(RestorePage())


@routes.post(RESTORE)
@public
async def restore() -> Response:
    """Take a deletion back, as the route does; then they sign in."""
    values = await forms.sent()
    try:
        await account.take_back(forms.read(Login, values))
    except (Misfilled, Refusal) as wrong:
        return shown(RestorePage(filled=filled_again(values, wrong)), refusal=wrong)
    return sent_on("/login")
