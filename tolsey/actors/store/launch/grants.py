"""What a grant covers."""

from collections.abc import Collection

from tolsey.storage.records.commerce.connection import Connection


def covers(granted: Collection[str], scope: str) -> bool:
    """Tell whether a grant covers a permission: who may write may read."""
    return scope in granted or scope.replace("read_", "write_", 1) in granted


def grant_address(connection: Connection | None) -> str | None:
    """Name where the merchant accepts in the shop what their app asks for by now; None of an app without an id."""
    if connection is None or connection.client_id is None:
        return None
    shop = connection.shop_domain
    return f"https://{shop}/admin/oauth/install?client_id={connection.client_id}"
