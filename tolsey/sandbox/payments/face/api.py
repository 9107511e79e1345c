"""Requests to the API: who asks, what is asked, whether it was asked before, and the answer."""

from dataclasses import dataclass, field
from typing import Any

import orjson

from tolsey.sandbox.payments.account import endpoints
from tolsey.sandbox.payments.account.books import Obj
from tolsey.sandbox.payments.account.keys import Key, invalid, masked
from tolsey.sandbox.payments.account.merchant import API_VERSION, Merchant, Request, Stored
from tolsey.sandbox.payments.account.refused import Refused
from tolsey.sandbox.payments.account.routes import Call, Route
from tolsey.sandbox.payments.billing import invoices, schedules, updates
from tolsey.sandbox.payments.course import settlement
from tolsey.sandbox.payments.face.checks import check
from tolsey.sandbox.payments.face.expand import expanded
from tolsey.sandbox.payments.face.forms import read_form
from tolsey.sandbox.payments.hosted import checkout, portal
from tolsey.sandbox.payments.money import catalog, connect, customers, intents, refunds

_KEY_LIFE_SECONDS = 86_400
ROUTES: tuple[Route, ...] = (
    *catalog.ROUTES,
    *customers.ROUTES,
    *checkout.ROUTES,
    *intents.ROUTES,
    *refunds.ROUTES,
    *endpoints.ROUTES,
    *connect.ROUTES,
    # `/v1/invoices/create_preview` is no invoice's id: what is named comes before what has one.
    *updates.ROUTES,
    *settlement.ROUTES,
    *invoices.ROUTES,
    *schedules.ROUTES,
    *portal.ROUTES,
)


@dataclass(slots=True)
class Asked:
    """A request as it came in."""

    method: str
    path: str
    form: str
    secret: str
    idempotency_key: str | None = None
    account: str | None = None
    version: str | None = None


@dataclass(slots=True)
class Answer:
    """An answer as it goes out."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


def answer(asked: Asked, merchant: Merchant | None) -> Answer:
    """Answer a request for the account whose key was sent."""
    try:
        if merchant is None:
            raise invalid(asked.secret)
        return _answer(asked, merchant, merchant.keys[asked.secret])
    except Refused as refused:
        return Answer(refused.status, orjson.dumps(refused.body()), _headers(asked, merchant))


def _answer(asked: Asked, merchant: Merchant, key: Key) -> Answer:
    route, id = _route(asked)
    key.require(route.needed, merchant.id)
    _check_account(asked, merchant)
    if asked.version not in (None, API_VERSION):
        raise Refused(f"Invalid Stripe API version: {asked.version}")
    headers = _headers(asked, merchant)
    fingerprint = (asked.method, asked.path, asked.form)
    before = _stored(asked, merchant, fingerprint)
    if before is not None:
        return Answer(before.status, before.body, {**headers, "Idempotent-Replayed": "true"})
    params = check(route.type_name, read_form(asked.form))
    route.refuse_unplayed(params)
    merchant.request = Request(headers["Request-Id"], asked.idempotency_key)
    try:
        status, body = 200, _body(route, Call(merchant, params, id))
    except Refused as refused:
        status, body = refused.status, orjson.dumps(refused.body())
    finally:
        merchant.request = Request()
    if asked.idempotency_key and asked.method == "POST":
        place = (asked.secret, asked.idempotency_key)
        merchant.stored[place] = Stored(fingerprint, status, body, merchant.now())
    return Answer(status, body, headers)


def _route(asked: Asked) -> tuple[Route, str]:
    for route in ROUTES:
        id = route.match(asked.method, asked.path)
        if id is not None:
            return route, id
    raise Refused(
        f"Unrecognized request URL ({asked.method}: {asked.path}). Please see"
        " https://stripe.com/docs or we can help at https://support.stripe.com/.",
        status=404,
    )


def _body(route: Route, call: Call) -> bytes:
    paths = call.params.get("expand", [])
    obj: Obj = route.run(call)
    shown: Any = expanded(call.merchant, obj, paths) if paths else obj
    return orjson.dumps(shown)


def _stored(asked: Asked, merchant: Merchant, fingerprint: tuple[str, str, str]) -> Stored | None:
    """Give the answer this key had before; other parameters under it are refused."""
    if asked.method != "POST" or not asked.idempotency_key:
        return None
    found = merchant.stored.get((asked.secret, asked.idempotency_key))
    if found is None or merchant.now() - found.at > _KEY_LIFE_SECONDS:
        return None
    if found.fingerprint != fingerprint:
        raise Refused(
            "Keys for idempotent requests can only be used with the same parameters they were"
            f" first used with. Try using a key other than '{asked.idempotency_key}' if you meant"
            " to execute a different request.",
            type="idempotency_error",
        )
    return found


def _check_account(asked: Asked, merchant: Merchant) -> None:
    if asked.account is None or asked.account == merchant.id:
        return
    if not merchant.platform:
        raise Refused("Only Stripe Connect platforms can work with other accounts.", status=403)
    if merchant.books.find(asked.account) is None:
        raise Refused(
            f"The provided key '{masked(asked.secret, 4)}' does not have access to account"
            f" '{asked.account}' (or that account does not exist). Application access may have"
            " been revoked.",
            status=403,
            code="account_invalid",
        )
    raise Refused(
        "The sandbox does not play requests on behalf of connected accounts.",
        code="sandbox_not_built",
    )


def _headers(asked: Asked, merchant: Merchant | None) -> dict[str, str]:
    headers = {"Stripe-Version": asked.version or API_VERSION}
    if merchant is not None:
        headers["Request-Id"] = merchant.books.new_id("req", 14)
    if asked.idempotency_key:
        headers["Idempotency-Key"] = asked.idempotency_key
    return headers
