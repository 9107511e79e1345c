"""Links of a storefront, written so that they stay in its preview."""

import re
from typing import Final

ATTRIBUTES: Final = rb"href|src|action|poster|data-src|content"
LIST_ATTRIBUTES: Final = re.compile(rb"""(?i)\b((?:data-)?srcset\s*=\s*)(["'])([^"'<>]*)\2""")
IN_STYLES: Final = re.compile(rb"""(?i)(url\(\s*["']?|@import\s+["'])/(?!/)""")
SITE_START: Final = re.compile(rb"(?<![^\s,])/(?!/)")


class PreviewLinks:
    """Leads what a storefront links to within itself to below the preview's address."""

    def __init__(self, host: str, below: str) -> None:
        self._below = below.encode()
        site = re.escape(host.encode())
        # Bounded on purpose: a page is a stranger's, and is read once from its beginning to its end.
        self._links = re.compile(
            rb"""(?i)\b((?:%s)\s*=\s*["']?)(?:(?:https?:)?//%s(?=[/"'?#\s>])/?|/(?!/))"""
            % (ATTRIBUTES, site)
        )

    def rewritten(self, body: bytes, kind: str) -> bytes:
        """Write a page or a style sheet anew; all else stays as it is."""
        if kind == "text/css":
            return self._styles(body)
        if kind != "text/html":
            return body
        body = self._links.sub(lambda found: found[1] + self._below, body)
        body = LIST_ATTRIBUTES.sub(self._list, body)
        return self._styles(body)

    def _styles(self, body: bytes) -> bytes:
        return IN_STYLES.sub(lambda found: found[1] + self._below, body)

    def _list(self, found: re.Match[bytes]) -> bytes:
        inner = SITE_START.sub(self._below, found[3])
        return found[1] + found[2] + inner + found[2]
