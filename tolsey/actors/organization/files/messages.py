"""What is asked of an organization about its files, and what became of it."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from tolsey.runtime.messages import Call, LaneName, Message, Patience
from tolsey.storage.records.runtime.operations import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class AskForExport(Message[Operation]):
    """An admin wants all that is kept about a store as a file."""

    operation_id: str
    store_id: str
    user_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportKept(Message[None]):
    """The file is there."""

    operation_id: str
    file_id: str
    sha256: str
    size: int
    at: datetime


@dataclass(frozen=True, slots=True)
class ExportGivenUp(Message[None]):
    """The file could not be written, however often it was tried."""

    operation_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepExport(Call[ExportKept]):
    """Write all that is kept about a store to a file; the file has the same id at each try."""

    lane: ClassVar[LaneName] = "job"
    deadline_seconds: ClassVar[float] = 3_600.0
    patience: ClassVar[Patience | None] = Patience((1.0, 5.0, 30.0, 120.0, 600.0), 10)

    organization_id: str
    operation_id: str
    store_id: str
    user_id: str
    file_id: str
    at: datetime

    def given_up(self, why: str, at: datetime) -> ExportGivenUp:
        """Tell whoever waits for it."""
        del why
        return ExportGivenUp(self.operation_id, at)
