"""The parameters of a request, each sent once, and the errors of OAuth (RFC 6749, 3.1 and 5.2)."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote_plus

from tolsey.http.answers.people.oauth import OAuthErrorAnswer

MOST_BYTES: Final = 16 * 1024
MOST_FIELDS: Final = 40
S256: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""A code challenge: base64url of a SHA-256 (RFC 7636, 4.2)."""
VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")


class OAuthError(Exception):
    """What a client did wrong, in OAuth's own words; `status` is how HTTP says it."""

    def __init__(self, code: str, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.status = status

    @property
    def body(self) -> OAuthErrorAnswer:
        """Write it as an answer."""
        return OAuthErrorAnswer(error=self.code, error_description=self.description)


class InvalidClient(OAuthError):  # noqa: N818 - named after its code
    """The client is not known, or did not prove itself."""

    def __init__(self, description: str = "The client is unknown. Register it again.") -> None:
        super().__init__("invalid_client", description, 401)


def parse(sent: bytes) -> dict[str, str]:
    """Read a query or form. Raises OAuthError for a parameter that is sent twice."""
    try:
        pairs = parse_qsl(
            sent.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=MOST_FIELDS,
            errors="strict",
        )
    except ValueError as error:
        raise OAuthError(
            "invalid_request",
            "The request parameters can't be decoded. Send them URL-encoded in UTF-8.",
        ) from error
    found = dict(pairs)
    if len(found) != len(pairs):
        raise OAuthError("invalid_request", "A parameter is repeated. Send each parameter once.")
    if any("\x00" in value for value in found.values()):
        raise OAuthError("invalid_request", "A parameter contains a NUL character. Remove it.")
    return {name: value for name, value in found.items() if value}  # RFC 6749, 3.1: empty is unsent


def needed(parameters: Mapping[str, str], name: str) -> str:
    """Return a parameter that must be sent."""
    found = parameters.get(name)
    if found is None:
        raise OAuthError("invalid_request", f"The parameter {name} is missing. Send it.")
    return found


def credentials(authorization: str | None) -> tuple[str, str] | None:
    """Read a client's id and secret from the header (RFC 6749, 2.3.1); None when it sends none."""
    if authorization is None:
        return None
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        raise InvalidClient(
            "This client must authenticate with its client secret. Send it with the request."
        )
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise InvalidClient(
            "The client credentials can't be decoded. Send them as HTTP Basic authentication."
        ) from error
    client_id, found, secret = map(unquote_plus, text.partition(":"))
    if not found or "\x00" in client_id + secret:
        raise InvalidClient(
            "The client credentials can't be decoded. Send them as HTTP Basic authentication."
        )
    return client_id, secret
