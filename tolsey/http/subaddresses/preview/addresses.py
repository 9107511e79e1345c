"""The addresses of previews: each names a store, and ends 15 minutes after it was made (rules/service#sub-addresses)."""

import json
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from tolsey.settings import Settings
from tolsey.storage.sealing.sealed import SealBroken, Vault

PREVIEW_PREFIX: Final = "/api/preview/"
PREVIEW_LIFE: Final = timedelta(minutes=15)
SUBADDRESS: Final = "preview"
PLACE: Final = {"table": "previews", "column": "token", "row": "", "tenant": ""}


def preview_origin(settings: Settings) -> str:
    """Say where previews are: at their sub-address, or the main address while that is not live."""
    if SUBADDRESS not in settings.next_public_live_subdomains:
        return settings.base_url
    parts = urlsplit(settings.base_url)
    return f"{parts.scheme}://{SUBADDRESS}.{parts.netloc}"


def preview_token(vault: Vault, store_id: str, expires_at: datetime) -> str:
    """Seal which store a preview shows, and until when: whoever has the address needs no session."""
    return vault.seal(json.dumps([store_id, expires_at.timestamp()]), **PLACE)


def previewed_store(vault: Vault, token: str, at: datetime) -> str | None:
    """Name the store of a preview; None when the token is none of ours, or has ended."""
    try:
        store_id, ends = json.loads(vault.open(token, **PLACE))
    except SealBroken:
        return None
    return store_id if at.timestamp() < ends else None
