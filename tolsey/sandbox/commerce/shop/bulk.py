"""Bulk operations of an app in a shop, each with the file of its result."""

import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO


@dataclass(slots=True)
class BulkOperation:
    """A bulk query and how far it is."""

    id: int
    query: str
    created_at: datetime
    group_objects: bool
    polls_left: int
    key: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    status: str = "CREATED"
    error_code: str | None = None
    completed_at: datetime | None = None
    object_count: int = 0
    root_object_count: int = 0
    file_size: int = 0
    url: str | None = None
    file: IO[bytes] | None = field(default=None, repr=False)
    written: bool = False

    def close(self) -> None:
        """Drop the result file."""
        if self.file is not None:
            self.file.close()
            self.file = None
