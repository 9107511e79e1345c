"""Lists: `?limit=1..200&cursor=...` in, `{items, nextCursor}` out."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import Field

from tolsey.actors.refusals import Refusal
from tolsey.http.api_model import NUL, ApiModel

Item = TypeVar("Item")

DEFAULT_LIMIT = 50
MAXIMUM_LIMIT = 200


class PageQuery(ApiModel):
    """Which part of a list is wanted."""

    limit: Annotated[int, Field(ge=1, le=MAXIMUM_LIMIT)] = DEFAULT_LIMIT
    cursor: Annotated[str, Field(max_length=512)] | None = None

    @property
    def after(self) -> str:
        """The key of the last item of the page before; empty for the first page."""
        if self.cursor is None:
            return ""
        try:
            padded = self.cursor + "=" * (-len(self.cursor) % 4)
            key = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
        except (binascii.Error, ValueError) as error:
            raise Refusal("The cursor is not one of ours.", code="invalid_cursor") from error
        if NUL in key:
            raise Refusal("The cursor is not one of ours.", code="invalid_cursor")
        return key


def page(
    found: Sequence[Item],
    limit: int,
    *,
    key: Callable[[Item], str],
    view: Callable[[Item], Any],
) -> dict[str, Any]:
    """Answer with a page; `found` was read with one item more than the limit, to see what follows."""
    items = found[:limit]
    following = None
    if len(found) > limit:
        following = base64.urlsafe_b64encode(key(items[-1]).encode()).rstrip(b"=").decode()
    return {"items": [view(item) for item in items], "nextCursor": following}
