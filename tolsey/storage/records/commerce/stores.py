"""Stores, as the turns of their organization write them down."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from tolsey.storage.owners import Belongs, RowOwner
from tolsey.storage.tables import stored

NOT_HELD: Final = ""
"""What stands for a salt in an organization's memory, which never has one; its row is not written over."""


@stored(
    "stores",
    key=("id",),
    replaces=("name", "deleted_at"),
    belongs=(
        Belongs(to=RowOwner.ORGANIZATION, emptied={"name": "''", "sealed_salt": "''"}),
        Belongs(to=RowOwner.STORE, by="id", emptied={"name": "''", "sealed_salt": "''"}),
    ),
    export="stores",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecord:
    """A store; deleted ones keep their row, so that what refers to them stays readable."""

    id: str
    organization_id: str
    name: str
    sealed_salt: str = field(metadata={"secret": True}, repr=False)
    created_at: datetime
    deleted_at: datetime | None = None
