"""The processor's HTTP face: the API, the hosted pages, and a door for what tests do."""

from typing import TYPE_CHECKING

import orjson
from quart import Quart, Response, redirect, request
from werkzeug.exceptions import HTTPException

from tolsey.sandbox.payments import checkout, connect, html, intents, portal, settlement
from tolsey.sandbox.payments.api import Answer, Asked, answer
from tolsey.sandbox.payments.books import Obj
from tolsey.sandbox.payments.customers import make_method, set_default
from tolsey.sandbox.payments.merchant import Merchant
from tolsey.sandbox.payments.refused import Refused, missing_object
from tolsey.sandbox.payments.subscriptions import ENDED

if TYPE_CHECKING:
    from tolsey.sandbox.payments.processor import Processor

_SEE_OTHER = 303
_DECLINED = "4000000000000002"


def build_app(processor: "Processor") -> Quart:
    """Make the routes of the processor."""
    app = Quart("tolsey.sandbox.payments")
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False

    @app.before_request
    async def catch_up() -> None:
        processor.catch_up()

    @app.errorhandler(Refused)
    async def refused(error: Refused) -> Response:
        return Response(html.page("Not possible", "", str(error)), error.status)

    @app.errorhandler(Exception)
    async def failed(error: Exception) -> Response:
        if isinstance(error, HTTPException):
            return Response(html.page(error.name, ""), error.code)
        processor.failures.append(error)
        body = {"error": {"type": "api_error", "message": "The sandbox failed."}}
        return Response(orjson.dumps(body), 500, content_type="application/json")

    @app.route("/v1/<path:rest>", methods=["GET", "POST", "DELETE"])
    async def api(rest: str) -> Response:
        body = str(await request.get_data(as_text=True))
        form = request.query_string.decode() if request.method == "GET" else body
        # Deletions carry their parameters in the address.
        if request.method == "DELETE":
            form = body or request.query_string.decode()
        asked = Asked(
            request.method,
            f"/v1/{rest}",
            form,
            request.headers.get("Authorization", "").removeprefix("Bearer "),
            request.headers.get("Idempotency-Key"),
            request.headers.get("Stripe-Account"),
            request.headers.get("Stripe-Version"),
        )
        return _response(answer(asked, processor.merchant_of(asked.secret)))

    _add_checkout(processor, app)
    _add_invoices(processor, app)
    _add_portal(processor, app)
    _add_control(processor, app)
    return app


def _response(given: Answer) -> Response:
    reply = Response(given.body, given.status, content_type="application/json")
    reply.headers.update(given.headers)
    return reply


def _find(processor: "Processor", kind: str, id: str) -> tuple[Merchant, Obj]:
    for merchant in processor.merchants.values():
        found = merchant.books.find(id)
        if found is not None and found["object"] == kind:
            return merchant, found
    raise missing_object(kind, id)


def _add_checkout(processor: "Processor", app: Quart) -> None:
    @app.get("/c/pay/<id>")
    async def checkout_form(id: str) -> str:
        merchant, session = _find(processor, "checkout.session", id)
        if session["status"] != "open":
            return html.page("Checkout", f"<p>This session is {session['status']}.</p>")
        return html.checkout_page(session, merchant.lines[id], None)

    @app.post("/c/pay/<id>")
    async def checkout_sent(id: str) -> str | Response:
        merchant, session = _find(processor, "checkout.session", id)
        form = dict((await request.form).items())
        if form.get("action") == "cancel":
            return _go(session["cancel_url"] or session["success_url"])
        wanted = session["consent_collection"] or {}
        if wanted.get("terms_of_service") == "required" and form.get("terms") != "yes":
            told = "Please agree to the terms of service."
            return html.checkout_page(session, merchant.lines[id], told)
        if form.get("action") == "decline":
            form["card"] = _DECLINED
        outcome = checkout.complete(merchant, session, form)
        if outcome in ("ok", "later"):
            return _go(session["success_url"].replace("{CHECKOUT_SESSION_ID}", id))
        told = str(intents.decline_of(outcome))
        return html.checkout_page(session, merchant.lines[id], told)


def _add_invoices(processor: "Processor", app: Quart) -> None:
    @app.get("/i/<id>")
    async def invoice_form(id: str) -> str:
        return html.invoice_page(_find(processor, "invoice", id)[1], None)

    @app.post("/i/<id>")
    async def invoice_sent(id: str) -> str:
        merchant, invoice = _find(processor, "invoice", id)
        if invoice["status"] != "open":
            return html.invoice_page(invoice, None)
        number = (await request.form).get("card", "").replace(" ", "")
        method = make_method(merchant, number, invoice["customer"])["id"]
        outcome = settlement.pay_invoice(merchant, invoice, method, off_session=False)
        if outcome != "ok":
            return html.invoice_page(invoice, str(intents.decline_of(outcome)))
        if invoice["customer"]:
            set_default(merchant, merchant.books.get("customer", invoice["customer"]), method)
        return html.invoice_page(invoice, None)


def _add_portal(processor: "Processor", app: Quart) -> None:
    def shown(merchant: Merchant, session: Obj, error: str | None = None) -> str:
        subs = [
            (sub, portal.offers(merchant, session, sub), _product(merchant, sub))
            for sub in merchant.books.each("subscription")
            if sub["customer"] == session["customer"] and sub["status"] not in ENDED
        ]
        found = merchant.books.get("billing_portal.configuration", session["configuration"])
        reason = found["features"]["subscription_cancel"].get("cancellation_reason") or {}
        return html.portal_page(session, subs, reason.get("options") or [], error)

    @app.get("/p/session/<id>")
    async def portal_form(id: str) -> str:
        return shown(*_find(processor, "billing_portal.session", id))

    @app.post("/p/session/<id>")
    async def portal_sent(id: str) -> str:
        merchant, session = _find(processor, "billing_portal.session", id)
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

    @app.get("/setup/e/<account>/<token>")
    async def onboarding_form(account: str, token: str) -> str | Response:
        merchant = processor.merchants[account]
        link = merchant.asked[token]
        if link["expires_at"] <= merchant.now():
            return _go(link["refresh_url"])
        return html.onboarding_page(merchant.books.get("account", link["account"]))

    @app.post("/setup/e/<account>/<token>")
    async def onboarding_sent(account: str, token: str) -> Response:
        merchant = processor.merchants[account]
        link = merchant.asked[token]
        connect.onboard(merchant, merchant.books.get("account", link["account"]))
        return _go(link["return_url"])


def _product(merchant: Merchant, sub: Obj) -> str:
    price = sub["items"]["data"][0]["price"]
    name: str = merchant.books.get("product", price["product"])["name"]
    return name


def _add_control(processor: "Processor", app: Quart) -> None:
    """Let another process do what a test does: `POST /sandbox/advance` with `days=31`."""

    @app.post("/sandbox/<action>")
    async def control(action: str) -> Response:
        form = dict((await request.form).items())
        made: Obj | None = None
        if action == "advance":
            processor.advance(float(form.get("seconds", 0)), days=float(form.get("days", 0)))
        elif action == "set_card":
            processor.set_card(form["customer"], form["behaviour"])
        elif action == "settle":
            processor.settle(form["payment_intent"], paid=form.get("paid", "yes") == "yes")
        elif action == "open_dispute":
            made = processor.open_dispute(form["charge"], inquiry=form.get("inquiry") == "yes")
        elif action == "close_dispute":
            made = processor.close_dispute(form["dispute"], form["status"])
        elif action == "onboard":
            processor.onboard(form["account"])
        elif action == "fail_payout":
            made = processor.fail_payout(form["account"], int(form["amount"]))
        else:
            raise missing_object("action", action)
        return Response(orjson.dumps(made or {}), content_type="application/json")


def _go(address: str) -> Response:
    """Send the browser on."""
    return redirect(address, _SEE_OTHER)  # type: ignore[return-value] # Quart's own response
