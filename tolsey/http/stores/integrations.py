"""Connecting a store to its shop with the merchant's own app (contract section 4)."""

import secrets
from datetime import timedelta

from quart import Blueprint
from quart_schema import tag_blueprint, validate_querystring, validate_request

from tolsey.actors.ports import ShopFacts
from tolsey.actors.store.messages import Connect, Disconnect, store
from tolsey.http.answers.stores import ConnectedAnswer, ConnectionAnswer
from tolsey.http.selling.merchant_apps import MerchantApp, tried
from tolsey.http.web import policies
from tolsey.http.web.access import caller, session, store_of
from tolsey.http.web.api_model import ApiModel, Identifier
from tolsey.http.web.context import ask, now, service
from tolsey.http.web.limits import limited
from tolsey.storage.commerce import connections, stores
from tolsey.storage.commerce.stores import SALT_BYTES
from tolsey.storage.records.commerce.connection import ShopProfile

routes = Blueprint("integrations", __name__, url_prefix="/api/integrations/commerce")
tag_blueprint(routes, ["Integrations"])


class CustomApp(MerchantApp):
    """The app through which a store is connected."""

    store_id: Identifier


class StoreQuery(ApiModel):
    """Whose connection."""

    store_id: Identifier


@routes.post("/custom-app")
@session
@validate_request(CustomApp)
@limited(policies.STORE_CONNECT)
async def connect_custom_app(data: CustomApp) -> ConnectedAnswer:
    """Connect a store: the platform must grant a token first, else nothing is stored."""
    await store_of(data.store_id, at_least="admin")
    grant, facts = await tried(data)
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
        sealed_salt=stores.seal_salt_of_shop(
            vault, data.store_id, facts.shop_domain, secrets.token_bytes(SALT_BYTES)
        ),
    )
    view = await ask(store(data.store_id), message)
    # Their agents read the shop that is connected now.
    await service().agents.access_tokens.forget()
    return ConnectedAnswer(connection=ConnectionAnswer.of(view))


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
async def disconnect_custom_app(query_args: StoreQuery) -> ConnectedAnswer:
    """Take the connection away; the credentials are erased."""
    await store_of(query_args.store_id, at_least="admin")
    view = await ask(store(query_args.store_id), Disconnect(now(), caller().user_id))
    return ConnectedAnswer(connection=ConnectionAnswer.of(view))
