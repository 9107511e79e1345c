"""Where a browser may be sent with a code: exactly where the client said, and nowhere dangerous.

RFC 8252 (loopback and private-use schemes), RFC 9700 section 2.1, rules/agents#clients.
"""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import SplitResult, urlsplit

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
"""Where a client listens at the port that is free (RFC 8252, 7.3). The RFC means addresses only, but
clients that many people use publish `http://localhost/callback` and come with a port."""
LOOPBACK_URI: Final = re.compile(
    r"(?P<host>http://(?:127\.0\.0\.1|\[::1\]|localhost))(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?].*)?"
)
MOST_PORT: Final = 65_535
PRIVATE: Final = re.compile(r"[a-z][a-z0-9+.-]*:/.+", re.DOTALL)
"""An own scheme and an address within it (RFC 8252, 7.1). What has no slash there is opaque, and may
be an address of another scheme: feed:javascript:…"""
FORBIDDEN: Final = re.compile(
    r"""about|blob|brave|chrome.*|cid|content|dat|data|edge|feed|file|filesystem|firefox|googlechrome.*
    |http|https|ip[fn]s|jar|javascript|livescript|mailto|mhtml|mid|microsoft-edge|mocha|moz-.*|opera|pcast
    |res|resource|safari.*|vbscript|view-source|webcal|wss?|wyciwyg|web\+.*|ext\+.*
    |afp|android-app|applescript|apt|calculator|cifs|davs?|facetime.*|ftps?|geo|git.*|hcp|help|ica|intent
    |ios-app|ircs?|its|itms.*|ldap[is]?|magnet|maps|market|message|mk|ms-.*|news|nfs|nntp|onenote|outlook
    |packager|pkcs11|powershell|prefs|rdar|rdp|rlogin|rsync|rtsp|script|search.*|sftp|shell|shortcuts
    |sips?|smb|sms|snews|spotlight|ssh|steam|stickynotes|svn.*|teamviewer.*|tel|telnet|tftp|tn3270|urn|vim
    |vnc|windows.*|wscript|x-apple.*|com\.apple\..*|x-man-page|x-terminal|xmpp|zoommtg""",
    re.VERBOSE,
)
"""Schemes that are no agent's own: a browser runs what they hold, or a system starts a program with it
(ms-… is the family of Windows)."""
CHARACTERS: Final = re.compile(r"[\x21-\x7e]{1,2000}")
"""What an address is made of (RFC 3986); others are written with percent signs."""


def is_registrable(uri: str) -> bool:
    """Tell whether a client may be sent codes there: https, this machine, or an own scheme."""
    parts = _split(uri)
    if parts is None:
        return False
    if parts.scheme == "https":
        return bool(parts.hostname) and "@" not in parts.netloc
    if parts.scheme == "http":
        return parts.hostname in LOOPBACK and "@" not in parts.netloc
    return PRIVATE.fullmatch(uri) is not None and FORBIDDEN.fullmatch(parts.scheme) is None


def matches(uri: str, registered: Iterable[str]) -> bool:
    """Tell whether an address is one that the client registered, letter for letter.

    The port of a loopback address is the client's to choose anew each time.
    """
    return any(uri == one or _differ_in_port_only(uri, one) for one in registered)


def origin_of(uri: str) -> str:
    """Write what a page's policy calls the place: an origin, or a scheme."""
    parts = urlsplit(uri)
    if parts.scheme in {"http", "https"}:
        return f"{parts.scheme}://{parts.netloc}"
    return f"{parts.scheme}:"


def place_of(uri: str) -> str:
    """Name the place to a person: its host, or the application's scheme."""
    parts = urlsplit(uri)
    return parts.netloc if parts.scheme in {"http", "https"} else f"{parts.scheme}:"


def is_local(uri: str) -> bool:
    """Tell whether codes go to a program on the user's own machine, which anyone may have written."""
    parts = urlsplit(uri)
    return parts.scheme != "https"


def _split(uri: str) -> SplitResult | None:
    if not CHARACTERS.fullmatch(uri) or "#" in uri or "\\" in uri:
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme == uri.partition(":")[0] else None


def _differ_in_port_only(uri: str, registered: str) -> bool:
    mine, theirs = LOOPBACK_URI.fullmatch(uri), LOOPBACK_URI.fullmatch(registered)
    if mine is None or theirs is None or mine.group("host", "rest") != theirs.group("host", "rest"):
        return False
    port = mine["port"]
    return port is None or (port[0] != "0" and int(port) <= MOST_PORT)
