"""The app a merchant installs in their shop: what they paste of it, and whether it opens the shop."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from tolsey.actors.ports import (
    GrantRefused,
    PlatformDenied,
    PlatformUnreachable,
    Shop,
    ShopFacts,
    TokenGrant,
)
from tolsey.actors.refusals import Refusal, Unprocessable
from tolsey.actors.shops import normalise_shop_domain
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import service

RETRY_SECONDS = 30

Credential = Annotated[
    str, StringConstraints(strip_whitespace=True, pattern=r"^[\x21-\x7e]+$", max_length=255)
]


class MerchantApp(ApiModel):
    """The merchant's own app, installed in the shop."""

    shop_domain: Annotated[str, Field(max_length=300), AfterValidator(normalise_shop_domain)]
    client_id: Credential
    client_secret: Annotated[Credential, Field(repr=False)]


class CommerceUnreachable(Refusal):
    """The commerce platform gave no usable answer."""

    status = 502
    code = "commerce_unreachable"


async def tried(app: MerchantApp) -> tuple[TokenGrant, ShopFacts]:
    """Mint a token with the app and read its shop: 422 when the platform refuses either.

    For a route to call before it asks an actor, because the platform may take its time.
    """
    platform = service().commerce
    try:
        grant = await platform.exchange(app.shop_domain, app.client_id, app.client_secret)
        return grant, await platform.connect_probe(Shop(app.shop_domain, grant.access_token))
    except GrantRefused as refusal:
        raise Unprocessable(
            refusal.message, code="commerce_rejected", platformCode=refusal.code
        ) from refusal
    except PlatformDenied as denied:
        raise Unprocessable(
            denied.message, code="commerce_rejected", missingScope=denied.missing_scope
        ) from denied
    except PlatformUnreachable as error:
        raise CommerceUnreachable(
            "The commerce platform is out of reach. Nothing was stored; try again.",
            retryAfter=RETRY_SECONDS,
        ) from error
