"""What a store's people see of requests to tell or to forget, and what customers are told."""

from datetime import datetime
from typing import Any, Self

from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.http.answers.people.compliance import ObligationClock
from tolsey.storage.records.commerce.compliance import ComplianceRequest
from tolsey.storage.records.files import FileRecord
from tolsey.storage.tables import Table

FOR_GOOD = "until the customer or the shop is forgotten"


class KeptUntil(ApiAnswer):
    """How long rows of one kind are kept."""

    what: str
    until: list[str]

    @classmethod
    def of(cls, table: Table[Any]) -> Self:
        """Say it of a table as it is declared."""
        ages = [f"{one.interval} after {one.column}" for one in table.retention]
        return cls(what=table.export, until=[*ages, FOR_GOOD])


class CustomerAnswer(ApiAnswer):
    """What is kept of a customer at one store: below these fields, a list of rows for each kind of thing."""

    request_id: str
    store_id: str
    shop_domain: str
    received_at: Timestamp
    assembled_at: Timestamp
    expires_at: Timestamp
    known_as: list[str]
    kept_until: list[KeptUntil]


class PrivacyRequestAnswer(ObligationClock):
    """A request about a customer of a store, or the whole shop; `fileId` has the answer until `fileExpiresAt`."""

    id: str
    topic: str
    source: str
    shop_domain: str
    completed_at: Timestamp | None
    handled_at: Timestamp | None
    file_id: str | None
    file_expires_at: Timestamp | None

    @classmethod
    def of(cls, request: ComplianceRequest, file: FileRecord | None, at: datetime) -> Self:
        """Show a request at a moment, with the file of its answer while it is kept."""
        if file is not None and file.expires_at <= at:
            file = None
        return cls.read(
            request,
            file_id=file and file.id,
            file_expires_at=file and file.expires_at,
            **cls.clock_of(request, at),
        )
