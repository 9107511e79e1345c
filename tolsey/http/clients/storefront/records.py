"""TXT records of a domain, with which its owner proves that it is theirs (RFC 1035, section 3.3.14)."""

from typing import Final
from urllib.parse import urlsplit

SECONDS: Final = 5.0
"""Of all questions to all servers together."""
MOST_RECORDS: Final = 50
DNS_PORT: Final = 53


class DomainRecords:
    """Asks the machine's own resolvers, or the one at `url`."""

    def __init__(self, url: str | None) -> None:
        self._server = urlsplit(url) if url else None

    async def texts(self, name: str) -> list[str]:
        """Give the texts at a name; none where there are none, or nobody answers."""
        import dns.asyncresolver  # noqa: PLC0415 - it takes 0.2 s to load, and is seldom wanted
        import dns.exception  # noqa: PLC0415
        import dns.rdatatype  # noqa: PLC0415

        try:
            # What a machine's resolvers are may change while the service runs.
            resolver = dns.asyncresolver.Resolver(configure=self._server is None)
            if self._server is not None:
                resolver.nameservers = [self._server.hostname or ""]
                resolver.port = self._server.port or DNS_PORT
            found = await resolver.resolve(name, dns.rdatatype.TXT, search=False, lifetime=SECONDS)
        except dns.exception.DNSException:
            return []
        records = list(found)[:MOST_RECORDS]
        # One record is one text, in pieces of at most 255 bytes.
        return [b"".join(one.strings).decode("utf-8", "replace") for one in records]
