"""What actors ask of the world outside: ports as Protocols, and the values they exchange.

An adapter in `tolsey.http.clients` or `tolsey.storage` fills a port; one without its credential is
filled by an `Unset…` class here that refuses every use and names the variable to set.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

from tolsey.actors.edit import Edit
from tolsey.actors.refusals import MissingCredential
from tolsey.storage.records.commerce.compliance import ComplianceRequest
from tolsey.storage.records.selling.revenue import PulledOrder

UNAUTHORIZED: Final = 401
MEASURED_SINCE: Final = "2026-07"
"""The first version of the commerce API that says what a line costs after its discounts, before tax."""


def measures_revenue(version: str) -> bool:
    """Whether orders of an API version have the fields that revenue is measured with.

    Versions are quarters in writing, so they sort; the one under work and the default are newer.
    """
    return version in ("", "unstable") or version >= MEASURED_SINCE


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKept:
    """The answer to a customer is there for those who look after a store; `rows` are what it tells."""

    organization_id: str
    store_name: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerMention:
    """A row of a table in which the shop's people wrote an address of a customer's; `key` finds it in its store."""

    table: str
    key: str | int


class CustomerRecords(Protocol):
    """What a store keeps of a customer whom a request names."""

    async def answer(
        self, request: ComplianceRequest, store_id: str, shop_key: str
    ) -> AnswerKept | None:
        """Write it down for those who look after the store; None of a deleted store."""
        ...

    async def mentions(
        self, request: ComplianceRequest, store_id: str, shop_key: str
    ) -> Sequence[CustomerMention]:
        """List where else the customer is named."""
        ...


class PlatformError(Exception):
    """The commerce platform did not do what it was asked; `message` is safe to show a seller."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class GrantRefused(PlatformError):  # noqa: N818 - the platform's answer, in its own word
    """The platform will not mint a token with these credentials, now or later.

    `code` is the platform's own error code, such as `app_not_installed`, `invalid_client` or
    `shop_not_permitted`; where it sent none, `unauthorized`, `shop_not_found` or `refused_<status>`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class PlatformUnreachable(PlatformError):  # noqa: N818 - a state of the world, not our fault
    """No usable answer after the retries: trying later may help, after `retry_after` seconds.

    `maybe_done` says that what was asked may have been carried out all the same, which is assumed
    of everything that is not known to have been turned away.
    """

    def __init__(
        self,
        message: str,
        retry_after: float | None = None,
        *,
        maybe_done: bool = True,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.maybe_done = maybe_done


class PlatformThrottled(PlatformUnreachable):
    """The requests came too fast, by the platform's answer or by our own view of the shop's budget."""


class QueryTooCostly(PlatformUnreachable):
    """A query costs more points than the platform allows for one query, so it was not run.

    `is_least` marks a lower bound that was counted before sending; `cost` is None where the platform named none.
    """

    def __init__(self, cost: float | None, limit: float, *, is_least: bool = False) -> None:
        bound = "at least " if is_least else ""
        costs = "too many" if cost is None else f"{bound}{cost:,.0f}"
        super().__init__(
            f"The query costs {costs} points, and at most {limit:,.0f} are allowed."
            " Request fewer items with `first`, or nest fewer lists.",
            maybe_done=False,
        )
        self.cost = cost
        self.limit = limit


class PlatformDenied(PlatformError):  # noqa: N818 - the platform's answer
    """The platform understood and refuses: `status` is its HTTP status.

    401 is a dead token, 402 an unpaid shop, 403 a missing permission (also when the platform says
    so inside a 200), 404 no such shop, 423 a locked shop, 400 a request it does not accept.
    `missing_scope` is the permission it named, if it named one. `message` is a plain line for
    people's pages, `words` what the platform said, as it said it, for programs.
    """

    def __init__(
        self,
        status: int,
        message: str,
        missing_scope: str | None = None,
        words: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.missing_scope = missing_scope
        self.words = words or message

    @property
    def is_dead_token(self) -> bool:
        """Whether the platform does not know the token any more, and so did nothing."""
        return self.status == UNAUTHORIZED


class ApiVersionTooOld(PlatformError):  # noqa: N818 - a state of the service's settings
    """The API version that is set has not the fields that revenue is measured with."""

    def __init__(self, version: str) -> None:
        super().__init__(
            f"The service speaks the commerce platform's API of {version}; revenue is verified"
            f" from {MEASURED_SINCE} on. Ask its operator to set COMMERCE_API_VERSION."
        )


class MailRefused(Exception):  # noqa: N818 - the mail server's answer
    """The mail server takes this mail neither now nor later; the text is its answer."""


class MailDelayed(Exception):  # noqa: N818 - the mail server's answer
    """The mail server did not take this mail now; the text says what it answered, if it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A mail to one person; `unsubscribe` is the address that ends mails of its topic (RFC 8058)."""

    message_id: str
    recipient: str
    subject: str
    text: str = field(repr=False)
    html: str = field(repr=False)
    unsubscribe: str | None = field(repr=False)
    at: datetime


class MailServer(Protocol):
    """Takes mails."""

    async def send(self, mail: Mail) -> str:
        """Hand a mail over; answer with what the server said. Raises MailRefused or MailDelayed."""
        ...


class EditRefused(PlatformError):  # noqa: N818 - the platform's answer
    """The platform did not make a change, for a reason in what was asked.

    `stale` says that the thing is no longer as the change expects it, `code` is the platform's own.
    """

    def __init__(self, message: str, *, stale: bool = False, code: str | None = None) -> None:
        super().__init__(message)
        self.stale = stale
        self.code = code


@dataclass(frozen=True, slots=True)
class Shop:
    """A shop and the token that opens its Admin API, with what it allows (none named = unknown)."""

    shop_domain: str
    access_token: str = field(repr=False, metadata={"secret": True})
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformDocument:
    """A GraphQL document and its variables, as they are sent."""

    document: str
    variables: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that is to be put into a shop."""

    filename: str
    mime: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """A minted token, the scopes granted with it (none named = unknown), and its life in seconds."""

    access_token: str = field(repr=False, metadata={"secret": True})
    scopes: tuple[str, ...]
    expires_in: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopFacts:
    """What the platform says of a shop; `plan` is its public name, `timezone` an IANA name."""

    shop_domain: str
    name: str
    currency: str
    plan: str
    partner_development: bool
    primary_domain: str | None
    created_at: datetime
    timezone: str
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscriptionReport:
    """What became of each topic: `ok`, `created`, `missing_scope`, or `refused: <why>`.

    `removed` names the topics whose subscription of ours was taken away: no longer in the
    catalogue, doubled, or not delivering whole JSON bodies.
    """

    topics: Mapping[str, str]
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkExport:
    """An export of a shop's orders at the platform: how many it has so far, and where it lies when whole."""

    is_whole: bool
    is_lost: bool
    orders: int = 0
    url: str | None = field(default=None, repr=False)
    size: int = 0


class CommercePlatform(Protocol):
    """The commerce platform's Admin API.

    Every method may raise PlatformUnreachable; every method that takes a Shop, PlatformDenied.
    """

    async def exchange(self, shop_domain: str, client_id: str, client_secret: str) -> TokenGrant:
        """Mint a token by the client-credentials grant; GrantRefused when it will never work."""
        ...

    async def connect_probe(self, shop: Shop) -> ShopFacts:
        """Read the facts a connection is made with."""
        ...

    async def plan_name(self, shop: Shop) -> str | None:
        """Name a shop's plan as the platform does for itself, which alone tells `partner_test`.

        None where it does not tell.
        """
        ...

    async def owner_email(self, shop: Shop) -> str | None:
        """Say at which address the platform writes to a shop's owner; None where it does not tell."""
        ...

    async def reconcile_subscriptions(
        self, shop: Shop, uri: str, topics: Mapping[str, str]
    ) -> SubscriptionReport:
        """Make the subscriptions that deliver to `uri` exactly the catalogue `topics`.

        A key of `topics` is a topic name such as `orders/create`, its value the reason for it.
        """
        ...

    def told_of_subscriptions(self, uri: str, topics: Sequence[str]) -> list[PlatformDocument]:
        """Say what `reconcile_subscriptions` would send of topics that are missing, and send nothing."""
        ...

    def check_version(self) -> None:
        """Raise ApiVersionTooOld where orders lack the fields that revenue is measured with."""
        ...

    def orders(self, shop: Shop, start: datetime, end: datetime) -> AsyncIterator[PulledOrder]:
        """Every real order processed in [start, end), each once, in no promised order."""
        ...

    def orders_before(self, shop: Shop, start: datetime) -> AsyncGenerator[PulledOrder]:
        """Real orders processed before a moment, the latest first, up to a bound."""
        ...

    def orders_given_back(self, shop: Shop, start: datetime) -> AsyncIterator[PulledOrder]:
        """Real orders processed before a moment of which money went back, perhaps, since then."""
        ...

    async def order(self, shop: Shop, order_id: int) -> dict[str, Any] | None:
        """One order in the shape of its webhook body, or None when the shop has no such order."""
        ...

    async def start_export(self, shop: Shop, since: datetime | None) -> str:
        """Begin an export of the orders made since a moment, or of all; answers its id."""
        ...

    async def export(self, shop: Shop, bulk_export: str) -> BulkExport:
        """Look how far an export is."""
        ...

    def exported_orders(
        self, export: BulkExport, start: int
    ) -> AsyncGenerator[tuple[int, dict[str, Any]]]:
        """Read a whole export from a place in it: orders in the shape of their webhook bodies.

        Each comes with the place behind it.
        """
        ...

    async def graphql(
        self,
        shop: Shop,
        document: str,
        variables: Mapping[str, Any] | None = None,
        *,
        repeatable: bool | None = None,
    ) -> dict[str, Any]:
        """Give the data of a document; a mutation is sent again only when it is `repeatable`."""
        ...


class CommerceEditor(Protocol):
    """What can be changed in a shop, and read as it is now.

    Both methods may raise PlatformUnreachable and PlatformDenied, and `change` EditRefused. What a
    thing is like is told in the words of `tolsey.actors.store.editing.kinds`.
    """

    async def look(self, shop: Shop, edit: Edit) -> dict[str, Any] | None:
        """Read what an edit is about as it is now; None when the shop has no such thing."""
        ...

    async def look_all(
        self, shop: Shop, some: Sequence[Edit], *, at_once: int
    ) -> list[dict[str, Any] | None]:
        """Read what many edits are about, in as few requests as that takes, so many of them at once."""
        ...

    async def change(self, shop: Shop, edit: Edit, key: str) -> dict[str, Any]:
        """Make the change of an edit and answer what the thing is then; sent once, whatever becomes of it.

        `key` names this change among all that are ever made to the shop.
        """
        ...

    def told(self, edit: Edit, key: str) -> PlatformDocument:
        """Say what `change` would send, and send nothing."""
        ...

    async def stage(self, shop: Shop, upload: Upload) -> str:
        """Put a file where the platform takes it from, and answer where that is; nothing of the shop changes."""
        ...

    def told_of_upload(self, upload: Upload) -> PlatformDocument:
        """Say what `stage` would send, and send nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPage:
    """A page of a store's own site as somebody meets it: no status where none came.

    It `asks_password` where the site shows nothing but the page that does.
    """

    status: int | None
    text: str = ""
    asks_password: bool = False


class OwnStorefront(Protocol):
    """Reads pages of a store's own site for the store."""

    async def owned(
        self, domain: str, paths: Sequence[str], *, password: str | None = None
    ) -> Mapping[str, OwnPage]:
        """Look at pages of a site for its owner, by the password that visitors are asked for where there is one."""
        ...


class Vectors(Protocol):
    """Where embeddings are kept, by namespace."""

    async def purge(self, namespaces: Sequence[str]) -> None:
        """Nothing of these namespaces is left."""
        ...

    async def count(self, namespaces: Sequence[str]) -> int:
        """How many vectors these namespaces hold together."""
        ...


class ErasureList(Protocol):
    """Where erasures are listed outside the database, for one that is restored."""

    async def keep_erasure(self, name: str, entry: bytes) -> None:
        """List an erasure under its name, in place of what was listed there."""
        ...


class ScanQueue(Protocol):
    """Where scans wait for their turn outside the service."""

    async def publish(self, domain: str) -> None:
        """Queue a scan. Raises MissingCredential, and ConnectionError where the queue does not take it."""
        ...


class DatasetReader(Protocol):
    """An external data set of storefronts."""

    def domains(self) -> AsyncIterator[str | None]:
        """Give what each entry names; None for an entry that cannot be read."""
        ...


class Unset:
    """A port whose credential is missing: every use is refused, naming the variable."""

    def __init__(self, variable: str) -> None:
        self._variable = variable

    def __getattr__(self, name: str) -> Any:
        """Refused."""
        del name
        raise MissingCredential(self._variable)
