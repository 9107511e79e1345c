"""The running service, as routes see it."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar, cast

from quart import Quart, current_app, g, has_request_context, request

from tolsey.http.web.requests import REQUEST_ID
from tolsey.runtime import ids
from tolsey.runtime.messages import ActorId, Message

if TYPE_CHECKING:
    from tolsey.actors.listing.verification.accounts import SellerAccounts
    from tolsey.actors.organization.effects import PaymentInbox
    from tolsey.actors.ports import CommercePlatform, Vectors
    from tolsey.actors.processor import PaymentProcessor
    from tolsey.actors.storefront.observed import StorefrontScanner
    from tolsey.http.chat.answering import AnswerService
    from tolsey.http.files.keeping import FileKeeper
    from tolsey.http.mail.office import PostOffice
    from tolsey.http.memory.finding import MemorySearch
    from tolsey.http.oauth.agents import Agents
    from tolsey.http.status.webhooks import StatusWebhooks
    from tolsey.runtime.registry import Runtime
    from tolsey.runtime.shards.shard import Shard
    from tolsey.settings import Settings
    from tolsey.storage.cache import Cache
    from tolsey.storage.database import Database
    from tolsey.storage.limits import Limits
    from tolsey.storage.reports.pool import Reports
    from tolsey.storage.sealing.sealed import Vault

Reply = TypeVar("Reply")

EXTENSION = "tolsey"


@dataclass(frozen=True, slots=True)
class Service:
    """What routes may use: actors to ask, rows to read, and ports to the world."""

    settings: "Settings"
    runtime: "Runtime"
    shard: "Shard"
    database: "Database"
    reports: "Reports"
    cache: "Cache"
    limits: "Limits"
    vault: "Vault"
    commerce: "CommercePlatform"
    payments: "PaymentProcessor"
    seller_accounts: "SellerAccounts"
    vectors: "Vectors"
    chat: "AnswerService"
    memory: "MemorySearch"
    agents: "Agents"
    mail: "PostOffice"
    status_webhooks: "StatusWebhooks"
    files: "FileKeeper"
    payment_inbox: "PaymentInbox"
    storefronts: "StorefrontScanner"
    clock: Callable[[], datetime]


@dataclass(slots=True)
class Seed:
    """What the ids made during a request with an `Idempotency-Key` come from."""

    text: str
    at: datetime
    ordinal: int = 0

    def next_id(self, prefix: str) -> str:
        """Make the next id: a repeat of the request makes the same ids in the same order."""
        self.ordinal += 1
        entropy = hashlib.sha256(f"{self.text}/{prefix}/{self.ordinal}".encode()).digest()
        milliseconds = int(self.at.timestamp() * 1000)
        # RFC 9562 section 5.7: 48 bits of time, version 7, 12 bits, variant 2, 62 bits.
        number = (milliseconds & (1 << 48) - 1) << 80
        number |= 0x7 << 76 | int.from_bytes(entropy[:2], "big") >> 4 << 64
        number |= 0x2 << 62 | int.from_bytes(entropy[2:10], "big") >> 2
        return f"{prefix}_{number:032x}"


def attach(app: Quart, service: Service) -> None:
    """Give the app its service."""
    app.extensions[EXTENSION] = service


def service() -> Service:
    """Return the service behind the current request."""
    return cast("Service", current_app.extensions[EXTENSION])


async def ask(to: ActorId, message: Message[Reply], *, id: str | None = None) -> Reply:
    """Post a message to an actor and wait for its reply; with an id it takes effect once."""
    return await service().runtime.ask(to, message, id=id)


def now() -> datetime:
    """Tell the time of the service's clock, in UTC."""
    return service().clock().astimezone(UTC)


def new_id(prefix: str) -> str:
    """Make an id; the same one again when the request repeats under its `Idempotency-Key`."""
    seed: Seed | None = g.get("seed") if has_request_context() else None
    return seed.next_id(prefix) if seed is not None else ids.new_id(prefix)


def request_id() -> str:
    """Return the id of the current request, as its answer and its log lines carry it."""
    return str(request.scope.get(REQUEST_ID, ""))
