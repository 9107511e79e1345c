"""A store's reach into the world: tokens, subscriptions, orders read anew, listings told."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import structlog

from tolsey.actors.bodies import Unreadable
from tolsey.actors.listing.messages import SourceRevoked, listing
from tolsey.actors.ports import (
    UNAUTHORIZED,
    CommercePlatform,
    GrantRefused,
    PlatformDenied,
    PlatformError,
    PlatformUnreachable,
    Shop,
)
from tolsey.actors.reach import Ask
from tolsey.actors.refusals import Refusal
from tolsey.actors.store.connection.messages import (
    CheckGrant,
    EndSubscriptions,
    ForgetShops,
    ReconcileSubscriptions,
    RenewalRefused,
    RenewalSucceeded,
    RenewalUnreachable,
    RenewToken,
    RevokeGrant,
    RevokeListingSources,
    SubscriptionsEnded,
    SubscriptionsReconciled,
    Token,
)
from tolsey.actors.store.connection.reach import Shops
from tolsey.actors.store.deliveries.identity import PURPOSE
from tolsey.actors.store.deliveries.messages import Delivery, OrderRead, ReadOrder
from tolsey.actors.store.deliveries.payloads import order_row
from tolsey.actors.store.deliveries.reading import Reading
from tolsey.actors.store.deliveries.topics import REASONS, TOPICS
from tolsey.actors.store.grants import is_lasting
from tolsey.runtime.decision import Tell
from tolsey.runtime.messages import Message
from tolsey.storage.commerce import connections, stores
from tolsey.storage.database import Database
from tolsey.storage.sealing.sealed import SealBroken, Vault
from tolsey.storage.selling import listings

log = structlog.get_logger()

LEAVE_SECONDS: Final = 10.0
"""Who deletes a store waits for this."""
MISSING_SCOPE: Final = "missing_scope"


def shops(ask: Ask, vault: Vault, clock: Callable[[], datetime]) -> Shops:
    """Find the way to stores' shops with tokens that this vault opens."""
    return Shops(ask, partial(_opened, vault), clock)


def _opened(vault: Vault, token: Token) -> Shop:
    """Open a token; one that cannot be opened is as dead as one that nobody knows."""
    try:
        plain = connections.open_token(vault, token.store_id, token.access_token)
    except SealBroken as error:
        raise PlatformDenied(UNAUTHORIZED, "The stored token cannot be opened.") from error
    return Shop(token.shop_domain, plain, token.scopes)


class StoreEffects:
    """Calls that follow a store's decisions.

    `events_url` is where the platform delivers; `invalidate` makes the webhook receiver read a
    shop's secrets afresh.
    """

    def __init__(
        self,
        *,
        ask: Ask,
        platform: CommercePlatform,
        database: Database,
        vault: Vault,
        clock: Callable[[], datetime],
        events_url: str,
        invalidate: Callable[[str], Awaitable[None]],
    ) -> None:
        self._shops = shops(ask, vault, clock)
        self._platform = platform
        self._database = database
        self._vault = vault
        self._clock = clock
        self._events_url = events_url
        self._invalidate = invalidate

    def handlers(
        self,
    ) -> dict[type[Any], Callable[[Any], Awaitable[Message[Any] | Sequence[Tell] | None]]]:
        """Say which method answers which call."""
        return {
            RenewToken: self.renew_token,
            ReconcileSubscriptions: self.reconcile_subscriptions,
            EndSubscriptions: self.end_subscriptions,
            CheckGrant: self.check_grant,
            ReadOrder: self.read_order,
            RevokeListingSources: self.revoke_listing_sources,
            ForgetShops: self.forget_shops,
        }

    async def renew_token(self, call: RenewToken) -> Message[None]:
        """Mint a token with the stored credentials."""
        kept = await connections.credentials_of(self._database, call.store_id, call.connected_at)
        if kept is None:
            return RenewalRefused(call.connected_at, "no_credentials", self._clock())
        # A static token is never renewed (rules/shops#tokens): the platform does not know it any more.
        if kept.client_id is None:
            return RenewalRefused(call.connected_at, "static_token", self._clock())
        try:
            secret = connections.open_secret(self._vault, call.store_id, kept.client_secret)
            grant = await self._platform.exchange(kept.shop_domain, kept.client_id, secret)
        except SealBroken:
            return RenewalRefused(call.connected_at, "secret_unreadable", self._clock())
        except GrantRefused as refusal:
            return RenewalRefused(call.connected_at, refusal.code, self._clock())
        except PlatformUnreachable as error:
            # Not raised to be tried again: who waits wants to know now, and the next one asks anew.
            log.warning("commerce.renewal_unreachable", store_id=call.store_id, why=error.message)
            return RenewalUnreachable(call.connected_at, self._clock())
        at = self._clock()
        return RenewalSucceeded(
            connected_at=call.connected_at,
            access_token=connections.seal_token(self._vault, call.store_id, grant.access_token),
            scopes=grant.scopes,
            expires_at=at + timedelta(seconds=grant.expires_in),
            at=at,
        )

    async def reconcile_subscriptions(self, call: ReconcileSubscriptions) -> Message[None] | None:
        """Subscribe the shop to the catalogue and report on every topic.

        Nothing for a grant the store no longer has: the one it has brings a call of its own.
        """
        kept = await connections.credentials_of(self._database, call.store_id, call.connected_at)
        if kept is None:
            return None

        async def reconciled(shop: Shop) -> dict[str, str]:
            report = await self._platform.reconcile_subscriptions(shop, self._events_url, REASONS)
            return {topic: self._said(topic, text, shop) for topic, text in report.topics.items()}

        try:
            results = await self._shops.call(call.store_id, reconciled)
        except Refusal as refusal:
            if not is_lasting(refusal):
                raise
            results = dict.fromkeys(TOPICS, refusal.code)
        except PlatformDenied as error:
            results = dict.fromkeys(TOPICS, f"refused: {error.message}")
        return SubscriptionsReconciled(
            call.connected_at, tuple(sorted(results.items())), self._clock()
        )

    @staticmethod
    def _said(topic: str, text: str, shop: Shop) -> str:
        """Name the scope a topic needs where the platform only says that one is missing."""
        known = TOPICS.get(topic)
        if text != MISSING_SCOPE or known is None or known.scope is None:
            return text
        return text if known.scope in shop.scopes else f"{text}: {known.scope}"

    async def end_subscriptions(self, call: EndSubscriptions) -> Message[None]:
        """Take away what the platform delivers to us, unless another store listens through the same app.

        Whatever the platform says, the store leaves: deliveries that nobody takes end by themselves.
        """

        async def ended(shop: Shop) -> None:
            await self._platform.reconcile_subscriptions(shop, self._events_url, {})

        try:
            if not await connections.is_shared(self._database, call.store_id):
                async with asyncio.timeout(LEAVE_SECONDS):
                    await self._shops.call(call.store_id, ended)
        except (Refusal, PlatformError, TimeoutError) as error:
            log.warning("commerce.subscriptions_left", store_id=call.store_id, why=str(error))
        return SubscriptionsEnded(call.connected_at, call.user_id, self._clock())

    async def check_grant(self, call: CheckGrant) -> Message[Any] | None:
        """Try the credentials of a grant; revoke what the platform does not honour any more."""
        kept = await connections.credentials_of(self._database, call.store_id, call.connected_at)
        if kept is None:
            return None
        try:
            if kept.client_id is None:
                await self._shops.call(call.store_id, self._platform.connect_probe)
            else:
                secret = connections.open_secret(self._vault, call.store_id, kept.client_secret)
                await self._platform.exchange(kept.shop_domain, kept.client_id, secret)
        except (SealBroken, PlatformDenied):
            return None
        except Refusal as refusal:
            if not is_lasting(refusal):
                raise
        except GrantRefused:
            pass
        else:
            return None
        at = self._clock()
        return RevokeGrant(
            shop_domain=kept.shop_domain, happened_at=at, at=at, connected_at=call.connected_at
        )

    async def read_order(self, call: ReadOrder) -> Message[None] | None:
        """Ask the platform what an order is now; a shop that does not let us read it is left be."""

        async def looked(shop: Shop) -> tuple[str, dict[str, Any] | None]:
            return shop.shop_domain, await self._platform.order(shop, call.order_id)

        try:
            shop_domain, body = await self._shops.call(call.store_id, looked)
        except Refusal as refusal:
            if not is_lasting(refusal):
                raise
            return None
        except PlatformDenied as error:
            log.warning("commerce.order_denied", store_id=call.store_id, status=error.status)
            return None
        if body is None:
            return None
        salt = await stores.salt_of(self._database, self._vault, call.store_id, shop_domain)
        identity = None if salt is None else self._vault.subkey(salt, PURPOSE)
        delivery = Delivery(
            id=f"read:{call.order_id}",
            topic="orders/edited",
            shop_domain=shop_domain,
            at=self._clock(),
        )
        try:
            order = order_row(Reading(call.store_id, identity, delivery), body)
        except Unreadable as error:
            log.warning("commerce.order_unreadable", store_id=call.store_id, field=error.field)
            return None
        return OrderRead(shop_domain, order)

    async def revoke_listing_sources(self, call: RevokeListingSources) -> Sequence[Tell]:
        """Tell every listing of the organization whose revenue is read from the shop."""
        found = await listings.listings_of_shop(
            self._database, call.organization_id, call.shop_domain
        )
        return [
            Tell(
                listing(listing_id),
                SourceRevoked(call.at, "app_uninstalled"),
                key=f"source-revoked:{listing_id}:{call.at.isoformat()}",
            )
            for listing_id in found
        ]

    async def forget_shops(self, call: ForgetShops) -> None:
        """Let the receiver read these shops' secrets afresh."""
        for shop_domain in call.shop_domains:
            await self._invalidate(shop_domain)
