"""What a store can be asked about the import of its shop's orders, and the calls that make it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from tolsey.runtime.messages import Call, LaneName, Message, Patience
from tolsey.storage.records.commerce.deliveries import (
    AttributionTouch,
    CommerceOrder,
    CommerceRefund,
)
from tolsey.storage.records.commerce.imports import OrderImport


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginImport(Message[OrderImport]):
    """A person wants the orders of before imported, or an import that stands to go on."""

    user_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StopImport(Message[OrderImport]):
    """A person wants an import to stand."""

    user_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ImportRun:
    """Which run of which import a call works for; any other changes nothing."""

    begun_at: datetime
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceInExport:
    """Up to where the export of an import is read; None before the platform was asked for one."""

    shop_domain: str
    bulk_export: str | None
    read_bytes: int


@dataclass(frozen=True, slots=True)
class FindPlaceInExport(Message[PlaceInExport | None]):
    """Up to where is the export read? None when nobody wants it read any more."""

    run: ImportRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedOrder:
    """What an export says of an order; `customer_id` is looked at and not kept."""

    order: CommerceOrder
    touch: AttributionTouch | None = None
    refunds: tuple[CommerceRefund, ...] = ()
    customer_id: int | None = None


class PartOutcome(StrEnum):
    """What became of a part of an export."""

    KEPT = "kept"
    ELSEWHERE = "elsewhere"
    """Another call reads the export, and is further."""
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepImported(Message[PartOutcome]):
    """These orders stand in the export between two places; `unread` ones could not be read."""

    run: ImportRun
    start: int
    end: int
    orders: tuple[ImportedOrder, ...]
    unread: int
    at: datetime


@dataclass(frozen=True, slots=True)
class BulkExportStarted(Message[None]):
    """The platform makes an export of the orders."""

    run: ImportRun
    bulk_export: str
    at: datetime


@dataclass(frozen=True, slots=True)
class BulkExportRunning(Message[None]):
    """The export is not whole yet; so many orders are in it."""

    run: ImportRun
    expected: int
    at: datetime


@dataclass(frozen=True, slots=True)
class BulkExportLost(Message[None]):
    """The platform ended the export without a result, or has it no more."""

    run: ImportRun
    at: datetime


@dataclass(frozen=True, slots=True)
class ImportPaused(Message[None]):
    """A part of the export was read, and others have their turn."""

    run: ImportRun
    expected: int
    at: datetime


@dataclass(frozen=True, slots=True)
class ImportEnded(Message[None]):
    """The whole export was read."""

    run: ImportRun
    expected: int
    at: datetime


@dataclass(frozen=True, slots=True)
class ImportFailed(Message[None]):
    """The shop or the platform does not let the import go on; `code` says why."""

    run: ImportRun
    code: str
    at: datetime


IMPORT_PATIENCE = Patience((2, 10, 30, 60, 120, 300), tries=12)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfImport:
    lane: ClassVar[LaneName] = "platform"
    patience: ClassVar[Patience | None] = IMPORT_PATIENCE

    store_id: str
    run: ImportRun
    organization_id: str | None = None

    def given_up(self, why: str, at: datetime) -> Message[Any]:
        """Say that the platform could not be reached for so long."""
        del why
        return ImportFailed(self.run, "commerce_unreachable", at)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartBulkExport(_OfImport, Call[BulkExportStarted | ImportFailed]):
    """Have the platform make an export of the orders since a moment, or of all."""

    shop_domain: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBulkExport(
    _OfImport, Call[BulkExportRunning | BulkExportLost | ImportPaused | ImportEnded | ImportFailed]
):
    """Look whether the export is whole, and read on in it for a while."""
