"""Events as they are listed, and webhook endpoints as they are opened."""

from tolsey.sandbox.payments.account.books import Obj, merged
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.routes import Call, Route, listed, plays, retrieved
from tolsey.sandbox.payments.account.webhooks import Endpoint


def open_endpoint(
    merchant: Merchant,
    url: str,
    events: list[str],
    *,
    connect: bool = False,
    api_version: str | None = None,
    secrets: list[str] | None = None,
    **fields: str | dict[str, str] | None,
) -> Obj:
    """Open an address for events; without `secrets` it gets one of its own."""
    endpoint = merchant.new(
        "webhook_endpoint",
        "we",
        api_version=api_version,
        application=None,
        connect=connect,
        description=fields.get("description"),
        enabled_events=events,
        metadata=merged({}, fields.get("metadata")),
        status="enabled",
        url=url,
    )
    known = secrets or [merchant.books.new_id("whsec", 32)]
    merchant.endpoints[endpoint["id"]] = Endpoint(endpoint["id"], list(known))
    return endpoint


def _create(call: Call) -> Obj:
    given = dict(call.params)
    given.pop("expand", None)
    endpoint = open_endpoint(call.merchant, given.pop("url"), given.pop("enabled_events"), **given)
    # The secret is in this one answer and in no other.
    return {**endpoint, "secret": call.merchant.endpoints[endpoint["id"]].secrets[0]}


def _update(call: Call) -> Obj:
    endpoint = call.merchant.books.get("webhook_endpoint", call.id)
    given = dict(call.params)
    given.pop("expand", None)
    disabled = given.pop("disabled", None)
    if disabled is not None:
        endpoint["status"] = "disabled" if disabled else "enabled"
    given["metadata"] = merged(endpoint["metadata"], given.get("metadata"))
    endpoint.update(given)
    return endpoint


def _delete(call: Call) -> Obj:
    endpoint = call.merchant.books.get("webhook_endpoint", call.id)
    call.merchant.books.drop("webhook_endpoint", call.id)
    return {"id": endpoint["id"], "object": "webhook_endpoint", "deleted": True}


def _list_events(call: Call) -> Obj:
    params, webhooks = call.params, call.merchant.webhooks
    types = params.get("types") or ([params["type"]] if "type" in params else None)
    wanted = params.get("delivery_success")

    def keep(event: Obj) -> bool:
        if types is not None and event["type"] not in types:
            return False
        return wanted is None or wanted != webhooks.failed(event["id"])

    return call.merchant.books.page("event", params, "/v1/events", keep)


_PATH = "/v1/webhook_endpoints"
_FIELDS = "description enabled_events metadata url"
ROUTES = (
    Route("GET", "/v1/events/{id}", "EventRetrieveParams", "event", retrieved("event")),
    Route(
        "GET",
        "/v1/events",
        "EventListParams",
        "event",
        _list_events,
        plays("type types delivery_success"),
    ),
    Route(
        "POST",
        _PATH,
        "WebhookEndpointCreateParams",
        "webhook",
        _create,
        plays(_FIELDS + " api_version connect"),
    ),
    Route(
        "GET",
        _PATH + "/{id}",
        "WebhookEndpointRetrieveParams",
        "webhook",
        retrieved("webhook_endpoint"),
    ),
    Route(
        "POST",
        _PATH + "/{id}",
        "WebhookEndpointUpdateParams",
        "webhook",
        _update,
        plays(_FIELDS + " disabled"),
    ),
    Route("DELETE", _PATH + "/{id}", "WebhookEndpointDeleteParams", "webhook", _delete),
    Route(
        "GET",
        _PATH,
        "WebhookEndpointListParams",
        "webhook",
        listed("webhook_endpoint", _PATH),
    ),
)
