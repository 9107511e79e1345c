"""Calls to the commerce platform that wait their turn, are patient, and give up in time."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic_core import to_json

from tolsey.actors.ports import (
    GrantRefused,
    PlatformThrottled,
    PlatformUnreachable,
    QueryTooCostly,
    Shop,
    TokenGrant,
)
from tolsey.actors.shops import is_shop_domain
from tolsey.http.clients.commerce.answers import (
    GraphqlAnswer,
    read_answer,
    read_body,
    read_grant,
    read_shop,
    refusal,
)
from tolsey.http.clients.commerce.bodies import PlatformReply, TransientFault, fetch
from tolsey.http.clients.commerce.costs import (
    MOST_QUERY_POINTS,
    Bucket,
    Buckets,
    Reservation,
    read_cost,
)
from tolsey.http.clients.guard import loopback_origin

API_VERSION = re.compile(r"\d{4}-(?:01|04|07|10)|unstable")
HEADER_VALUE = re.compile(r"[\x21-\x7e]{1,4096}")
MIB = 1024 * 1024

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Bounds of everything the client does; seconds, bytes and counts."""

    attempts: int = 5
    throttled_attempts: int = 60
    backoff_seconds: float = 0.5
    longest_backoff_seconds: float = 20.0
    attempt_seconds: float = 45.0
    deadline_seconds: float = 120.0
    body_bytes: int = 8 * MIB
    grant_attempts: int = 3
    grant_deadline_seconds: float = 20.0
    grant_body_bytes: int = 64 * 1024
    page_points: float = 980.0
    pages: int = 5_000
    line_pages: int = 100
    bulk_polls: int = 400
    bulk_poll_seconds: float = 0.1
    bulk_longest_poll_seconds: float = 20.0
    bulk_deadline_seconds: float = 2 * 3600.0
    bulk_file_bytes: int = 2048 * MIB
    bulk_line_bytes: int = MIB
    bulk_download_seconds: float = 1800.0
    bulk_download_attempts: int = 3


@dataclass(frozen=True, slots=True)
class Pace:
    """The clock the client lives by: monotonic seconds, how to wait, and luck in [0, 1)."""

    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    luck: Callable[[], float]


class CallBudget:
    """What is left of one call's attempts and time."""

    def __init__(self, pace: Pace, limits: CallLimits, *, attempts: int, seconds: float) -> None:
        self._pace = pace
        self._limits = limits
        self._attempts = attempts
        self._throttles = limits.throttled_attempts
        self._failures = 0
        self._ends_at = pace.now() + seconds

    @property
    def seconds_left(self) -> float:
        """Time until the call must have ended."""
        return self._ends_at - self._pace.now()

    async def after(self, fault: TransientFault) -> None:
        """Wait before the next attempt, or raise PlatformUnreachable when there is none left."""
        if fault.throttled:
            self._throttles -= 1
        else:
            self._failures += 1
        wait = self._backoff() if fault.wait_seconds is None else fault.wait_seconds
        if self._failures >= self._attempts or self._throttles < 1 or wait >= self.seconds_left:
            kind = PlatformThrottled if fault.throttled else PlatformUnreachable
            raise kind(fault.reason, fault.wait_seconds, maybe_done=fault.done) from fault
        await self._pace.sleep(wait)

    async def wait(self, seconds: float) -> None:
        """Wait for points, or raise PlatformThrottled when that is past the deadline."""
        if seconds >= self.seconds_left:
            raise PlatformThrottled(
                "The shop's request limit at Shopify is used up. Try again in a moment.",
                seconds,
                maybe_done=False,
            )
        await self._pace.sleep(seconds)

    def _backoff(self) -> float:
        """Wait a random part of a doubling bound, at least half of it."""
        tries = self._failures + self._limits.throttled_attempts - self._throttles
        bound = self._limits.backoff_seconds * 2.0 ** max(0, tries - 1)
        return min(self._limits.longest_backoff_seconds, bound) * (0.5 + self._pace.luck() / 2)


class Address:
    """Where a shop's Admin API is: the template with the shop's domain put in."""

    def __init__(self, url_template: str, api_version: str) -> None:
        parts = urlsplit(url_template.replace("{shop}", "shop"))
        secure = parts.scheme == "https" or loopback_origin(url_template) is not None
        if not parts.hostname or not secure or parts.scheme not in ("http", "https"):
            raise ValueError(
                "The Shopify URL template must use https unless its host is a loopback address"
            )
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("The Shopify URL template must contain only a scheme, host and port")
        if API_VERSION.fullmatch(api_version) is None:
            raise ValueError("The Shopify API version must have the form 2026-07")
        self._template = url_template.rstrip("/")
        self._version = api_version

    def token(self, shop_domain: str) -> str:
        """Give the shop's token endpoint."""
        return f"{self._base(shop_domain)}/admin/oauth/access_token"

    def graphql(self, shop_domain: str) -> str:
        """Give the shop's GraphQL endpoint."""
        return f"{self._base(shop_domain)}/admin/api/{self._version}/graphql.json"

    def shop(self, shop_domain: str) -> str:
        """Give where the shop is described in the older way."""
        return f"{self._base(shop_domain)}/admin/api/{self._version}/shop.json"

    def may_download(self, url: str) -> bool:
        """Whether a URL the platform handed out may be fetched: https, or where the API itself is.

        The guard still refuses a host that is not public.
        """
        try:
            # the parser that the request will use: two may read one text differently
            parts = httpx.URL(url)
        except httpx.InvalidURL:
            return False
        if parts.userinfo or not parts.host:
            return False
        own = loopback_origin(self._template)
        return parts.scheme == "https" or (
            parts.scheme == "http" and own is not None and own == (parts.host, parts.port or 80)
        )

    def _base(self, shop_domain: str) -> str:
        if not is_shop_domain(shop_domain):
            raise ValueError("The shop's domain is not normalized")
        return self._template.replace("{shop}", shop_domain)


class Calls:
    """The endpoints of the platform, each call bounded in attempts and time."""

    def __init__(
        self, address: Address, http: httpx.AsyncClient, pace: Pace, limits: CallLimits
    ) -> None:
        self.address = address
        self.http = http
        self.pace = pace
        self.limits = limits
        self._buckets = Buckets()

    async def grant(self, shop_domain: str, client_id: str, client_secret: str) -> TokenGrant:
        """Ask for a token (RFC 6749, section 4.4): a form, and JSON as the wanted answer."""
        request = self.http.build_request(
            "POST",
            self.address.token(shop_domain),
            data={
                "grant_type": "client_credentials",
                "client_id": client_id,
                "client_secret": client_secret,
            },
            headers={"Accept": "application/json", "Accept-Encoding": "gzip"},
        )
        try:
            return await self._read(request, read_grant)
        except GrantRefused as refused:
            # an answer may repeat what was sent, even in the place of its code
            is_repeated = refused.code == client_secret.lower()
            raise GrantRefused(
                "invalid_request" if is_repeated else refused.code,
                refused.message.replace(client_secret or "\0", "…"),
            ) from None

    async def shop_body(self, shop: Shop) -> Mapping[str, Any]:
        """Read a shop in the shape of its webhook body."""
        request = self.http.build_request(
            "GET", self.address.shop(shop.shop_domain), headers=_headers(shop)
        )
        return await self._read(request, read_shop)

    async def _read(self, request: httpx.Request, read: Callable[[PlatformReply], Read]) -> Read:
        """Send a request until it is answered, as often and as long as asking for a grant is worth."""
        limits = self.limits
        patience = CallBudget(
            self.pace, limits, attempts=limits.grant_attempts, seconds=limits.grant_deadline_seconds
        )
        while True:
            try:
                return read(
                    await fetch(
                        self.http,
                        request,
                        limit_bytes=limits.grant_body_bytes,
                        seconds=min(limits.attempt_seconds, patience.seconds_left),
                    )
                )
            except TransientFault as fault:
                await patience.after(fault)

    async def ask(
        self,
        shop: Shop,
        document: str,
        variables: Mapping[str, Any] | None = None,
        *,
        repeatable: bool | None = None,
    ) -> dict[str, Any]:
        """Give the data of a document that succeeds as a whole."""
        answer = await self.ask_partly(shop, document, variables, repeatable=repeatable)
        if answer.faults:
            raise refusal(answer.faults)
        return answer.data

    async def ask_partly(
        self,
        shop: Shop,
        document: str,
        variables: Mapping[str, Any] | None = None,
        *,
        repeatable: bool | None = None,
    ) -> GraphqlAnswer:
        """Give the answer to a document of which some fields may have failed.

        `repeatable` says that sending it twice does no harm, which is assumed of queries only: a
        mutation whose answer was lost is not sent again. QueryTooCostly when the platform would
        certainly refuse it for its cost.
        """
        from tolsey.http.clients.commerce import document_costs  # noqa: PLC0415 - imports graphql, which is slow

        variables = variables or {}
        least = document_costs.count_least(document, variables)
        if least > MOST_QUERY_POINTS:
            raise QueryTooCostly(least, MOST_QUERY_POINTS, is_least=True)
        counted = document_costs.estimate(document, variables)
        again = not document_costs.is_mutation(document) if repeatable is None else repeatable
        limits = self.limits
        patience = CallBudget(
            self.pace, limits, attempts=limits.attempts, seconds=limits.deadline_seconds
        )
        while True:
            try:
                return await self._paid(shop, document, variables, counted, patience)
            except TransientFault as fault:
                if fault.done and not again:
                    raise PlatformUnreachable(fault.reason, fault.wait_seconds) from fault
                await patience.after(fault)

    async def _paid(
        self,
        shop: Shop,
        document: str,
        variables: Mapping[str, Any],
        counted: float,
        patience: CallBudget,
    ) -> GraphqlAnswer:
        bucket = self._buckets.of(shop.shop_domain)
        reservation = await self._reserve(bucket, document, counted, patience)
        cost, is_lost = None, True
        try:
            reply = await self._send(shop, document, variables, patience)
            is_lost = False
            body = read_body(reply)
            cost = read_cost(body.get("extensions"))
        except TransientFault as fault:
            is_lost = fault.done
            raise
        finally:
            bucket.settle(reservation, cost, self.pace.now(), is_lost=is_lost)
        if cost is not None:
            bucket.learn(document, counted, cost)
        return read_answer(reply, body, cost)

    async def _reserve(
        self, bucket: Bucket, document: str, counted: float, patience: CallBudget
    ) -> Reservation:
        points = bucket.price(document, counted)
        while wait := bucket.wait_seconds(points, self.pace.now()):
            await patience.wait(wait)
        return bucket.spend(points, self.pace.now())

    async def _send(
        self, shop: Shop, document: str, variables: Mapping[str, Any], patience: CallBudget
    ) -> PlatformReply:
        request = self.http.build_request(
            "POST",
            self.address.graphql(shop.shop_domain),
            # a caller's variables may hold integers of any size
            content=to_json({"query": document, "variables": dict(variables)}, inf_nan_mode="null"),
            headers={**_headers(shop), "Content-Type": "application/json"},
        )
        limits = self.limits
        return await fetch(
            self.http,
            request,
            limit_bytes=limits.body_bytes,
            seconds=max(0.1, min(limits.attempt_seconds, patience.seconds_left)),
        )


def _headers(shop: Shop) -> dict[str, str]:
    if HEADER_VALUE.fullmatch(shop.access_token) is None:
        raise ValueError("The access token contains characters that are not allowed in a header.")
    return {
        "Accept": "application/json",
        "Accept-Encoding": "gzip",
        "X-Shopify-Access-Token": shop.access_token,
    }
