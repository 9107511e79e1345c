"""The token grant: an app's id and secret against an access token, with the documented errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

import orjson

from tolsey.sandbox.commerce.shop.state import TOKEN_LIFETIME_SECONDS, Shop


@dataclass(frozen=True, slots=True)
class GrantAnswer:
    """An answer of the grant endpoint."""

    status: int
    body: bytes
    content_type: str = "application/json; charset=utf-8"


def read_form(body: bytes, content_type: str) -> dict[str, Any]:
    """Read the parameters of a form or JSON body; unreadable bodies have none."""
    if "json" in content_type:
        try:
            read = orjson.loads(body)
        except orjson.JSONDecodeError:
            return {}
        return read if isinstance(read, dict) else {}
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def grant(
    shop: Shop, clients: frozenset[str], asked: Mapping[str, Any], accept: str, now: datetime
) -> GrantAnswer:
    """Issue a token for the client credentials, or say why not.

    Errors are JSON only for those who asked for JSON; others get a page.
    """
    as_json = "application/json" in accept
    if asked.get("grant_type") != "client_credentials":
        return _error("unsupported_grant_type", "The grant type is not supported", as_json=as_json)
    client_id = str(asked.get("client_id", ""))
    if client_id not in clients:
        text = f"Could not find Shopify API application with api_key {client_id}"
        return GrantAnswer(400, f"Oauth error invalid_request: {text}".encode(), "text/plain")
    if not shop.permitted:
        text = "Client credentials cannot be performed on this shop."
        return _error("shop_not_permitted", text, as_json=as_json)
    if client_id == shop.spec.client_id and asked.get("client_secret") not in shop.secrets:
        return _error("invalid_client", "Client authentication failed", as_json=as_json)
    if not shop.installed or client_id != shop.spec.client_id:
        text = "The application is not installed on this shop."
        return _error("app_not_installed", text, as_json=as_json)
    token = shop.issue_token(now)
    granted = {
        "access_token": token.text,
        "scope": ",".join(shop.scopes),
        "expires_in": TOKEN_LIFETIME_SECONDS,
    }
    return GrantAnswer(200, orjson.dumps(granted))


def _error(code: str, text: str, *, as_json: bool) -> GrantAnswer:
    if as_json:
        return GrantAnswer(400, orjson.dumps({"error": code, "error_description": text}))
    title = f"Oauth error {code}: {text}"
    page = f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{title}</body></html>"
    return GrantAnswer(400, page.encode(), "text/html; charset=utf-8")
