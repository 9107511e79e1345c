"""The pages of a store: adding one, connecting its shop in steps, and how it is."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from quart import Blueprint, Response, request

from tolsey.actors.refusals import Refusal
from tolsey.actors.shops import normalise_shop_domain
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.selling.merchant_apps import said_to_seller
from tolsey.http.stores import checking, health, integrations
from tolsey.http.stores.checking import SCOPES, WRITE_SCOPES, CheckedLine
from tolsey.http.stores.integrations import CustomApp
from tolsey.http.stores.routes import StoreBody, create_store
from tolsey.http.web import api_model
from tolsey.http.web.access import first_organization, member_of, page, store_of
from tolsey.http.web.context import service
from tolsey.storage.commerce import connections
from tolsey.storage.commerce.connections import StoreParts
from tolsey.storage.commerce.stores import StoreRow

routes = Blueprint("store_pages", __name__)
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class NewStorePage(Page):
    """The first step: a store's name."""

    template = "stores/new.html"
    organization_id: str
    filled: Filled = field(default_factory=Filled)
    name_characters = api_model.NAME_CHARACTERS


@dataclass(frozen=True, kw_only=True)
class ShopPage(Page):
    """The second step: the shop's address, and an app in it with the permissions."""

    template = "stores/shop.html"
    has_script = True
    store: StoreRow
    shop_domain: str = ""
    """The shop's own domain, as it was read out of what was typed."""
    write_scopes = WRITE_SCOPES
    filled: Filled = field(default_factory=Filled)
    scopes = SCOPES


@dataclass(frozen=True, kw_only=True)
class AppKeysPage(Page):
    """The third step: the app's keys, which are tried before anything is kept."""

    template = "stores/keys.html"
    has_script = True
    store: StoreRow
    shop_domain: str
    has_one_token: bool
    """Whether the app has one access token for good, in place of a client id."""
    filled: Filled = field(default_factory=Filled)
    lines: Sequence[CheckedLine] = ()

    @property
    def with_id(self) -> str:
        """The step for an app that tokens are granted to."""
        return health.address_of(self.store, f"/connect?shopDomain={quote(self.shop_domain)}")

    @property
    def with_token(self) -> str:
        """The step for an app that has one token for good."""
        return f"{self.with_id}&with=token"


@routes.get("/stores/new")
@page
async def new_store() -> Response:
    """Show the form that adds a store."""
    organization_id = request.args.get("organizationId") or await first_organization()
    await member_of(organization_id, at_least="admin")
    return shown(NewStorePage(organization_id=organization_id))


@routes.post("/stores/new")
@page
async def add_store() -> Response:
    """Add a store and go on to its shop."""
    values = await forms.sent()
    organization_id = values.get("organizationId", "")
    await member_of(organization_id, at_least="admin")
    try:
        made, _status = await create_store(data=forms.read(StoreBody, values))
    except (Misfilled, Refusal) as wrong:
        filled = filled_again(values, wrong)
        return shown(NewStorePage(organization_id=organization_id, filled=filled), refusal=wrong)
    return sent_on(f"/stores/{made.id}/connect")


@routes.get("/stores/<store_id>/connect")
@page
async def connect_form(store_id: str) -> Response:
    """Show the step that asks for the shop; once it is named, the step that asks for the app's keys."""
    store = await store_of(store_id, at_least="admin")
    typed = request.args.get("shopDomain")
    if typed is None:
        kept = (await _parts(store)).connection
        filled = Filled({"shopDomain": kept.shop_domain} if kept else {})
        return shown(ShopPage(store=store, filled=filled))
    try:
        shop_domain = normalise_shop_domain(typed)
    except ValueError as error:
        filled = Filled({"shopDomain": typed}).wrong("shopDomain", _(str(error)))
        return shown(ShopPage(store=store, filled=filled), 422)
    has_one_token = request.args.get("with") == "token"
    keys = ("accessToken" if has_one_token else "clientId", "clientSecret")
    return shown(
        AppKeysPage(
            store=store,
            shop_domain=shop_domain,
            has_one_token=has_one_token,
            lines=checking.told(dict.fromkeys(keys, "")),
        )
    )


@routes.post("/stores/<store_id>/connect")
@page
async def connect(store_id: str) -> Response:
    """Try the keys at the shop; when they work, keep them and go on to how the store is."""
    store = await store_of(store_id, at_least="admin")
    values = await forms.sent()
    asked = AppKeysPage(
        store=store,
        shop_domain=values.get("shopDomain", ""),
        has_one_token="accessToken" in values,
    )
    try:
        app = forms.read(CustomApp, {**values, "storeId": store_id})
        await integrations.connect_custom_app(data=app)
    except (Misfilled, Refusal) as wrong:
        filled = filled_again(values, wrong, say=said_to_seller)
        lines = checking.told(values, wrong if isinstance(wrong, Refusal) else None)
        return shown(replace(asked, filled=filled, lines=lines), refusal=wrong)
    return sent_on(health.address_of(store, "?from=connect"))


@routes.post("/stores/<store_id>/connect/check")
@page
async def check_connection(store_id: str) -> Response:
    """Show the step with what was typed so far checked; nothing is kept, and no secret is written back."""
    store = await store_of(store_id, at_least="admin")
    values = await forms.sent()
    shop_domain = values.get("shopDomain", "")
    if not set(checking.KEYS) & set(values):
        filled = Filled(values)
        try:
            found = normalise_shop_domain(shop_domain)
        except ValueError as error:
            return shown(ShopPage(store=store, filled=filled.wrong("shopDomain", _(str(error)))))
        return shown(ShopPage(store=store, filled=filled, shop_domain=found))
    check = await checking.checked(store_id, values)
    has_one_token = "accessToken" in values
    return shown(
        AppKeysPage(
            store=store,
            shop_domain=shop_domain,
            has_one_token=has_one_token,
            filled=check.filled,
            lines=check.lines,
        )
    )


async def _parts(store: StoreRow) -> StoreParts:
    return (await connections.load(service().database, [store.id]))[store.id]
