"""Outbound connections that cannot be pointed at our own network (OWASP: SSRF).

The check sits where the socket is opened, so every spelling of an address and every later DNS
answer meets it: all addresses a name has must be public, the connection goes to the numeric
address that was checked, and what it reached is checked again.
"""

import socket
from collections.abc import Awaitable, Callable, Collection, Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpcore
import httpx

from tolsey.http.clients.certificates import trusted_certificates
from tolsey.http.clients.counted import CountedClient, Peer

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Awaitable[Iterable[str]]]

PORTS = frozenset({80, 443})
DEFAULT_TIMEOUT = httpx.Timeout(30.0, connect=5.0, pool=10.0)
DEFAULT_LIMITS = httpx.Limits(max_connections=50, max_keepalive_connections=20)
# RFC 6890 and its updates, written out because `ipaddress` answers differently between 3.11 and 3.13
FORBIDDEN_IPV4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
GLOBAL_IPV6 = IPv6Network("2000::/3")
FORBIDDEN_IPV6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",
        "2002::/16",  # 6to4 carries any IPv4 address
        "3fff::/20",
    )
)


class ForbiddenAddress(httpcore.ConnectError):
    """The address is not one the service may call."""


def is_public(address: Address) -> bool:
    """Whether an address belongs to the public internet; mapped and tunnelled forms do not."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in FORBIDDEN_IPV4)
    return address in GLOBAL_IPV6 and not any(address in network for network in FORBIDDEN_IPV6)


def loopback_origin(url: str) -> tuple[str, int] | None:
    """Host and port of an address on this machine that someone configured, else None."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host == "localhost" or _is_loopback(host):
        return host, parts.port or (443 if parts.scheme == "https" else 80)
    return None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


async def resolve(host: str, port: int) -> list[str]:
    """Numeric addresses of a host, by the system's resolver."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # a zone index, as in fe80::1%eth0, is not part of the address
    return [str(answer[4][0]).split("%")[0] for answer in found]


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Opens connections to public addresses on ports 80 and 443, and to `local_origins`.

    `local_origins` are (host, port) pairs an operator configured; they must resolve to loopback.
    """

    def __init__(
        self,
        local_origins: Collection[tuple[str, int]] = (),
        *,
        resolver: Resolver = resolve,
        inner: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._local_origins = frozenset(local_origins)
        self._resolver = resolver
        self._inner = inner or httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of the base class
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address that answers, once all of them are allowed."""
        addresses = await self._allowed(host, port, timeout)
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                stream = await self._inner.connect_tcp(
                    str(address), port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            return await self._confirmed(stream, address)
        raise failure

    async def _allowed(self, host: str, port: int, seconds: float | None) -> list[Address]:
        local = (host, port) in self._local_origins
        if not local and port not in PORTS:
            raise ForbiddenAddress(f"port {port} is not called")
        try:
            with anyio.fail_after(seconds):
                addresses = [ip_address(text) for text in await self._resolver(host, port)]
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"{host} did not resolve in time") from error
        except (OSError, UnicodeError, ValueError) as error:
            raise httpcore.ConnectError(f"{host} does not resolve") from error
        for address in addresses:
            if not (address.is_loopback if local else is_public(address)):
                raise ForbiddenAddress(f"{host} is not a public host")
        return addresses

    async def _confirmed(
        self, stream: httpcore.AsyncNetworkStream, address: Address
    ) -> httpcore.AsyncNetworkStream:
        try:
            reached = stream.get_extra_info("server_addr")
        except OSError as error:
            raise httpcore.ConnectError(f"{address} hung up") from error
        if reached is not None and ip_address(str(reached[0]).split("%")[0]) != address:
            await stream.aclose()
            raise ForbiddenAddress(f"{address} led elsewhere")
        return stream

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of the base class
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refuse: nothing outside is reached through a file."""
        del timeout, socket_options
        raise ForbiddenAddress(f"{path} is a file")

    async def sleep(self, seconds: float) -> None:
        """Pause between the pool's own connection attempts."""
        await self._inner.sleep(seconds)


class GuardedTransport(httpx.AsyncHTTPTransport):
    """httpx's own transport over a pool whose connections the guard opens."""

    def __init__(self, backend: GuardedBackend, limits: httpx.Limits) -> None:
        certificates = trusted_certificates()
        super().__init__(verify=certificates, trust_env=False)
        # httpx has no public way to hand its pool a network backend
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=certificates,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=backend,
        )


def guarded_client(
    local_urls: Iterable[str] = (),
    *,
    peer: Peer = "commerce",
    timeout: httpx.Timeout = DEFAULT_TIMEOUT,
    limits: httpx.Limits = DEFAULT_LIMITS,
    **backend: Any,
) -> httpx.AsyncClient:
    """Make a client that calls public hosts only, follows no redirect, reads no environment.

    A URL in `local_urls` opens its own host and port when that is on this machine; others are
    ignored.
    """
    origins = {origin for origin in map(loopback_origin, local_urls) if origin is not None}
    return CountedClient(
        peer,
        transport=GuardedTransport(GuardedBackend(origins, **backend), limits),
        timeout=timeout,
        follow_redirects=False,
    )
