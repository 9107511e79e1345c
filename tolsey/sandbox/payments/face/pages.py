"""The pages that people see: checkout, invoice, portal, onboarding."""

from dataclasses import dataclass

from quart import Quart, Response, redirect, request

from tolsey.http.layout.forms import Filled
from tolsey.sandbox.payments.account.books import Obj
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.refused import Refused, missing_object
from tolsey.sandbox.payments.billing.subscriptions import ENDED
from tolsey.sandbox.payments.course import settlement
from tolsey.sandbox.payments.course.accounts import Accounts
from tolsey.sandbox.payments.face import html
from tolsey.sandbox.payments.hosted import checkout, portal
from tolsey.sandbox.payments.money import connect, intents
from tolsey.sandbox.payments.money.catalog import billed_in
from tolsey.sandbox.payments.money.customers import make_method, set_default

SEE_OTHER = 303
_DECLINED = "4000000000000002"
_CARD = "4242 4242 4242 4242"


@dataclass(frozen=True)
class _Shown:
    """A subscription in the portal: what it may change to, what it is to, and its price in its currency."""

    held: Obj
    cents: int
    offers: list[Obj]
    product: str


def add_pages(accounts: Accounts, app: Quart) -> None:
    """Put the hosted pages into the application."""
    _add_checkout(accounts, app)
    _add_invoices(accounts, app)
    _add_portal(accounts, app)
    _add_onboarding(accounts, app)


def _find(accounts: Accounts, kind: str, id: str) -> tuple[Merchant, Obj]:
    for merchant in accounts.merchants.values():
        found = merchant.books.find(id)
        if found is not None and found["object"] == kind:
            return merchant, found
    raise missing_object(kind, id)


def _add_checkout(accounts: Accounts, app: Quart) -> None:
    @app.get("/c/pay/<id>")
    async def checkout_form(id: str) -> str:
        merchant, session = _find(accounts, "checkout.session", id)
        if session["status"] != "open":
            return html.page("closed", session=session)
        return _checkout(session, merchant.lines[id])

    @app.post("/c/pay/<id>")
    async def checkout_sent(id: str) -> str | Response:
        merchant, session = _find(accounts, "checkout.session", id)
        form = dict((await request.form).items())
        if form.get("action") == "cancel":
            return _go(session["cancel_url"] or session["success_url"])
        wanted = session["consent_collection"] or {}
        if wanted.get("terms_of_service") == "required" and form.get("terms") != "yes":
            told = "Please agree to the terms of service."
            return _checkout(session, merchant.lines[id], told)
        if form.get("action") == "decline":
            form["card"] = _DECLINED
        outcome = checkout.complete(merchant, session, form)
        if outcome in ("ok", "later"):
            return _go(session["success_url"].replace("{CHECKOUT_SESSION_ID}", id))
        told = str(intents.decline_of(outcome))
        return _checkout(session, merchant.lines[id], told)


def _add_invoices(accounts: Accounts, app: Quart) -> None:
    @app.get("/i/<id>")
    async def invoice_form(id: str) -> str:
        return _invoice(_find(accounts, "invoice", id)[1])

    @app.post("/i/<id>")
    async def invoice_sent(id: str) -> str:
        merchant, invoice = _find(accounts, "invoice", id)
        if invoice["status"] != "open":
            return _invoice(invoice)
        number = (await request.form).get("card", "").replace(" ", "")
        method = make_method(merchant, number, invoice["customer"])["id"]
        outcome = settlement.pay_invoice(merchant, invoice, method, off_session=False)
        if outcome != "ok":
            return _invoice(invoice, str(intents.decline_of(outcome)))
        if invoice["customer"]:
            set_default(merchant, merchant.books.get("customer", invoice["customer"]), method)
        return _invoice(invoice)


def _add_portal(accounts: Accounts, app: Quart) -> None:
    def shown(merchant: Merchant, session: Obj, error: str | None = None) -> str:
        subs = [
            _Shown(
                sub,
                billed_in(merchant, sub["items"]["data"][0]["price"], sub["currency"])[
                    "unit_amount"
                ],
                portal.offers(merchant, session, sub),
                _product(merchant, sub),
            )
            for sub in merchant.books.each("subscription")
            if sub["customer"] == session["customer"] and sub["status"] not in ENDED
        ]
        found = merchant.books.get("billing_portal.configuration", session["configuration"])
        reason = found["features"]["subscription_cancel"].get("cancellation_reason") or {}
        return html.page(
            "portal",
            session=session,
            subscriptions=subs,
            reasons=reason.get("options") or [],
            filled=Filled(),
            error=error,
        )

    @app.get("/p/session/<id>")
    async def portal_form(id: str) -> str:
        return shown(*_find(accounts, "billing_portal.session", id))

    @app.post("/p/session/<id>")
    async def portal_sent(id: str) -> str:
        merchant, session = _find(accounts, "billing_portal.session", id)
        form = await request.form
        sub = merchant.books.get("subscription", form.get("subscription", ""))
        if sub["customer"] != session["customer"]:
            raise missing_object("subscription", sub["id"])
        try:
            if form.get("price"):
                price = merchant.books.get("price", form["price"], "price")
                portal.switch(merchant, session, sub, price)
            else:
                comment = form.get("comment", "")
                portal.cancel(merchant, session, sub, form.get("feedback"), comment)
        except Refused as refused:
            return shown(merchant, session, str(refused))
        return shown(merchant, session)


def _add_onboarding(accounts: Accounts, app: Quart) -> None:
    @app.get("/setup/e/<account>/<token>")
    async def onboarding_form(account: str, token: str) -> str | Response:
        merchant = accounts.merchants[account]
        link = merchant.asked[token]
        if link["expires_at"] <= merchant.now():
            return _go(link["refresh_url"])
        return html.page("onboarding", account=merchant.books.get("account", link["account"]))

    @app.post("/setup/e/<account>/<token>")
    async def onboarding_sent(account: str, token: str) -> Response:
        merchant = accounts.merchants[account]
        link = merchant.asked[token]
        connect.onboard(merchant, merchant.books.get("account", link["account"]))
        return _go(link["return_url"])

    @app.get("/express/<id>")
    async def dashboard(id: str) -> str:
        return html.page("dashboard", account=_find(accounts, "account", id)[1])


def _checkout(session: Obj, lines: list[Obj], error: str | None = None) -> str:
    email = session["customer_email"] or "buyer@example.com"
    wanted = (session["consent_collection"] or {}).get("terms_of_service")
    return html.page(
        "checkout",
        session=session,
        lines=lines,
        filled=Filled({"email": email, "name": "Buyer", "country": "US", "card": _CARD}),
        asks_terms=wanted == "required",
        error=error,
    )


def _invoice(invoice: Obj, error: str | None = None) -> str:
    return html.page("invoice", invoice=invoice, filled=Filled({"card": _CARD}), error=error)


def _product(merchant: Merchant, sub: Obj) -> str:
    price = sub["items"]["data"][0]["price"]
    name: str = merchant.books.get("product", price["product"])["name"]
    return name


def _go(address: str) -> Response:
    """Send the browser on."""
    return redirect(address, SEE_OTHER)  # type: ignore[return-value] # Quart's own response
