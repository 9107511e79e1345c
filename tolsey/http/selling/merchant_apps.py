"""The app a merchant installs in their shop: what they paste of it, and whether it opens the shop."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from tolsey.actors.ports import (
    GrantRefused,
    PlatformDenied,
    PlatformThrottled,
    PlatformUnreachable,
    Shop,
    ShopFacts,
    TokenGrant,
)
from tolsey.actors.refusals import Refusal, Unprocessable
from tolsey.actors.shops import normalise_shop_domain
from tolsey.actors.store.grants import to_platform_refusal
from tolsey.http.layout.answers import sentence
from tolsey.http.layout.catalogue import _
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import service
from tolsey.storage.limits import whole_seconds

RETRY_SECONDS = 30

Credential = Annotated[
    str, StringConstraints(strip_whitespace=True, pattern=r"^[\x21-\x7e]+$", max_length=255)
]


class InstalledApp(ApiModel):
    """An app of the merchant's in the shop; its secret signs what the platform delivers of it."""

    shop_domain: Annotated[str, Field(max_length=300), AfterValidator(normalise_shop_domain)]
    client_secret: Annotated[Credential, Field(repr=False)]


class MerchantApp(InstalledApp):
    """The merchant's own app, installed in the shop."""

    client_id: Credential


class CommerceUnreachable(Refusal):
    """The commerce platform gave no usable answer."""

    status = 502
    code = "commerce_unreachable"


def said_to_seller(refusal: Refusal) -> str:
    """Say to whoever pasted keys why they were not taken, and what to do."""
    if refusal.code != "commerce_rejected":
        return sentence(refusal)
    return _(
        "The shop refused these keys: %(said)s. Copy both from the app that is installed in this"
        " shop. Nothing was stored."
    ) % {"said": refusal.detail.rstrip(".")}


async def tried(
    shop_domain: str, client_id: str, client_secret: str
) -> tuple[TokenGrant, ShopFacts]:
    """Mint a token with an app and read its shop: 422 when the platform refuses either.

    For a route to call before it asks an actor, because the platform may take its time.
    """
    platform = service().commerce
    with refusals_told():
        grant = await platform.exchange(shop_domain, client_id, client_secret)
        return grant, await platform.connect_probe(Shop(shop_domain, grant.access_token))


@contextmanager
def refusals_told() -> Iterator[None]:
    """Answer 422 with the platform's words where it refuses a token, 502 where it is away, 503 where it throttles."""
    try:
        yield
    except GrantRefused as refusal:
        raise Unprocessable(
            refusal.message, code="commerce_rejected", platformCode=refusal.code
        ) from refusal
    except PlatformDenied as denied:
        raise Unprocessable(
            denied.message, code="commerce_rejected", missingScope=denied.missing_scope
        ) from denied
    except PlatformThrottled as error:
        raise to_platform_refusal(error) from error
    except PlatformUnreachable as error:
        raise CommerceUnreachable(
            "Shopify is unreachable, so nothing was saved. Try again in a minute.",
            retryAfter=whole_seconds(error.retry_after or RETRY_SECONDS),
        ) from error
