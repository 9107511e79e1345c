"""Where a request comes from."""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

UNKNOWN = "unknown"
IPV6_PREFIX = 64


def _parse(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


def _peer(scope: Mapping[str, Any]) -> Address | None:
    client = scope.get("client")
    return _parse(str(client[0])) if client else None


def _trusted(peer: Address, proxies: Iterable[Network]) -> bool:
    return any(peer.version == network.version and peer in network for network in proxies)


def _forwarded(scope: Mapping[str, Any]) -> str | None:
    """Return the last hop over all `x-forwarded-for` lines: the one our own proxy wrote."""
    lines = [value for name, value in scope["headers"] if name.lower() == b"x-forwarded-for"]
    if not lines:
        return None
    return str(lines[-1].decode("latin-1")).rpartition(",")[2]


def client(scope: Mapping[str, Any], proxies: Iterable[Network]) -> Address | None:
    """Find the address of the client: the last forwarded hop of a trusted peer, else the peer."""
    peer = _peer(scope)
    if peer is None or not _trusted(peer, proxies):
        return peer
    hop = _forwarded(scope)
    return (_parse(hop) if hop is not None else None) or peer


def identity(scope: Mapping[str, Any], proxies: Iterable[Network]) -> str:
    """Name a client for counting: an IPv6 client owns its /64, so that is what counts."""
    address = client(scope, proxies)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False))
    return str(address) if address else UNKNOWN


def is_local(scope: Mapping[str, Any], proxies: Iterable[Network]) -> bool:
    """Tell whether the client is this very machine, not someone behind its proxy.

    A hop that cannot be read is someone behind a proxy all the same.
    """
    peer, hop = _peer(scope), _forwarded(scope)
    address = peer if hop is None else _parse(hop)
    trusted = bool(peer and peer.is_loopback and (hop is None or _trusted(peer, proxies)))
    return bool(trusted and address and address.is_loopback)
