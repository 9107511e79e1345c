"""Files that are kept for organizations; their bytes are in the object store."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from tolsey.storage.owners import ID_ALONE, Belongs, RowOwner
from tolsey.storage.tables import Personal, stored

DEAL_PURPOSE: Final = "deal"
"""The purpose of a file in a deal's data room. Only the deal's own routes serve such a file."""


@stored(
    "files",
    key=("id",),
    belongs=(
        Belongs(
            to=RowOwner.ORGANIZATION,
            emptied={"name": "''", "expires_at": "least(expires_at, now())"},
        ),
        Belongs(
            to=RowOwner.STORE, emptied={"name": "''", "expires_at": "least(expires_at, now())"}
        ),
        Belongs(to=RowOwner.USER, by="created_by", stays=ID_ALONE),
    ),
    export="files",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """A file: whose it is, what its bytes come to, and until when it is kept; a row of files."""

    id: str
    organization_id: str
    store_id: str | None
    purpose: str
    name: str
    content_type: str
    sha256: str
    size: int
    created_by: Annotated[str, Personal.USER]
    created_at: datetime
    expires_at: datetime
