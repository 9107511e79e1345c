"""No text that someone chose can write a page: each is tried with names of scripts, quotes and turned letters."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import orjson
import pytest

from tests.http.people import KEYRING
from tests.pages.test_billing import ANN, HELD, account
from tolsey.actors.listing.verification.transitions import Badge
from tolsey.actors.organization import plans
from tolsey.actors.organization.plans import Cadence, Offer
from tolsey.actors.processor import ChargePreview
from tolsey.http.answers.stores.proposals import ProposalAnswer
from tolsey.http.billing.views import (
    BillingPage,
    CancellationPage,
    DowngradePage,
    KeepPage,
    UpgradePage,
)
from tolsey.http.chat.toolbox import ShownPlan
from tolsey.http.home.pages import HomePage, ListingLine, NowherePage, StoreLine, WelcomePage
from tolsey.http.layout.answers import RefusalPage
from tolsey.http.layout.assets import address_of
from tolsey.http.layout.forms import WHOLE, Filled
from tolsey.http.layout.templates import rendered
from tolsey.http.mail.pages import MailPage, MailsPage, UnsubscribePage
from tolsey.http.oauth.views import Agent, AgentsPage, ConsentPage, RefusedConsentPage
from tolsey.http.people.pages import LoginPage, SignupPage
from tolsey.http.selling.attestation import signed, verification_of
from tolsey.http.selling.badge import Shown
from tolsey.http.selling.form_pages import EditPage, NewListingPage
from tolsey.http.selling.listing_views import to_anyone
from tolsey.http.selling.pages import RemovePage, SellerPage
from tolsey.http.selling.proofs import proof_of, wanted_by_listing
from tolsey.http.selling.public_pages import CheckPage, ListingPage
from tolsey.http.stores.change_sets import ChangeSetsPage, change_set_page, plan_line
from tolsey.http.stores.health import connection_of, wanted_by_store
from tolsey.http.stores.pages import AppKeysPage, NewStorePage, ShopPage
from tolsey.http.stores.proposals import ProposalsPage
from tolsey.http.stores.showing.acts import ActsPage, UndoPage, act_line
from tolsey.http.stores.showing.overview import StorePage
from tolsey.http.stores.showing.sales import SalesPicture, Sold, SoldThen, StockLine
from tolsey.http.stores.showing.settings import DeleteStorePage, DisconnectPage, SettingsPage
from tolsey.sandbox.payments.face import html
from tolsey.storage.commerce.connections import StoreParts
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.oauth.grants import GrantRow
from tolsey.storage.oauth.requests import RequestRow
from tolsey.storage.records.commerce.agent_operation import AgentOperation
from tolsey.storage.records.commerce.connection import Connection, ConnectionStatus, ShopProfile
from tolsey.storage.records.mail import OutboundMail
from tolsey.storage.records.selling.listing import (
    COMMERCE,
    PAYMENTS,
    ListingRecord,
    ListingStatus,
    VerificationRecord,
    VerificationState,
)
from tolsey.storage.records.selling.revenue import RevenueSnapshot
from tolsey.storage.sealing.sealed import Vault
from tolsey.storage.selling.listings import ListingView, ProofView

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOSTILE = (
    "\"'><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7919*7919 }}%(name)s متجر\u202e"
)
SENT = Filled(
    dict.fromkeys(("email", "organizationName", "amount", "comment", "name", "card"), HOSTILE),
    dict.fromkeys(("email", "organizationName", "amount", "comment", WHOLE), HOSTILE),
)
OFFER = Offer(plans.PRO, Cadence.MONTHLY)
TRICKED = account(
    organization=replace(ANN, name=HOSTILE),
    held=replace(HELD, dunning_since=AT, dunning_url=f"https://pay.example/{HOSTILE}"),
)
# An app's own name is not shown with letters that turn the line; a store's is.
ASKED = RequestRow(
    client_id=f"https://agent.example/{HOSTILE}",
    client_name=HOSTILE.replace("\u202e", ""),
    redirect_uri="https://agent.example/callback",
    state=HOSTILE,
    code_challenge="c",
    resource="r",
    store_id="str_1",
    scopes=["orders:write"],
)
GRANT = GrantRow(
    id="gr_1",
    client_id=ASKED.client_id,
    client_name=ASKED.client_name,
    redirect_uri=ASKED.redirect_uri,
    store_id="str_1",
    store_name=HOSTILE,
    scopes=ASKED.scopes,
    created_at=AT,
    used_at=None,
)
MAIL = OutboundMail(
    id="mail_1",
    event="store.connection_broken",
    about=HOSTILE,
    organization_id=None,
    recipient=HOSTILE,
    subject=HOSTILE,
    sealed_content=None,
    created_at=AT,
)
CHARGE = ChargePreview(12_345, 1_023, AT)
SESSION: dict[str, Any] = {
    "currency": "usd",
    "mode": "payment",
    "amount_total": 100,
    "total_details": {"amount_tax": 0},
    "tax_id_collection": {"enabled": True},
    "return_url": f"https://shop.example/{HOSTILE}",
}
LINE = {"quantity": 1, "description": HOSTILE, "amount_subtotal": 100}
VAULT = Vault.from_keys(KEYRING)
BASE = "http://127.0.0.1:8000"
STORE = StoreRow(id="store_1", organization_id="org_1", name=HOSTILE, created_at=AT)
PROPOSED = ProposalAnswer(
    id="op_1",
    kind="refund_order",
    subject="order/7",
    created_at=AT,
    expires_at=AT,
    before={"suggested": {"amount": 5, "currency": "USD"}},
    after={"refund": {"note": HOSTILE, "notify": True, "lines": {"1": 2}}},
)
CHANGE = AgentOperation(
    store_id="store_1",
    operation_id="op_1.001",
    user_id=HOSTILE,
    client_id=HOSTILE,
    tool="save_page",
    subject=f"page/{HOSTILE}",
    digest="d",
    state="stopped",
    created_at=AT,
    before='{"page": null}',
    after=orjson.dumps({"page": {"title": HOSTILE}}).decode(),
    detail=HOSTILE,
    change_set="op_1",
)
CONNECTION = Connection(
    store_id="store_1",
    shop_domain=HOSTILE,
    status=ConnectionStatus.REVOKED,
    connected_at=AT,
    scopes=(HOSTILE,),
)
SHOP = ShopProfile(
    store_id="store_1",
    shop_domain=HOSTILE,
    facts_at=AT,
    name=HOSTILE,
    plan_display_name=HOSTILE,
    currency=HOSTILE,
    primary_domain=HOSTILE,
    subscriptions=orjson.dumps({HOSTILE: "missing_scope"}).decode(),
)
PARTS = StoreParts(organization_id="org_1", connection=CONNECTION, shop=SHOP)
LIVE = replace(PARTS, connection=replace(CONNECTION, status=ConnectionStatus.ACTIVE))
VERIFIED = VerificationRecord(
    listing_id="listing_1",
    provider=COMMERCE,
    state=VerificationState.VERIFIED,
    since=AT,
    shop_domain=HOSTILE,
    accepted_at=AT,
    last_ok_at=AT,
    verified_at=AT,
)
SNAPSHOT = RevenueSnapshot(
    listing_id="listing_1",
    window_start=AT,
    window_end=AT,
    source=COMMERCE,
    shop_domain=HOSTILE,
    definition="rv2",
    shop_currency="USD",
    verified=True,
    figures='{"USD":{"revenue30d":636426,"mrr":4900,"annualised":7637112,"orders":9}}',
    orders=9,
    skipped="{}",
    flags='["revenue_spike"]',
)
LISTED = ListingView(
    ListingRecord(
        id="listing_1",
        organization_id="org_1",
        slug=HOSTILE,
        title=HOSTILE,
        teaser=HOSTILE,
        category=HOSTILE,
        country=HOSTILE,
        business_model=HOSTILE,
        reason_for_sale=HOSTILE,
        domain=HOSTILE,
        included_assets=orjson.dumps([HOSTILE]).decode(),
        excluded_assets=orjson.dumps([HOSTILE]).decode(),
        asking_price=1_900_000,
        currency="USD",
        status=ListingStatus.ACTIVE,
        created_by="usr_1",
        created_at=AT,
        seller_active_at=AT,
    ),
    (
        ProofView(VERIFIED, SNAPSHOT),
        ProofView(
            replace(
                VERIFIED,
                provider=PAYMENTS,
                state=VerificationState.NEEDS_PERMISSION,
                missing_permission=HOSTILE,
            )
        ),
    ),
)
TYPED = Filled(
    dict.fromkeys(("name", "shopDomain", "clientId", "title", "price", "currency"), HOSTILE),
    dict.fromkeys(("name", "shopDomain", "clientId", "title", "price", "currency", WHOLE), HOSTILE),
)
SELLING = SellerPage(
    view=LISTED,
    role="owner",
    shop=CONNECTION,
    at=AT,
    base_url=BASE,
    refused=HOSTILE,
    by_shop=TYPED,
    by_processor=TYPED,
)
SHOWN = Shown(Badge.GREEN, verification_of(LISTED, AT), AT)
WANTED = [*wanted_by_store(STORE, PARTS), *wanted_by_listing(LISTED, AT)]
HOME = HomePage(
    organization=replace(ANN, name=HOSTILE),
    wants=WANTED,
    stores=[StoreLine(HOSTILE, "/stores/store_1", HOSTILE, connection_of(PARTS))],
    listings=[ListingLine(HOSTILE, "/selling/listing_1", proof_of(VERIFIED))],
    credits=TRICKED.credits,
    held=HELD,
    is_operator=True,
    version=HOSTILE,
)
ACT = act_line(CHANGE, {CHANGE.client_id: HOSTILE}, None)
PLAN = ShownPlan(
    sealed=HOSTILE,
    tool="update_product",
    title=HOSTILE,
    before={HOSTILE: HOSTILE},
    after={HOSTILE: {"amount": HOSTILE, "currency": HOSTILE}},
    expires_at=AT,
)
SOLD = SalesPicture(
    period="7d",
    currency="USD",
    zone=HOSTILE,
    then=[SoldThen(AT.date(), HOSTILE, Sold(1, 2, 2, 1))],
    before=[SoldThen(AT.date(), HOSTILE, Sold(1, 1, 1, 0))],
    others=[(HOSTILE, Sold(1, 1, 1, 0))],
)
PAGES: dict[str, Callable[[], str]] = {
    "signup": lambda: rendered(SignupPage(filled=SENT, next_path=HOSTILE, elsewhere=HOSTILE)),
    "login": lambda: rendered(LoginPage(filled=SENT, next_path=HOSTILE, elsewhere=HOSTILE)),
    "refusal": lambda: rendered(RefusalPage(HOSTILE), HOSTILE),
    "billing": lambda: rendered(
        BillingPage(account=TRICKED, filled=SENT, refused=HOSTILE, look_again=HOSTILE), HOSTILE
    ),
    "upgrade": lambda: rendered(UpgradePage(account=TRICKED, wanted=OFFER, charge=CHARGE), HOSTILE),
    "downgrade": lambda: rendered(DowngradePage(account=TRICKED, wanted=OFFER), HOSTILE),
    "keep": lambda: rendered(KeepPage(account=TRICKED, wanted=OFFER), HOSTILE),
    "cancellation": lambda: rendered(CancellationPage(account=TRICKED, filled=SENT), HOSTILE),
    "consent": lambda: rendered(
        ConsentPage(wanted=ASKED, csrf=HOSTILE, store=HOSTILE, may_allow=["orders:read"]), HOSTILE
    ),
    "no consent": lambda: rendered(RefusedConsentPage(wanted=ASKED, csrf=HOSTILE), HOSTILE),
    "agents": lambda: rendered(AgentsPage(agents=[Agent(GRANT, HOSTILE)]), HOSTILE),
    "welcome": lambda: rendered(WelcomePage(), HOSTILE),
    "nowhere": lambda: rendered(NowherePage(), HOSTILE),
    "home": lambda: rendered(HOME, HOSTILE),
    "new store": lambda: rendered(NewStorePage(organization_id=HOSTILE, filled=TYPED)),
    "shop": lambda: rendered(ShopPage(store=STORE, filled=TYPED)),
    "keys": lambda: rendered(
        AppKeysPage(store=STORE, shop_domain=HOSTILE, has_one_token=False, filled=TYPED)
    ),
    "token": lambda: rendered(
        AppKeysPage(store=STORE, shop_domain=HOSTILE, has_one_token=True, filled=TYPED)
    ),
    "proposals": lambda: rendered(
        ProposalsPage(store=STORE, proposals=[PROPOSED], wrong=HOSTILE), HOSTILE
    ),
    "no proposals": lambda: rendered(ProposalsPage(store=STORE, proposals=[]), HOSTILE),
    "changes at once": lambda: rendered(
        ChangeSetsPage(store=STORE, plans=[plan_line([CHANGE])]), HOSTILE
    ),
    "change set": lambda: rendered(change_set_page(STORE, [CHANGE]), HOSTILE),
    "no changes at once": lambda: rendered(ChangeSetsPage(store=STORE, plans=[]), HOSTILE),
    "disconnect": lambda: rendered(DisconnectPage(STORE, HOSTILE)),
    "acts": lambda: rendered(
        ActsPage(store=STORE, acts=[ACT], may_act=True, following=None), HOSTILE
    ),
    "undo": lambda: rendered(UndoPage(store=STORE, act=ACT, plan=PLAN), HOSTILE),
    "no undo": lambda: rendered(UndoPage(store=STORE, act=ACT, plan=None, wrong=HOSTILE), HOSTILE),
    "settings": lambda: rendered(
        SettingsPage(store=STORE, may_act=True, parts=LIVE, base_url=BASE), HOSTILE
    ),
    "delete store": lambda: rendered(DeleteStorePage(store=STORE, filled=TYPED), HOSTILE),
    "store": lambda: rendered(a_store(PARTS), HOSTILE),
    "connected store": lambda: rendered(a_store(LIVE, "connect"), HOSTILE),
    "new listing": lambda: rendered(
        NewListingPage(organization_id=HOSTILE, store_id=HOSTILE, filled=TYPED)
    ),
    "selling": lambda: rendered(SELLING, HOSTILE),
    "edit": lambda: rendered(EditPage(listing=LISTED.listing, filled=TYPED), HOSTILE),
    "removal": lambda: rendered(RemovePage(view=LISTED, source=COMMERCE, at=AT)),
    "public listing": lambda: rendered(
        ListingPage(answer=to_anyone(LISTED, AT), shown=SHOWN, base_url=BASE), HOSTILE
    ),
    "check": lambda: rendered(
        CheckPage(title=HOSTILE, document=signed(LISTED, VAULT, AT), base_url=BASE)
    ),
    "mails": lambda: rendered(MailsPage([MAIL])),
    "mail": lambda: rendered(MailPage(MAIL, [HOSTILE, f"https://x.example/{HOSTILE}"])),
    "unsubscribe": lambda: rendered(
        UnsubscribePage(recipient=HOSTILE, topic=HOSTILE, token=HOSTILE, is_done=False)
    ),
    "sandbox checkout": lambda: html.page(
        "checkout", session=SESSION, lines=[LINE], filled=SENT, asks_terms=True, error=HOSTILE
    ),
    "sandbox message": lambda: html.page("message", title=HOSTILE, error=HOSTILE),
    "sandbox portal": lambda: html.page(
        "portal", session=SESSION, subscriptions=[], reasons=[HOSTILE], filled=SENT, error=HOSTILE
    ),
}


def a_store(parts: StoreParts, came_from: str = "") -> StorePage:
    return StorePage(
        store=STORE,
        role="owner",
        parts=parts,
        delivered_at=AT,
        listings=[LISTED],
        at=AT,
        came_from=came_from,
        sold=SOLD,
        stock=[StockLine(HOSTILE, 3, 1.5, 1.0, "bad")],
        acts=[ACT],
    )


class Reader(HTMLParser):
    """Reads a page as a browser would: its elements, their attributes, its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.said = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.said += data


@pytest.mark.parametrize("name", PAGES)
def test_a_hostile_text_stays_text(name: str) -> None:
    page = Reader(PAGES[name]())
    # A script of ours is a file under the hash of its content, and the only picture is the badge.
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert all(set(one) == {"type", "src"} for one in scripts)
    assert {one["src"] for one in scripts} <= {
        address_of(one) for one in ("page", "check", "checks", "follow")
    }
    pictures = [attributes["src"] or "" for tag, attributes in page.elements if tag == "img"]
    assert all(one.startswith("data:image/svg+xml,") for one in pictures)
    names = {attribute for _, attributes in page.elements for attribute in attributes}
    assert not [one for one in names if one.startswith("on")]
    assert names <= KNOWN
    shown = page.said + "".join(
        value or "" for _, attributes in page.elements for value in attributes.values()
    )
    assert "alert(1)" in shown
    assert "62710561" not in shown


KNOWN = {
    *("data-checked", "data-checks", "data-follows", "data-live"),
    *("height", "preserveaspectratio", "width", "x", "y"),
    *("action", "aria-current", "aria-describedby", "aria-hidden", "aria-invalid", "aria-label"),
    *("autocomplete", "charset", "checked", "class", "content", "d", "datetime", "disabled", "for"),
    *("href", "http-equiv", "id", "inputmode", "lang", "maxlength", "method", "minlength", "name"),
    *("rel", "required", "role", "scope", "selected", "tabindex", "type", "value", "viewbox"),
    *("aria-labelledby", "alt", "autocapitalize", "content", "download", "hidden", "open"),
    *("property", "readonly", "rows", "rowspan", "spellcheck", "src", "target"),
    *("data-label", "data-check", "data-copies", "data-exact", "data-fact", "data-facts"),
    *("data-form", "data-hidden-one", "data-keys", "data-listing", "data-mrr", "data-no"),
    *("data-open", "data-opening", "data-outcome", "data-outcomes", "data-range"),
    *("data-revenue30d", "data-rows", "data-said", "data-subscribers", "data-yes"),
}
"""All attributes that our templates write."""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_a_language_a_title_one_main_and_one_heading_and_labels(name: str) -> None:
    page = Reader(PAGES[name]())
    tags = [tag for tag, _ in page.elements]
    assert dict(page.elements)["html"] == {"lang": "en"}
    assert [tags.count(tag) for tag in ("title", "main", "h1")] == [1, 1, 1]
    labelled = {attributes.get("for") for tag, attributes in page.elements if tag == "label"}
    fields = [
        attributes
        for tag, attributes in page.elements
        if tag in {"input", "select", "textarea"}
        and attributes.get("type") not in {"hidden", "radio", "checkbox"}
    ]
    assert all(field["id"] in labelled for field in fields)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
