from ipaddress import ip_network
from typing import Any

import pytest

from tests.http.people import settings_of
from tolsey.http.web.callers import addresses
from tolsey.setting_types import LOOPBACK, Network


def scope(peer: str | None, *forwarded: str) -> dict[str, Any]:
    headers = [(b"x-forwarded-for", line.encode("latin-1")) for line in forwarded]
    return {"client": (peer, 1) if peer else None, "headers": headers}


@pytest.mark.parametrize(
    ("peer", "forwarded", "identity"),
    [
        ("203.0.113.9", [], "203.0.113.9"),
        ("203.0.113.9", ["192.0.2.1"], "203.0.113.9"),
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["192.0.2.1"], "192.0.2.1"),
        ("127.0.0.1", ["10.0.0.1, 192.0.2.1"], "192.0.2.1"),
        ("127.0.0.1", ["192.0.2.2", "192.0.2.1"], "192.0.2.1"),
        ("127.0.0.1", ["192.0.2.1,"], "127.0.0.1"),
        ("127.0.0.1", ["garbage"], "127.0.0.1"),
        ("127.0.0.1", [""], "127.0.0.1"),
        ("127.0.0.1", ["192.0.2.1:4000"], "127.0.0.1"),
        ("127.0.0.1", ["::ffff:192.0.2.1"], "192.0.2.1"),
        ("::1", ["2001:db8:1:2:3:4:5:6"], "2001:db8:1:2::/64"),
        ("2001:db8:1:2::ffff", [], "2001:db8:1:2::/64"),
        (None, ["192.0.2.1"], "unknown"),
    ],
)
def test_only_our_own_proxy_says_who_calls(
    peer: str | None, forwarded: list[str], identity: str
) -> None:
    assert addresses.identity(scope(peer, *forwarded), LOOPBACK) == identity


def test_named_proxies_are_the_only_ones() -> None:
    proxies = (ip_network("10.0.0.0/8"),)
    assert addresses.identity(scope("10.1.2.3", "192.0.2.1"), proxies) == "192.0.2.1"
    assert addresses.identity(scope("127.0.0.1", "192.0.2.1"), proxies) == "127.0.0.1"


@pytest.mark.parametrize(
    ("base_url", "named", "identity"),
    [
        ("https://tolsey.example", (), "127.0.0.1"),
        ("https://tolsey.example", ("127.0.0.1/32",), "192.0.2.1"),
        ("http://localhost:8000", (), "192.0.2.1"),
        ("http://localhost:8000", ("10.0.0.0/8",), "127.0.0.1"),
    ],
)
def test_in_public_a_proxy_counts_once_it_is_named(
    base_url: str, named: tuple[str, ...], identity: str
) -> None:
    settings = settings_of(base_url=base_url, trusted_proxies=named)
    visitor = scope("127.0.0.1", "192.0.2.1")
    assert addresses.identity(visitor, settings.believed_proxies) == identity


@pytest.mark.parametrize(
    ("peer", "forwarded", "proxies", "is_local"),
    [
        ("127.0.0.1", [], LOOPBACK, True),
        ("::1", [], (), True),
        ("127.0.0.1", ["::1"], LOOPBACK, True),
        ("127.0.0.1", ["127.0.0.1"], (), False),
        ("127.0.0.1", ["192.0.2.1"], LOOPBACK, False),
        ("127.0.0.1", ["garbage"], LOOPBACK, False),
        ("127.0.0.1", ["127.0.0.1, 192.0.2.1"], LOOPBACK, False),
        ("10.0.0.1", ["127.0.0.1"], (ip_network("10.0.0.0/8"),), False),
        ("203.0.113.9", [], LOOPBACK, False),
        (None, [], LOOPBACK, False),
        (None, ["127.0.0.1"], LOOPBACK, False),
    ],
)
def test_who_is_behind_a_proxy_is_not_this_machine(
    peer: str | None, forwarded: list[str], proxies: tuple[Network, ...], *, is_local: bool
) -> None:
    assert addresses.is_local(scope(peer, *forwarded), proxies) is is_local


def test_the_name_of_the_header_is_read_in_any_case_and_no_other_counts() -> None:
    asked = scope("127.0.0.1")
    asked["headers"] = [
        (b"x-real-ip", b"192.0.2.7"),
        (b"X-Forwarded-For", b"192.0.2.\xff, 192.0.2.1"),
    ]
    assert addresses.identity(asked, LOOPBACK) == "192.0.2.1"
    assert addresses.identity(scope("nobody", "192.0.2.1"), LOOPBACK) == "unknown"
