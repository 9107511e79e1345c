"""Requests to tell or to forget, kept before anything is done about them, whoever asks (rules/shops#who-asks)."""

import hashlib
import hmac
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

from tolsey.actors.store.deliveries.identity import PURPOSE, pseudonym
from tolsey.runtime.ids import new_id
from tolsey.storage import audit
from tolsey.storage.commerce import compliance, stores
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.compliance import (
    ComplianceRequest,
    ComplianceTopic,
    CustomerRedaction,
    PendingStep,
    RequestSource,
)
from tolsey.storage.sealing.sealed import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyWish:
    """What somebody asks for, with the address that is not kept.

    `body` is what tells two wishes apart that are open at once, `delivery_id` one delivery of it, `stores`
    for which of the shop's stores it is proven: None for all that ever were connected to it.
    """

    topic: ComplianceTopic
    source: RequestSource
    shop_domain: str
    body: bytes = field(repr=False)
    delivery_id: str = ""
    email: str | None = field(default=None, repr=False)
    customer_id: int | None = None
    stores: Collection[str] | None = None
    asked_by: str | None = None


class PrivacyRequests:
    """Keeps what is asked for, and whom each store of the shop knows the customer as."""

    def __init__(self, database: Database, vault: Vault, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._vault = vault
        self._clock = clock

    async def open(self, wish: PrivacyWish) -> tuple[ComplianceRequest, bool]:
        """Keep a request, and tell whether it is a new one; else it is the one that was kept before."""
        keys = await compliance.stores_of(self._database, wish.shop_domain)
        if wish.stores is not None:
            keys = {one: key for one, key in keys.items() if one in wish.stores}
        proven = "" if wish.stores is None else ",".join(sorted(keys))
        secret = self._key(wish.shop_domain)
        about = f"{wish.source}\0{proven}\0".encode() + wish.body
        digest = hmac.digest(secret, about, hashlib.sha256).hex()
        request = ComplianceRequest(
            id=new_id("req"),
            topic=wish.topic,
            shop_domain=wish.shop_domain,
            # Ids of one source say nothing of another's.
            delivery_id=wish.delivery_id
            if wish.source == RequestSource.PLATFORM and wish.delivery_id
            else f"{wish.source}:{wish.delivery_id or digest}",
            body_digest=digest,
            email_hash=pseudonym(secret, wish.email, wish.customer_id),
            stores=tuple(keys),
            shop_keys=tuple(keys.values()),
            received_at=self._clock(),
            pending_steps=tuple(PendingStep) if wish.topic == ComplianceTopic.SHOP_REDACT else (),
            source=wish.source,
            asked_by=wish.asked_by,
        )
        subjects = await self._subjects(request, wish)
        async with self._database.transaction() as tx:
            if not await compliance.record(tx, request, subjects):
                return await compliance.kept_as(tx, request), False
            for store_id in keys:
                await audit.write(
                    tx,
                    "compliance.requested",
                    store_id,
                    actor=wish.asked_by or str(wish.source),
                    request=request.id,
                    topic=wish.topic,
                )
        return request, True

    def _key(self, shop_domain: str) -> bytes:
        """Derive what a shop's requests are hashed with: a request may span several stores."""
        return self._vault.secret_for(self._vault.key_ids[0], f"compliance:v1:{shop_domain}")

    async def _subjects(
        self, request: ComplianceRequest, wish: PrivacyWish
    ) -> list[CustomerRedaction]:
        """Tell whom each store of the shop knows the customer as; the address itself is not kept."""
        found: dict[tuple[str, str], CustomerRedaction] = {}
        for store_id, key in zip(request.stores, request.shop_keys, strict=True):
            salt = await stores.salt_of(self._database, self._vault, store_id, request.shop_domain)
            if salt is None:  # its pseudonyms can be linked by nobody any more
                continue
            identity = self._vault.subkey(salt, PURPOSE)
            # A row of a customer without an address is known by the platform's id.
            for email, id in ((wish.email, None), (None, wish.customer_id)):
                known = pseudonym(identity, email, id)
                if known is not None:
                    found[key, known] = CustomerRedaction(
                        request_id=request.id,
                        store_id=key,
                        subject_key=f"{request.shop_domain}:{known}",
                        email_hash=known,
                    )
        return list(found.values())
