"""Storefronts that mean no good: each costs a bounded amount, and ends with a verdict."""

import tracemalloc
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpcore
import pytest

from tests.http.clients.storefront.web import HASTE, SHOP, looked, scanner
from tolsey.actors.domains import domain_named
from tolsey.actors.storefront.observed import CATEGORIES, Reached, ScanVerdict
from tolsey.http.clients.guard import guarded_client
from tolsey.http.clients.storefront.visit import Manners
from tolsey.sandbox.storefronts import Storefront, Storefronts, Trap, product

FORBIDDEN = [
    "127.0.0.1",
    "localhost",
    "[::1]",
    "0",
    "0.0.0.0",  # noqa: S104 - an address to refuse
    "2130706433",
    "0x7f.1",
    "0x7f000001",
    "017700000001",
    "0177.0.0.1",
    "127.1",
    "[::ffff:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[fe80::1]",
    "[fd12:3456::1]",
    "100.64.0.1",
    "169.254.169.254",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "192.88.99.1",
    "192.0.0.8",
    "198.18.0.1",
    "224.0.0.1",
]
PUBLIC = "93.184.216.34"
QUICK = Manners(pace_seconds=0, seconds=2.0, request_seconds=0.5)


@asynccontextmanager
async def canary() -> AsyncIterator[list[int]]:
    """Listen on this machine, where nobody may come."""
    came: list[int] = []

    async def met(stream: anyio.abc.SocketStream) -> None:
        came.append(1)
        await stream.aclose()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, met)
        yield came
        tasks.cancel_scope.cancel()


class Relayed(httpcore.AsyncNetworkStream):
    """A connection to this machine that passes for one to a public address, TLS and all."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, address: tuple[str, int]) -> None:
        self._stream = stream
        self._address = address

    async def read(self, *args: Any, **kwargs: Any) -> bytes:
        return await self._stream.read(*args, **kwargs)

    async def write(self, *args: Any, **kwargs: Any) -> None:
        await self._stream.write(*args, **kwargs)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(self, *args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
        del args, kwargs
        return self

    def get_extra_info(self, info: str) -> Any:
        return self._address if info == "server_addr" else self._stream.get_extra_info(info)


class Internet(httpcore.AnyIOBackend):
    """Reaches the sandbox at one public address, over real sockets, and nothing else."""

    def __init__(self, url: str) -> None:
        self._port = int(url.rpartition(":")[2])
        self.reached: list[str] = []

    async def connect_tcp(self, host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        self.reached.append(host)
        assert host == PUBLIC
        stream = await super().connect_tcp("127.0.0.1", self._port, *args, **kwargs)
        return Relayed(stream, (host, port))


def on(internet: Internet, resolver: Any) -> Any:
    """Make clients that look names up so, and reach what they find over an Internet."""
    return lambda local, **given: guarded_client(local, resolver=resolver, inner=internet, **given)


@pytest.mark.parametrize("host", FORBIDDEN)
async def test_no_address_of_a_network_that_is_not_public_is_connected_to(host: str) -> None:
    assert domain_named(host) is None
    async with canary() as came:
        seen = await scanner().scan(host, is_deep=True)
    assert came == []
    assert seen.reached is Reached.UNREACHABLE
    assert seen.cost.requests <= 1
    assert set(seen.diagnosis) == set(CATEGORIES)


async def test_a_name_that_changes_to_our_own_machine_during_a_scan_is_refused_there() -> None:
    """The first connection is to a public address; the next answer of the name is this machine's."""
    answers = iter([PUBLIC])

    async def rebinding(host: str, port: int) -> Iterable[str]:
        del host, port
        return [next(answers, "127.0.0.1")]

    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            head = b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            await stream.send(head)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - not Django's
    async with listener, anyio.create_task_group() as tasks, canary() as came:
        tasks.start_soon(listener.serve, serve)
        internet = Internet(f"http://127.0.0.1:{port}")
        seen = await scanner(client=on(internet, rebinding)).scan(SHOP, is_deep=True)
        tasks.cancel_scope.cancel()
    assert internet.reached == [PUBLIC]
    assert came == []
    assert seen.reached is Reached.UNREACHABLE
    assert "public" in seen.diagnosis["catalogue"].reason


@pytest.mark.parametrize("host", ["inner.shop.example", "127.0.0.1", "[::1]", "169.254.169.254"])
@pytest.mark.parametrize("path", ["/", "/products.json", "/robots.txt"])
async def test_a_redirect_to_our_own_network_is_not_followed(host: str, path: str) -> None:
    async def resolved(name: str, port: int) -> Iterable[str]:
        del port
        return [PUBLIC if name == SHOP else "127.0.0.1"]

    shop = Storefront(domain=SHOP, products=[product(1)], redirects={path: f"http://{host}/x"})
    async with Storefronts(shop).serve() as url, canary() as came:
        internet = Internet(url)
        seen = await scanner(client=on(internet, resolved)).scan(SHOP, is_deep=True)
    assert set(internet.reached) == {PUBLIC}
    assert came == []
    if path != "/robots.txt":
        assert seen.diagnosis["catalogue"].verdict in {ScanVerdict.FAILED, ScanVerdict.EMPTY}


async def test_a_shop_at_a_public_address_is_read_through_the_guard() -> None:
    async def resolved(name: str, port: int) -> Iterable[str]:
        del name, port
        return [PUBLIC]

    shop = Storefront(domain=SHOP, products=[product(1)])
    async with Storefronts(shop).serve() as url:
        internet = Internet(url)
        seen = await scanner(client=on(internet, resolved)).scan(SHOP, is_deep=True)
    assert (seen.reached, len(seen.products or ())) == (Reached.ACTIVE, 1)
    assert internet.reached == [PUBLIC]  # one connection


@pytest.mark.parametrize("trap", list(Trap))
async def test_a_trap_costs_a_bounded_amount_and_ends_with_a_verdict(trap: Trap) -> None:
    shop = Storefront(domain=SHOP, products=[product(1)], trap=trap)
    manners = QUICK if trap in {Trap.DRIP, Trap.SILENT} else HASTE
    with anyio.fail_after(120):
        seen = await looked(shop, manners)
    assert set(seen.diagnosis) == set(CATEGORIES)
    assert seen.cost.requests <= HASTE.requests
    assert seen.cost.bytes <= HASTE.all_bytes + HASTE.body_bytes
    wanted = {
        Trap.MILLION: ScanVerdict.PARTIAL,
        Trap.SAME_PAGE: ScanVerdict.PARTIAL,
        Trap.WRONG_TYPES: ScanVerdict.PARTIAL,
        Trap.MARKUP: ScanVerdict.OK,
    }
    assert seen.diagnosis["catalogue"].verdict is wanted.get(trap, ScanVerdict.FAILED)
    assert trap is Trap.MARKUP or seen.diagnosis["catalogue"].reason


async def test_an_answer_that_never_ends_takes_no_more_memory_than_one_page_may() -> None:
    shop = Storefront(domain=SHOP, products=[product(1)], trap=Trap.ENDLESS)
    async with Storefronts(shop).serve() as url:
        scanning = scanner(url)
        tracemalloc.start()
        try:
            await scanning.scan(SHOP, is_deep=True)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 4 * HASTE.body_bytes


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("Shop.Example.COM", "shop.example.com"),
        ("https://www.shop.example.com/collections?x=1", "shop.example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("shop.example.", "shop.example"),
        ("shop", None),
        ("shop.local", None),
        ("shop..example", None),
        ("-shop.example", None),
        ("shop.example:8080", None),
        ("user@shop.example", None),
        ("shop.example\\@127.0.0.1", None),
        ("shop.1", None),
        ("", None),
        ("a." * 130 + "example", None),
    ],
)
def test_only_a_name_of_the_public_web_is_a_domain(text: str, domain: str | None) -> None:
    assert domain_named(text) == domain
