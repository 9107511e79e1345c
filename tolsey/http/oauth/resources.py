"""The addresses of a store's MCP endpoint, each a protected resource of its own (RFC 8707, 9728)."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from tolsey.settings import Settings

STORE_ID: Final = r"[A-Za-z0-9_-]{1,64}"
PATHS: Final = ("/api/mcp/v1", "/api/mcp")
"""The versioned form, and the one from before it, which is served for ever."""
CALLED: Final = re.compile(rf"(?P<form>/api/mcp/v1|/api/mcp)/(?P<store>{STORE_ID})/?")
ON_SUBADDRESS: Final = re.compile(rf"(?P<form>)/(?P<store>{STORE_ID})/?")
METADATA: Final = "/.well-known/oauth-protected-resource"
SUBADDRESS: Final = "mcp"
THIS_MACHINE: Final = ("127.0.0.1", "localhost", "[::1]")
"""Names of a base address on this machine: whoever started the service there calls it by any."""


@dataclass(frozen=True, slots=True)
class StoreResource:
    """One form of a store's address: `resource` is what tokens are for.

    `address` is how it was called, which is the same but on this machine, which has several names; and
    `metadata` is where that is described (RFC 9728, 3.3: a client compares it with what it called).
    """

    store_id: str
    resource: str
    address: str
    metadata: str


class StoreResources:
    """Knows the forms of this service's addresses."""

    def __init__(self, settings: Settings) -> None:
        self._base = settings.base_url
        parts = urlsplit(self._base)
        self._own = frozenset({parts.netloc.lower()})
        if settings.is_local:
            port = parts.netloc.rpartition("]")[2].partition(":")[2]
            self._own |= {f"{name}:{port}" if port else name for name in THIS_MACHINE}
        self._scheme = parts.scheme
        live = SUBADDRESS in settings.next_public_live_subdomains
        self.subaddress = f"{parts.scheme}://{SUBADDRESS}.{parts.netloc}" if live else None
        self.host = f"{SUBADDRESS}.{parts.netloc}".lower().encode() if live else None
        """The host of the sub-address; None while it is not live."""

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins that are ours."""
        return (self._base, self.subaddress) if self.subaddress else (self._base,)

    def called(self, path: str, *, host: str = "", on_subaddress: bool) -> StoreResource | None:
        """Name the resource that a path is; None when it is none."""
        found = (ON_SUBADDRESS if on_subaddress else CALLED).fullmatch(path)
        if found is None:
            return None
        ours = self.subaddress if on_subaddress and self.subaddress else self._base
        called = ours
        if not on_subaddress and host.lower() in self._own:
            called = f"{self._scheme}://{host.lower()}"
        path = f"{found['form']}/{found['store']}"
        return StoreResource(
            found["store"], f"{ours}{path}", f"{called}{path}", f"{called}{METADATA}{path}"
        )

    def described(self, path: str, *, host: str = "", on_subaddress: bool) -> StoreResource | None:
        """Name the resource that a metadata path describes; None when it describes none."""
        if not path.startswith(METADATA):
            return None
        return self.called(path.removeprefix(METADATA), host=host, on_subaddress=on_subaddress)

    def named(self, address: str) -> StoreResource | None:
        """Name the resource that a client means; scheme and host in any case, a last slash or none.

        None when the address is not one of ours, letter for letter, or in another name of this machine.
        """
        try:
            parts = urlsplit(address)
        except ValueError:
            return None
        if "?" in address or "#" in address:
            return None
        origin = f"{parts.scheme}://{parts.netloc}".lower()
        if self.subaddress is not None and origin == self.subaddress.lower():
            return self.called(parts.path, on_subaddress=True)
        if parts.scheme.lower() == self._scheme and parts.netloc.lower() in self._own:
            return self.called(parts.path, on_subaddress=False)
        return None
