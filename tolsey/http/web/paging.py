"""Lists: `?limit=1..200&cursor=...` in, `{items, nextCursor}` out."""

import base64
import binascii
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from pydantic import Field

from tolsey.actors.refusals import Refusal
from tolsey.http.web.api_model import NUL, ApiModel
from tolsey.storage.sealing.sealed import base64url

Item = TypeVar("Item")

DEFAULT_LIMIT = 50
MAXIMUM_LIMIT = 200
LARGEST_NUMBER = 2**63 - 1


class InvalidCursor(Refusal):
    """The cursor was not made by this service."""

    code = "invalid_cursor"

    def __init__(self) -> None:
        super().__init__("The cursor isn't valid for this list. Start again from the first page.")


class PageQuery(ApiModel):
    """Which part of a list is wanted."""

    limit: Annotated[int, Field(ge=1, le=MAXIMUM_LIMIT)] = DEFAULT_LIMIT
    cursor: Annotated[str, Field(max_length=512)] | None = None

    @property
    def after(self) -> str:
        """The key of the last item of the page before; empty for the first page."""
        return key_in(self.cursor) if self.cursor else ""

    @property
    def after_number(self) -> int:
        """The key of a list that is ordered by a number; 0 for the first page."""
        key = self.after or "0"
        if not (key.isascii() and key.isdecimal()) or int(key) > LARGEST_NUMBER:
            raise InvalidCursor
        return int(key)

    @property
    def after_moment(self) -> tuple[datetime, str] | None:
        """The key of a list that is ordered by a time, then an id; None for the first page."""
        if not self.after:
            return None
        at, _, id = self.after.partition("|")
        try:
            return datetime.fromisoformat(at).astimezone(UTC), id
        except (ValueError, OverflowError) as error:
            raise InvalidCursor from error


class OrganizationQuery(PageQuery):
    """Which part of a list is wanted, of all the caller's organizations or of one."""

    organization_id: Annotated[str, Field(max_length=128)] | None = None


def key_in(cursor: str) -> str:
    """Read the key of the last item of the page before."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        key = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidCursor from error
    if NUL in key:
        raise InvalidCursor
    return key


def cursor_of(key: str) -> str:
    """Give the cursor of what follows the item of a key."""
    return base64url(key.encode())


def cut(
    found: Sequence[Item], limit: int, *, key: Callable[[Item], str]
) -> tuple[Sequence[Item], str | None]:
    """Give the items of a page, and the cursor of what follows them or None.

    `found` was read with one item more than the limit, to see what follows.
    """
    items = found[:limit]
    return items, cursor_of(key(items[-1])) if len(found) > limit else None
