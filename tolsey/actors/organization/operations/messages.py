"""What an organization can be asked about what it was asked for."""

from dataclasses import dataclass

from tolsey.runtime.messages import Message
from tolsey.storage.records.runtime.operations import Operation


@dataclass(frozen=True, slots=True)
class AwaitOperation(Message[Operation]):
    """Somebody waits for the end of an operation, or is told what became of it."""

    operation_id: str
