"""The door for what no customer does: time, banks, cards. A page for people, forms for programs."""

from collections.abc import Callable

import orjson
from quart import Quart, Response, redirect, request

from tolsey.sandbox.payments.account.books import Obj
from tolsey.sandbox.payments.account.refused import Refused, missing_object
from tolsey.sandbox.payments.course.accounts import Accounts
from tolsey.sandbox.payments.course.business import READS
from tolsey.sandbox.payments.face.control_page import control_page
from tolsey.sandbox.payments.face.pages import SEE_OTHER

Form = dict[str, str]
_LONGEST_SECONDS = 10 * 366 * 86_400


def add_control(accounts: Accounts, app: Quart) -> None:
    """Put the page `/sandbox` and the acts behind it, such as `/sandbox/advance`, into the app."""
    acts = _acts(accounts)

    @app.get("/sandbox")
    async def shown() -> str:
        return control_page(accounts)

    @app.post("/sandbox/<action>")
    async def acted(action: str) -> Response:
        act = acts.get(action)
        if act is None:
            raise missing_object("action", action)
        form = dict((await request.form).items())
        try:
            made = act(form)
        except KeyError as error:
            raise Refused(f"The form lacks {error}.") from error
        except ValueError as error:
            raise Refused(str(error)) from error
        if "text/html" in request.headers.get("Accept", ""):  # a browser, not a program
            return redirect("/sandbox", SEE_OTHER)  # type: ignore[return-value] # Quart's own response
        return Response(orjson.dumps(made or {}), content_type="application/json")


def _acts(accounts: Accounts) -> dict[str, Callable[[Form], Obj | None]]:
    def advance(form: Form) -> None:
        seconds = float(form.get("seconds", 0)) + float(form.get("days", 0)) * 86_400
        if not 0 <= seconds <= _LONGEST_SECONDS:
            raise ValueError("the clock goes forward, by ten years at most")
        accounts.advance(seconds)

    def set_card(form: Form) -> None:
        accounts.set_card(form["customer"], form["behaviour"])

    def settle(form: Form) -> None:
        accounts.settle(form["payment_intent"], paid=form.get("paid", "yes") == "yes")

    def open_dispute(form: Form) -> Obj:
        return accounts.open_dispute(form["charge"], inquiry=form.get("inquiry") == "yes")

    def close_dispute(form: Form) -> Obj:
        return accounts.close_dispute(form["dispute"], form["status"])

    def onboard(form: Form) -> None:
        accounts.onboard(form["account"])

    def fail_payout(form: Form) -> Obj:
        return accounts.fail_payout(form["account"], int(form["amount"]))

    def make_key(form: Form) -> Obj:
        allowed = [name for name in READS if form.get(name) == "yes"]
        return {"secret": accounts.make_key(form["account"], *allowed).secret}

    acts = (advance, set_card, settle, open_dispute, close_dispute, onboard, fail_payout, make_key)
    return {act.__name__: act for act in acts}
