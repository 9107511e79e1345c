"""What a site asks of crawlers (RFC 9309), read by Protego: the standard library knows no wildcards."""

from dataclasses import dataclass
from typing import Final

from protego import Protego

AGENT: Final = "tolsey"
"""The name under which robots.txt may speak to us."""
READ_BYTES: Final = 500 * 1024
"""RFC 9309, section 2.5: so much must be read; what stands behind it is not."""
LONGEST_DELAY_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules of one site: `denial` says why nothing at all may be read of it now."""

    rules: Protego | None
    denial: str = ""

    @classmethod
    def of(cls, status: int, body: bytes) -> "Robots":
        """Read the answer to a request for `/robots.txt`."""
        if status == 429 or status >= 500:  # noqa: PLR2004 - RFC 9110
            # RFC 9309, section 2.3.1.4: a site that cannot say its rules is left alone for now.
            return cls(None, f"robots.txt answered {status}")
        if status >= 400:  # noqa: PLR2004 - RFC 9309, section 2.3.1.3: without rules all is allowed
            return cls(None)
        return cls(Protego.parse(body[:READ_BYTES].decode("utf-8", "replace")))

    def refusal(self, url: str) -> str:
        """Say why an address may not be read; empty when it may."""
        if self.denial or self.rules is None or self.rules.can_fetch(url, AGENT):
            return self.denial
        return "robots.txt does not allow it"

    def delay_seconds(self, pace: float) -> float:
        """Say how long to wait between two requests: our own pace, or longer where the site asks for it."""
        asked = self.rules.crawl_delay(AGENT) if self.rules is not None else None
        return min(max(pace, asked or 0.0), max(pace, LONGEST_DELAY_SECONDS))


UNREACHABLE: Final = Robots(None, "robots.txt could not be read")
