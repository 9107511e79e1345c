"""Which part of an organization's grants is wanted, as it travels in a cursor."""

from datetime import UTC, datetime

from tolsey.actors.organization.ledger.messages import SpentAfter
from tolsey.http.web.paging import InvalidCursor


def key_of(after: SpentAfter) -> str:
    """Write down the place of a grant in the order in which grants are spent."""
    expires_at, granted_at, id = after
    return f"{expires_at.isoformat()}|{granted_at.isoformat()}|{id}"


def spent_after(key: str) -> SpentAfter | None:
    """Read such a place; None for the first part."""
    if not key:
        return None
    try:
        expires_at, granted_at, id = key.split("|", 2)
        return _moment(expires_at), _moment(granted_at), id
    except (ValueError, OverflowError) as error:
        raise InvalidCursor from error


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
