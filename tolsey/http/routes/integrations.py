"""Connecting a store to its shop with the merchant's own app (contract section 4)."""

from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints
from quart import Blueprint
from quart_schema import tag_blueprint, validate_querystring, validate_request

from tolsey.actors.ports import (
    Grant,
    GrantRefused,
    PlatformDenied,
    PlatformUnreachable,
    Shop,
    ShopFacts,
)
from tolsey.actors.refusals import Refusal, Unprocessable
from tolsey.actors.shops import normalise_shop_domain
from tolsey.actors.store.messages import Connect, ConnectionView, Disconnect, store
from tolsey.http.access import caller, session, store_of
from tolsey.http.api_model import ApiModel, Identifier
from tolsey.http.context import ask, now, service
from tolsey.http.views import timestamp
from tolsey.storage import connections
from tolsey.storage.records.connection import PROVIDER, ShopProfile

routes = Blueprint("integrations", __name__, url_prefix="/api/integrations/commerce")
tag_blueprint(routes, ["Integrations"])

Credential = Annotated[
    str, StringConstraints(strip_whitespace=True, pattern=r"^[\x21-\x7e]+$", max_length=200)
]


class CustomApp(ApiModel):
    """The merchant's own app, installed in the shop."""

    store_id: Identifier
    shop_domain: Annotated[str, Field(max_length=300), AfterValidator(normalise_shop_domain)]
    client_id: Credential
    client_secret: Annotated[Credential, Field(repr=False)]


class StoreQuery(ApiModel):
    """Whose connection."""

    store_id: Identifier


@routes.post("/custom-app")
@session
@validate_request(CustomApp)
async def connect_custom_app(data: CustomApp) -> dict[str, Any]:
    """Connect a store: the platform must grant a token first, else nothing is stored."""
    await store_of(data.store_id, at_least="admin")
    grant, facts = await _granted(data)
    at = now()
    vault = service().vault
    message = Connect(
        at=at,
        user_id=caller().user_id,
        shop=profile(data.store_id, facts),
        client_id=data.client_id,
        access_token=connections.seal_token(vault, data.store_id, grant.access_token),
        client_secret=connections.seal_secret(vault, data.store_id, data.client_secret),
        scopes=grant.scopes or facts.scopes,
        expires_at=at + timedelta(seconds=grant.expires_in),
    )
    return {"connection": connection_view(await ask(store(data.store_id), message))}


async def _granted(data: CustomApp) -> tuple[Grant, ShopFacts]:
    """Try the credentials; outside the mailbox, because the platform may take its time."""
    platform = service().commerce
    try:
        grant = await platform.exchange(data.shop_domain, data.client_id, data.client_secret)
        return grant, await platform.connect_probe(Shop(data.shop_domain, grant.access_token))
    except GrantRefused as refusal:
        raise Unprocessable(
            refusal.message, code="commerce_rejected", platformCode=refusal.code
        ) from refusal
    except PlatformDenied as denied:
        raise Unprocessable(
            denied.message, code="commerce_rejected", missingScope=denied.missing_scope
        ) from denied
    except PlatformUnreachable as error:
        raise Refusal(
            "The commerce platform is out of reach. Nothing was stored; try again.",
            status=502,
            code="commerce_unreachable",
        ) from error


def profile(store_id: str, facts: ShopFacts) -> ShopProfile:
    """Keep what the platform says of a shop when it is connected."""
    return ShopProfile(
        store_id=store_id,
        shop_domain=facts.shop_domain,
        facts_at=now(),
        name=facts.name,
        plan_display_name=facts.plan,
        partner_development=facts.partner_development,
        currency=facts.currency,
        primary_domain=facts.primary_domain,
        timezone=facts.timezone,
        shop_created_at=facts.created_at,
    )


@routes.delete("/custom-app")
@session
@validate_querystring(StoreQuery)
async def disconnect_custom_app(query_args: StoreQuery) -> dict[str, Any]:
    """Take the connection away; the credentials are erased."""
    await store_of(query_args.store_id, at_least="admin")
    view = await ask(store(query_args.store_id), Disconnect(now(), caller().user_id))
    return {"connection": connection_view(view)}


def connection_view(view: ConnectionView) -> dict[str, Any]:
    """Show a connection to the store's members; no secret is ever in it."""
    return {
        "provider": PROVIDER,
        "shopDomain": view.shop_domain,
        "status": view.status,
        "scopes": list(view.scopes),
        "scopesKnown": view.scopes_known,
        "tokenState": view.token_state,
        "connectedAt": timestamp(view.connected_at),
        "uninstalledAt": timestamp(view.uninstalled_at),
    }
