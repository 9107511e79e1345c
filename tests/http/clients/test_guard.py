import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

import anyio
import httpcore
import httpx
import pytest

from tolsey.http.clients.guard import (
    ForbiddenAddress,
    GuardedBackend,
    guarded_client,
    is_public,
    loopback_origin,
)

FORBIDDEN = [
    "0.0.0.0",  # noqa: S104 - an address to refuse
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.127.255.254",
    "127.0.0.1",
    "127.1.2.3",
    "169.254.169.254",
    "169.254.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.170",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b:1::7f00:1",
    "100::1",
    "2001::1",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "4000::1",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "23.227.38.65",
    "172.15.0.1",
    "172.32.0.1",
    "2606:4700:4700::1111",
    "2a00:1450::1",
]
SPELLINGS = [
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://127.0.0.1./",
    "http://localhost/",
    "http://LOCALHOST./",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://0/",
    "http://0.0.0.0/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[2002:7f00:1::]/",
    "http://169.254.169.254/latest",
    "http://user@127.0.0.1/",
    "https://127.0.0.1/",
    "http://127.0.0.1:80/",
]


class Canary(httpcore.AsyncMockBackend):
    """Counts what would have been connected to."""

    def __init__(self) -> None:
        super().__init__([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"])
        self.reached: list[str] = []

    async def connect_tcp(self, host: str, *args: Any, **kwargs: Any) -> Any:
        self.reached.append(host)
        return await super().connect_tcp(host, *args, **kwargs)


def answering(*answers: Iterable[str]) -> Any:
    turns = iter(answers)

    async def resolver(host: str, port: int) -> Iterable[str]:
        del host, port
        return next(turns)

    return resolver


@pytest.mark.parametrize("address", FORBIDDEN)
def test_an_address_of_no_public_network_is_forbidden(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("url", SPELLINGS)
async def test_no_spelling_of_our_own_machine_is_connected_to(url: str) -> None:
    canary = Canary()
    async with guarded_client(inner=canary) as client:
        with pytest.raises((httpx.ConnectError, httpx.InvalidURL)):
            await client.get(url)
    assert canary.reached == []


async def test_a_name_with_one_private_address_among_public_ones_is_forbidden() -> None:
    canary = Canary()
    backend = GuardedBackend(resolver=answering(["8.8.8.8", "10.0.0.1"]), inner=canary)
    with pytest.raises(ForbiddenAddress):
        await backend.connect_tcp("mixed.example", 443)
    assert canary.reached == []


async def test_a_name_that_changes_its_answer_is_judged_by_the_answer_it_is_reached_at() -> None:
    canary = Canary()
    resolver = answering(["8.8.8.8"], ["127.0.0.1"])
    async with guarded_client(resolver=resolver, inner=canary) as client:
        assert (await client.get("http://rebinding.example/")).text == "ok"
        client._transport._pool._connections.clear()  # type: ignore[attr-defined]
        with pytest.raises(httpx.ConnectError):
            await client.get("http://rebinding.example/")
    assert canary.reached == ["8.8.8.8"]


@pytest.mark.parametrize("port", [22, 25, 5432, 6379, 8080, 65535])
async def test_only_the_ports_of_the_web_are_called(port: int) -> None:
    with pytest.raises(ForbiddenAddress):
        await GuardedBackend(resolver=answering(["8.8.8.8"])).connect_tcp("a.example", port)


async def test_a_connection_that_reached_another_address_is_dropped() -> None:
    class Elsewhere(httpcore.AsyncMockStream):
        def get_extra_info(self, info: str) -> Any:
            return ("127.0.0.1", 443) if info == "server_addr" else None

    class Crooked(httpcore.AsyncMockBackend):
        async def connect_tcp(self, *args: Any, **kwargs: Any) -> Any:
            del args, kwargs
            return Elsewhere([])

    backend = GuardedBackend(resolver=answering(["8.8.8.8"]), inner=Crooked([]))
    with pytest.raises(ForbiddenAddress):
        await backend.connect_tcp("a.example", 443)


async def test_a_socket_file_is_never_opened() -> None:
    with pytest.raises(ForbiddenAddress):
        await GuardedBackend().connect_unix_socket("/run/service.sock")


async def test_a_name_without_an_answer_is_a_connection_error() -> None:
    async def unknown(host: str, port: int) -> Iterable[str]:
        raise OSError(f"{host}:{port}")

    async with guarded_client(resolver=unknown) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get("https://nowhere.example/")


@asynccontextmanager
async def redirecting() -> AsyncIterator[int]:
    """A server that sends everyone to the metadata address."""

    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(
                b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"
            )

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - not Django's
        tasks.cancel_scope.cancel()


async def test_a_configured_local_origin_is_reached_and_its_redirects_are_not_followed() -> None:
    async with redirecting() as port:
        async with guarded_client([f"http://127.0.0.1:{port}/{{shop}}"]) as client:
            assert (await client.get(f"http://127.0.0.1:{port}/x")).status_code == 302
            with pytest.raises(httpx.ConnectError):
                await client.get(f"http://localhost:{port}/x")
        async with guarded_client() as client:
            with pytest.raises(httpx.ConnectError):
                await client.get(f"http://127.0.0.1:{port}/x")


async def test_a_configured_local_name_must_lead_to_this_machine() -> None:
    backend = GuardedBackend({("localhost", 9000)}, resolver=answering(["10.0.0.1"]))
    with pytest.raises(ForbiddenAddress):
        await backend.connect_tcp("localhost", 9000)


def test_only_addresses_of_this_machine_can_be_local_origins() -> None:
    assert loopback_origin("http://127.0.0.1:9000/{shop}") == ("127.0.0.1", 9000)
    assert loopback_origin("http://[::1]:9000") == ("::1", 9000)
    assert loopback_origin("https://localhost/x") == ("localhost", 443)
    assert loopback_origin("http://10.0.0.1:9000") is None
    assert loopback_origin("https://{shop}") is None


async def test_the_environment_cannot_send_calls_through_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    canary = Canary()
    async with guarded_client(resolver=answering(["8.8.8.8"]), inner=canary) as client:
        assert (await client.get("http://a.example/")).text == "ok"
    assert canary.reached == ["8.8.8.8"]


async def test_certificates_are_checked_against_the_name_that_was_asked_for() -> None:
    names: list[str | None] = []

    class Stream(httpcore.AsyncMockStream):
        async def start_tls(
            self,
            ssl_context: ssl.SSLContext,
            server_hostname: str | None = None,
            timeout: float | None = None,  # noqa: ASYNC109 - the signature of the base class
        ) -> httpcore.AsyncNetworkStream:
            del timeout
            assert ssl_context.verify_mode is ssl.CERT_REQUIRED
            names.append(server_hostname)
            return self

    class Backend(httpcore.AsyncMockBackend):
        async def connect_tcp(self, *args: Any, **kwargs: Any) -> Any:
            del args, kwargs
            return Stream([b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"])

    async with guarded_client(resolver=answering(["8.8.8.8"]), inner=Backend([])) as client:
        await client.get("https://a.example/")
    assert names == ["a.example"]
