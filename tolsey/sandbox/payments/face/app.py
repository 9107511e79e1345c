"""The processor as a web application: the API, the hosted pages, and the door for what happens."""

import orjson
from quart import Quart, Response, request
from werkzeug.exceptions import HTTPException

from tolsey.http.layout.catalogue import _
from tolsey.sandbox.payments.account.refused import Refused
from tolsey.sandbox.payments.course.accounts import Accounts
from tolsey.sandbox.payments.face import html
from tolsey.sandbox.payments.face.api import Answer, Asked, answer
from tolsey.sandbox.payments.face.control import add_control
from tolsey.sandbox.payments.face.pages import add_pages


def build_app(accounts: Accounts) -> Quart:
    """Make the routes of the processor."""
    app = Quart("tolsey.sandbox.payments")
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False

    @app.before_request
    async def catch_up() -> None:
        accounts.catch_up()

    @app.errorhandler(Refused)
    async def refused(error: Refused) -> Response:
        return Response(
            html.page("message", title=_("Not possible"), error=str(error)), error.status
        )

    @app.errorhandler(Exception)
    async def failed(error: Exception) -> Response:
        if isinstance(error, HTTPException):
            return Response(html.page("message", title=error.name), error.code)
        accounts.failures.append(error)
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
        return _response(answer(asked, accounts.merchant_of(asked.secret)))

    add_pages(accounts, app)
    add_control(accounts, app)
    return app


def _response(given: Answer) -> Response:
    reply = Response(given.body, given.status, content_type="application/json")
    reply.headers.update(given.headers)
    return reply
