"""A seller's page of a listing: proving its revenue, how it is shown, and its badge."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from html import escape
from typing import Any
from urllib.parse import quote

from quart import Blueprint, Response, request

from tolsey.actors.listing import lifecycle, ranges
from tolsey.actors.listing.verification import transitions
from tolsey.actors.processor import ProcessorError, refusal_of
from tolsey.actors.refusals import NotFound, Refusal, Unprocessable
from tolsey.http.answers.market.selling import RangeAnswer, VerificationAnswer
from tolsey.http.billing import payouts
from tolsey.http.billing.hosted import hosted_pages
from tolsey.http.intelligence.calibrating import CalibrationConsent, agree_to_calibration
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, sentence, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.standings import ShownState
from tolsey.http.layout.templates import Page, rendered
from tolsey.http.layout.words import money, whole_money
from tolsey.http.selling import badge as badges
from tolsey.http.selling import proofs, sell
from tolsey.http.selling.attestation import badge, verification_of
from tolsey.http.selling.bodies import ListingChanges
from tolsey.http.selling.merchant_apps import MerchantApp, said_to_seller
from tolsey.http.selling.restricted_keys import CREATE_KEY_URL, PaymentsKey
from tolsey.http.selling.sell import SourceQuery
from tolsey.http.web import limits, policies
from tolsey.http.web.access import RANKS, listing_of, member_of, page
from tolsey.http.web.context import now, service
from tolsey.storage.commerce import connections
from tolsey.storage.intelligence import calibrating
from tolsey.storage.records.commerce.connection import Connection, ConnectionStatus
from tolsey.storage.records.selling.listing import (
    COMMERCE,
    PAYMENTS,
    PUBLIC_STATUSES,
    VerificationRecord,
    Visibility,
)
from tolsey.storage.selling.listings import ListingView

routes = Blueprint("selling_pages", __name__)
answer_with_pages(routes)


@dataclass(frozen=True, slots=True)
class Source:
    """One source of a listing's revenue, as the seller sees it."""

    record: VerificationRecord
    standing: ShownState
    advice: str

    @property
    def is_given(self) -> bool:
        """Whether there is a shop or an account to read."""
        return self.standing.tone != "you"


@dataclass(frozen=True, kw_only=True)
class SellerPage(Page):
    """A listing to its seller."""

    template = "selling/listing.html"
    has_script = True
    view: ListingView
    role: str
    shop: Connection | None
    """The connection of the listing's store, if the shop can be read with it."""
    at: datetime
    base_url: str
    refused: str = ""
    wants_payout_account: bool = False
    came_from: str = ""
    by_shop: Filled = field(default_factory=Filled)
    by_processor: Filled = field(default_factory=Filled)
    calibrates: bool = False
    create_key_url = CREATE_KEY_URL

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"/selling/{self.view.listing.id}"

    @property
    def public_address(self) -> str:
        """Where everyone sees the listing."""
        return f"{self.base_url}/listings/{quote(self.view.listing.slug)}"

    @property
    def may_act(self) -> bool:
        """Whether who looks may change the listing."""
        return RANKS[self.role] >= RANKS["admin"]

    @property
    def is_public(self) -> bool:
        """Whether everyone may see it."""
        return self.view.listing.status in PUBLIC_STATUSES

    @property
    def may_edit(self) -> bool:
        """Whether what is said of it can be changed now."""
        return self.view.listing.status in lifecycle.EDITABLE

    @property
    def price(self) -> str:
        """What is asked for it; nothing where it is not for sale."""
        listing = self.view.listing
        return whole_money(listing.asking_price, listing.currency)

    @property
    def may_publish(self) -> bool:
        """Whether it can be shown to everyone now."""
        return "publish" in lifecycle.allowed(self.view.listing.status)

    @cached_property
    def sources(self) -> Mapping[str, Source]:
        """Each source by its provider."""
        found = {}
        for proof in self.view.proofs:
            record = transitions.settle(proof.verification, self.at)
            standing, advice = proofs.proof_of(record), proofs.advice_for(record)
            found[record.provider] = Source(record, standing, advice)
        return found

    @property
    def commerce(self) -> Source:
        """The shop."""
        return self.sources[COMMERCE]

    @property
    def payments(self) -> Source:
        """The payment processor."""
        return self.sources[PAYMENTS]

    @property
    def is_syncing(self) -> bool:
        """Whether a source is being read, so that the page looks again by itself."""
        return any(
            transitions.is_syncing(one.record, self.at) and one.record.last_ok_at is None
            for one in self.sources.values()
        )

    @property
    def has_badge(self) -> bool:
        """Whether the badge shows anything."""
        return self._shown_badge.badge is not transitions.Badge.NONE

    @cached_property
    def _shown_badge(self) -> badges.Shown:
        """What everyone is told by the badge."""
        return badges.Shown(badge(self.view, self.at), verification_of(self.view, self.at), self.at)

    @cached_property
    def own(self) -> VerificationAnswer:
        """The numbers as they are."""
        return verification_of(self.view, self.at, owner=True)

    @property
    def metrics(self) -> Sequence["Metric"]:
        """Each metric, how it is shown, and how it would be."""
        titles = {
            "revenue30d": _("Revenue of 30 days, and annualised"),
            "mrr": _("Recurring revenue"),
            "subscribers": _("Paying subscribers"),
        }
        chosen = ranges.shown_as(self.view.listing.visibility)
        return [self._metric(name, titles[name], chosen[name]) for name in ranges.METRICS]

    def _metric(self, name: str, title: str, chosen: Visibility) -> "Metric":
        value = getattr(self.own, name)
        options = {"exact": _("As it is"), "bucket": _("As a range"), "hidden": _("Not at all")}
        if value is not None:
            lies_in = ranges.range_of(name, value, self.own.currency)
            if name == "subscribers":
                exact, between = str(value), f"{lies_in.low}-{lies_in.high - 1}"
            else:
                between_answer = RangeAnswer(low=lies_in.low, high=lies_in.high)
                exact = money(value, self.own.currency)
                between = badges.metric(
                    self.own.model_copy(update={"ranges": {name: between_answer}}), name
                )
            options["exact"] = _("As it is: %(amount)s") % {"amount": exact}
            options["bucket"] = _("As a range: %(amount)s") % {"amount": between}
        return Metric(name, title, options, chosen.value)

    @property
    def picture(self) -> str:
        """The address of the badge."""
        return f"{self.base_url}/api/public/listings/{quote(self.view.listing.slug)}/badge.svg"

    @property
    def picture_now(self) -> str:
        """The badge itself, for this page: a browser keeps the one at the address for five minutes."""
        drawn = rendered(badges.BadgePicture(shown=self._shown_badge, theme="light", size="m"))
        return f"data:image/svg+xml,{quote(drawn)}"

    @property
    def picture_code(self) -> str:
        """The badge for another site, leading to where it is checked."""
        check, said = escape(f"{self.public_address}/check"), escape(_("Verified revenue"))
        return f'<a href="{check}"><img src="{escape(self.picture)}" alt="{said}"></a>'

    @property
    def frame_code(self) -> str:
        """The card for another site."""
        slug = quote(self.view.listing.slug)
        address = escape(f"{self.base_url}/api/public/listings/{slug}/embed")
        said = escape(_("Verified revenue"))
        return f'<iframe src="{address}" title="{said}" width="360" height="280" style="border:0"></iframe>'


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that the seller decides about."""

    name: str
    title: str
    options: Mapping[str, str]
    chosen: str


@dataclass(frozen=True, kw_only=True)
class RemovePage(Page):
    """Whether a source of a listing's revenue shall be read no more."""

    template = "selling/remove.html"
    view: ListingView
    source: str
    at: datetime

    @property
    def address(self) -> str:
        """Where the listing is shown to its seller."""
        return f"/selling/{self.view.listing.id}"

    @property
    def account(self) -> str:
        """The shop or the account that is read."""
        (record,) = (one for one in self._records if one.provider == self.source)
        return record.shop_domain or ""

    @property
    def keeps_badge(self) -> bool:
        """Whether what else is read proves the revenue by itself."""
        others = [one for one in self._records if one.provider != self.source]
        return transitions.listing_badge(others, self.at) is not transitions.Badge.NONE

    @property
    def _records(self) -> Sequence[VerificationRecord]:
        return [proof.verification for proof in self.view.proofs]


@routes.get("/selling/<listing_id>")
@page
async def show_listing(listing_id: str) -> Response:
    """Show a listing to its seller."""
    return _shown(await _page(listing_id, came_from=request.args.get("from", "")))


@routes.post("/selling/<listing_id>/publish")
@page
async def publish(listing_id: str) -> Response:
    """Show the listing to everyone."""
    return await _acted(listing_id, sell.publish_listing(listing_id), "publish")


@routes.post("/selling/<listing_id>/visibility")
@page
async def show_as(listing_id: str) -> Response:
    """Change how the metrics are shown."""
    values = await forms.sent()
    chosen = {name: values.get(name, Visibility.EXACT.value) for name in ranges.METRICS}
    if not set(chosen.values()) <= set(Visibility):
        raise Unprocessable(forms.unreadable(), code="invalid_request")
    changes = ListingChanges.model_validate({"visibility": chosen})
    return await _acted(listing_id, sell.edit_listing(listing_id, data=changes), "visibility")


@routes.post("/selling/<listing_id>/refresh")
@page
async def refresh(listing_id: str) -> Response:
    """Read every source now."""
    return await _acted(listing_id, sell.refresh(listing_id), "refresh")


@routes.post("/selling/<listing_id>/prove/store")
@page
async def prove_by_store(listing_id: str) -> Response:
    """Read the revenue with the app that the listing's store is connected with."""
    view = await listing_of(listing_id, "admin")
    app = await _app_of(view)
    if app is None:
        raise NotFound(
            _("This listing's store isn't connected to a shop. Enter the app's keys to connect it.")
        )
    return await _acted(listing_id, sell.verify_commerce(listing_id, data=app), "prove")


@routes.post("/selling/<listing_id>/prove/<any(shop, processor):source>")
@page
async def prove(listing_id: str, source: str) -> Response:
    """Try the keys that were given, and begin to read the revenue with them."""
    values = await forms.sent()
    name = "by_shop" if source == "shop" else "by_processor"
    try:
        if source == "shop":
            await sell.verify_commerce(listing_id, data=forms.read(MerchantApp, values))
        else:
            await sell.verify_payments(listing_id, data=forms.read(PaymentsKey, values))
    except (Misfilled, Refusal) as wrong:
        filled = filled_again(values, wrong, say=said_to_seller)
        return _shown(await _page(listing_id, **{name: filled}), refusal=wrong)
    return sent_on(f"/selling/{listing_id}?from=prove")


@routes.post("/selling/<listing_id>/calibration")
@page
async def calibrate(listing_id: str) -> Response:
    """Let the revenue correct what is estimated of other shops, or no longer."""
    consent = CalibrationConsent(agreed="agreed" in await forms.sent())
    return await _acted(listing_id, agree_to_calibration(listing_id, data=consent), "calibration")


@routes.get("/selling/<listing_id>/remove/<any(commerce, payments):source>")
@page
async def ask_removal(listing_id: str, source: str) -> Response:
    """Say what removing a source would do, and ask whether it shall be."""
    return shown(RemovePage(view=await listing_of(listing_id, "admin"), source=source, at=now()))


@routes.post("/selling/<listing_id>/remove/<any(commerce, payments):source>")
@page
async def remove(listing_id: str, source: str) -> Response:
    """Read a source no more."""
    return await _acted(
        listing_id,
        sell.remove_verification(
            listing_id, query_args=SourceQuery.model_validate({"source": source})
        ),
        "remove",
    )


@routes.post("/selling/payout-account")
@page
async def begin_payouts() -> Response:
    """Send a seller on to the processor's page that asks who is paid."""
    await limits.admit(policies.PAYOUT_LINKS)
    _account, address = await payouts.onboard()
    return sent_on(address)


async def _acted(listing_id: str, act: Awaitable[object], said: str) -> Response:
    """Do what was asked and go back to where it shows, or say there why it was not done."""
    try:
        await act
    except (Refusal, ProcessorError) as error:
        refusal = error if isinstance(error, Refusal) else refusal_of(error)
        again = await _page(
            listing_id,
            refused=sentence(refusal),
            wants_payout_account=refusal.code == "payout_account_required",
        )
        return _shown(again, refusal=refusal)
    return sent_on(f"/selling/{listing_id}?from={said}")


async def _page(listing_id: str, **said: Any) -> SellerPage:
    view = await listing_of(listing_id)
    return SellerPage(
        view=view,
        role=await member_of(view.listing.organization_id),
        shop=await _shop_of(view),
        at=now(),
        base_url=service().settings.base_url,
        calibrates=await calibrating.find(service().database, listing_id) is not None,
        **said,
    )


def _shown(
    wanted: SellerPage, status: int = 200, *, refusal: Refusal | Misfilled | None = None
) -> Response:
    return shown(wanted, status, refusal=refusal, form_targets=hosted_pages())


async def _shop_of(view: ListingView) -> Connection | None:
    """Find the connection of a listing's store, if calls can be made with it."""
    store_id = view.listing.store_id
    if store_id is None:
        return None
    kept = (await connections.load(service().database, [store_id]))[store_id].connection
    if kept is None or kept.status != ConnectionStatus.ACTIVE or kept.client_secret is None:
        return None
    # An app with one token for good has no id that tokens are granted to.
    return kept if kept.client_id else None


async def _app_of(view: ListingView) -> MerchantApp | None:
    """Open the app that a listing's store is connected with; the caller administers both."""
    kept = await _shop_of(view)
    if kept is None or kept.client_id is None or kept.client_secret is None:
        return None
    secret = connections.open_secret(service().vault, kept.store_id, kept.client_secret)
    return MerchantApp(shop_domain=kept.shop_domain, client_id=kept.client_id, client_secret=secret)
