"""The page on which a merchant exports or erases one customer, and fetches answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from quart import Blueprint, Response, request

from tolsey.actors.refusals import Refusal
from tolsey.http.answers.people.privacy import PrivacyRequestAnswer
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, shown
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.privacy.routes import (
    PrivacyAction,
    PrivacyBody,
    answered,
    get_answer,
    request_privacy,
)
from tolsey.http.web.access import page, store_of
from tolsey.http.web.api_model import EMAIL_CHARACTERS
from tolsey.http.web.context import service
from tolsey.http.web.paging import cut, key_in
from tolsey.storage.commerce import compliance
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.records.commerce.compliance import ComplianceTopic, RequestSource

PART = 25
"""How many requests are on a page."""

routes = Blueprint("privacy_pages", __name__, url_prefix="/stores/<store_id>/privacy")
answer_with_pages(routes)

TOPICS = {
    ComplianceTopic.DATA_REQUEST: marked("What is kept of a customer"),
    ComplianceTopic.CUSTOMER_REDACT: marked("A customer is forgotten"),
    ComplianceTopic.SHOP_REDACT: marked("The shop is forgotten"),
}
SOURCES = {
    RequestSource.PLATFORM: marked("the platform"),
    RequestSource.SHOP_APP: marked("the shop's own app"),
    RequestSource.MERCHANT: marked("a person of yours"),
    RequestSource.UNINSTALL: marked("30 days without the app"),
}


@dataclass(frozen=True, kw_only=True)
class PrivacyPage(Page):
    """What customers of a store asked for, and the form that asks for one of them."""

    template = "privacy/privacy.html"
    store: StoreRow
    requests: Sequence[PrivacyRequestAnswer]
    older: str | None
    filled: Filled = field(default_factory=Filled)
    done: str = ""
    email_characters = EMAIL_CHARACTERS

    @property
    def address(self) -> str:
        """The address of the page."""
        return address_of(self.store.id)

    def about(self, asked: PrivacyRequestAnswer) -> tuple[str, str]:
        """Say what was asked for, and by whom."""
        return _(TOPICS[ComplianceTopic(asked.topic)]), _(SOURCES[RequestSource(asked.source)])


@dataclass(frozen=True, kw_only=True)
class ErasePage(Page):
    """Whether a customer shall be forgotten."""

    template = "privacy/erase.html"
    store: StoreRow
    email: str

    @property
    def address(self) -> str:
        """Where the answer is sent."""
        return address_of(self.store.id)


def address_of(store_id: str) -> str:
    """Give the address of a store's page for its customers' wishes."""
    return f"/stores/{store_id}/privacy"


@routes.get("")
@page
async def show_privacy(store_id: str) -> Response:
    """Show what was asked for, newest first, and the form."""
    return shown(await _privacy(store_id))


@routes.post("")
@page
async def ask_privacy(store_id: str) -> Response:
    """Take the form; whoever shall be forgotten is asked about once more."""
    store = await store_of(store_id, at_least="admin")
    values = await forms.sent()
    try:
        asked = forms.read(PrivacyBody, values)
        if asked.action == PrivacyAction.ERASE and not asked.confirmed:
            return shown(ErasePage(store=store, email=asked.email))
        await request_privacy(store_id, data=asked)
    except (Misfilled, Refusal) as wrong:
        return shown(await _privacy(store_id, filled_again(values, wrong)), refusal=wrong)
    return sent_on(f"{address_of(store_id)}?done={asked.action}")


@routes.get("/<request_id>/file")
@page
async def fetch_answer(store_id: str, request_id: str) -> Response:
    """Send the browser on to the file of an answer."""
    found = await get_answer(store_id, request_id)
    return sent_on(found.url)


async def _privacy(store_id: str, filled: Filled | None = None) -> PrivacyPage:
    store = await store_of(store_id, at_least="admin")
    cursor = request.args.get("cursor")
    before = key_in(cursor) if cursor else None
    found = await compliance.page(service().database, before, PART + 1, store_id=store_id)
    part, older = cut(found, PART, key=lambda one: one.id)
    return PrivacyPage(
        store=store,
        requests=await answered(store_id, list(part)),
        older=older,
        filled=filled or Filled(),
        done=request.args.get("done", ""),
    )
