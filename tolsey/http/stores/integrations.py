"""Connecting a store to its shop with the merchant's own app (rules/shops#connecting)."""

import secrets
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Self

import structlog
from pydantic import Field, model_validator
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.ports import PlatformError, Shop, ShopFacts
from tolsey.actors.store.connection.messages import Connect, Disconnect
from tolsey.actors.store.messages import store
from tolsey.http.answers.stores.connection import ConnectedAnswer, ConnectionAnswer
from tolsey.http.selling.merchant_apps import Credential, InstalledApp, refusals_told, tried
from tolsey.http.web import policies
from tolsey.http.web.access import caller, session, store_of
from tolsey.http.web.api_model import ApiModel, Identifier
from tolsey.http.web.context import ask, now, service
from tolsey.http.web.limits import limited
from tolsey.storage.commerce import connections, stores
from tolsey.storage.commerce.stores import SALT_BYTES
from tolsey.storage.records.commerce.connection import STATIC_UNTIL, ShopProfile

routes = Blueprint("integrations", __name__, url_prefix="/api/integrations/commerce")
tag_blueprint(routes, ["Integrations"])
log = structlog.get_logger()


class ShopApp(InstalledApp):
    """An app that opens a shop.

    One of today is named by `clientId`, and tokens are granted to it. One that was made in the shop
    itself, as could be until 2026, has one `accessToken` for good (rules/shops#connecting).
    """

    client_id: Credential | None = None
    access_token: Annotated[Credential | None, Field(repr=False)] = None

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        if (self.client_id is None) is (self.access_token is None):
            raise ValueError(
                "Send clientId with clientSecret. For an app created in the Shopify admin, send"
                " accessToken with clientSecret."
            )
        return self


class CustomApp(ShopApp):
    """The app through which a store is connected."""

    store_id: Identifier


class StoreQuery(ApiModel):
    """Whose connection."""

    store_id: Identifier


@routes.post("/custom-app")
@session
@limited(policies.STORE_CONNECT)
async def connect_custom_app(data: CustomApp) -> ConnectedAnswer:
    """Connect a store: the platform must take or grant a token first, else nothing is stored."""
    await store_of(data.store_id, at_least="admin")
    message = await connecting(data.store_id, data)
    view = await ask(store(data.store_id), message)
    # Their agents read the shop that is connected now.
    await service().agents.access_tokens.forget()
    return ConnectedAnswer(connection=ConnectionAnswer.of(view))


async def connecting(store_id: str, app: ShopApp) -> Connect:
    """Open a shop by an app, and say it as the store is connected; a Refusal where the platform lets nobody in."""
    token, facts, lifetime = await opened(app)
    vault, at = service().vault, now()
    return Connect(
        at=at,
        user_id=caller().user_id,
        shop=profile(store_id, facts, await plan_name(Shop(facts.shop_domain, token))),
        client_id=app.client_id or "",
        access_token=connections.seal_token(vault, store_id, token),
        client_secret=connections.seal_secret(vault, store_id, app.client_secret),
        scopes=facts.scopes,
        expires_at=STATIC_UNTIL if lifetime is None else at + lifetime,
        sealed_salt=stores.seal_salt_of_shop(
            vault, store_id, facts.shop_domain, secrets.token_bytes(SALT_BYTES)
        ),
    )


async def opened(app: ShopApp) -> tuple[str, ShopFacts, timedelta | None]:
    """Open the shop: the token that does, what the shop is, and how long the token lives if it ends."""
    if app.client_id is not None:
        grant, facts = await tried(app.shop_domain, app.client_id, app.client_secret)
        facts = replace(facts, scopes=grant.scopes or facts.scopes)
        return grant.access_token, facts, timedelta(seconds=grant.expires_in)
    token = str(app.access_token)
    with refusals_told():
        return token, await service().commerce.connect_probe(Shop(app.shop_domain, token)), None


async def plan_name(shop: Shop) -> str | None:
    """Read the plan's name; a shop that does not tell it is connected all the same."""
    try:
        return await service().commerce.plan_name(shop)
    except PlatformError as error:
        log.warning("commerce.plan_unknown", shop=shop.shop_domain, why=str(error))
        return None


def profile(store_id: str, facts: ShopFacts, plan_name: str | None) -> ShopProfile:
    """Keep what the platform says of a shop when it is connected."""
    return ShopProfile(
        store_id=store_id,
        shop_domain=facts.shop_domain,
        facts_at=now(),
        name=facts.name,
        plan_name=plan_name,
        plan_display_name=facts.plan,
        partner_development=facts.partner_development,
        currency=facts.currency,
        primary_domain=facts.primary_domain,
        timezone=facts.timezone,
        shop_created_at=facts.created_at,
    )


@routes.delete("/custom-app")
@session
async def disconnect_custom_app(query_args: StoreQuery) -> ConnectedAnswer:
    """Take the connection away; the credentials are erased."""
    await store_of(query_args.store_id, at_least="admin")
    view = await ask(store(query_args.store_id), Disconnect(now(), caller().user_id))
    return ConnectedAnswer(connection=ConnectionAnswer.of(view))
