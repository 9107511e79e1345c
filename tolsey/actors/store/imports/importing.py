"""Decisions about the import of what a shop sold before it was connected.

Deliveries come meanwhile. An order is the newest that was told of it: what an export says gives way to a
delivery of the same second, and a tombstone to nothing.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from tolsey.actors.refusals import Conflict
from tolsey.actors.store.grants import (
    disconnected,
    is_listening,
    lacking,
    never_connected,
    token_unavailable,
)
from tolsey.actors.store.imports.messages import (
    BeginImport,
    BulkExportLost,
    BulkExportRunning,
    BulkExportStarted,
    FindPlaceInExport,
    ImportedOrder,
    ImportEnded,
    ImportFailed,
    ImportPaused,
    ImportRun,
    KeepImported,
    PartOutcome,
    PlaceInExport,
    ReadBulkExport,
    StartBulkExport,
    StopImport,
)
from tolsey.actors.store.state import StoreState, filed
from tolsey.runtime.decision import Decision, Perform
from tolsey.storage.records.commerce.connection import (
    DISCONNECTED,
    Connection,
    ConnectionStatus,
)
from tolsey.storage.records.commerce.imports import ImportState, OrderImport
from tolsey.storage.records.journal import AuditRecord, audit_record

READ_ORDERS: Final = "read_orders"
READ_ALL_ORDERS: Final = "read_all_orders"
HORIZON: Final = timedelta(days=60)
"""How far back the platform shows orders to an app without `read_all_orders`."""
EXPORT_LIFE: Final = timedelta(days=6)
"""How long an export is relied on; the platform keeps it for seven days."""
MOST_EXPORTS: Final = 3
"""An export that the platform ends without a result is begun anew so often."""
POLL_SECONDS: Final = (1.0, 30.0)
"""How long an export is waited for at least and at most before it is looked at again."""
A_MOMENT: Final = timedelta(microseconds=1)
NO_FREE_TEXT: Final = "{}"

Done = Decision[StoreState, None]


def begin(state: StoreState, message: BeginImport) -> Decision[StoreState, OrderImport]:
    """Import a shop's orders, or go on with an import that stands; one that runs is left to run."""
    connection = _live(state)
    standing = state.order_import
    if standing is not None and standing.state is ImportState.RUNNING:
        return Decision(state, reply=standing)
    if standing is not None and _can_go_on(standing, connection, message.at):
        going = replace(
            standing,
            run=standing.run + 1,
            state=ImportState.RUNNING,
            code=None,
            changed_at=message.at,
            begun_by=message.user_id,
        )
    else:
        going = _new(state, connection, message.at, message.user_id)
    audit = _audit(state, "begun", message.user_id, connection.shop_domain)
    after = state.with_import(going)
    return Decision(after, reply=going, records=(audit,), effects=(next_call(after, going),))


def after_connecting(state: StoreState, at: datetime) -> tuple[StoreState, tuple[Perform, ...]]:
    """Begin the import of a shop that was just connected, unless its app may not read orders.

    Where a delivery told that the app may read more, what it could not read before is imported, too.
    """
    connection = state.connection
    if connection is None or (connection.scopes and not _reads_orders(connection)):
        return state, ()
    going = _new(state, connection, at, None)
    after = state.with_import(going)
    return after, (next_call(after, going),)


def may_read_more(before: tuple[str, ...], scopes: tuple[str, ...]) -> bool:
    """Tell whether orders can be read now that could not be before."""
    return bool((set(scopes) - set(before)) & {READ_ORDERS, "write_orders", READ_ALL_ORDERS})


def stop(state: StoreState, message: StopImport) -> Decision[StoreState, OrderImport]:
    """Let an import stand where it is; the call that reads finds out at its next part."""
    standing = state.order_import
    if standing is None or standing.state is not ImportState.RUNNING:
        raise Conflict(
            "No order import is running. Start one, or check its status.", code="import_not_running"
        )
    stopped = replace(
        standing, run=standing.run + 1, state=ImportState.STOPPED, changed_at=message.at
    )
    audit = _audit(state, "stopped", message.user_id, standing.shop_domain)
    return Decision(state.with_import(stopped), reply=stopped, records=(audit,))


def started(state: StoreState, message: BulkExportStarted) -> Done:
    """Wait for the export, and read it from its beginning."""
    standing = _of_run(state, message.run)
    if standing is None:
        return Decision(state, reply=None)
    waiting = replace(
        standing,
        bulk_export=message.bulk_export,
        exported_at=message.at,
        exports=standing.exports + 1,
        read_bytes=0,
        orders=0,
        unread=0,
        changed_at=message.at,
    )
    return _went_on(state, waiting, due_at=None)


def running(state: StoreState, message: BulkExportRunning) -> Done:
    """Look again in a while: a quarter of how long it takes already."""
    standing = _of_run(state, message.run)
    if standing is None:
        return Decision(state, reply=None)
    least, most = POLL_SECONDS
    taken = (message.at - (standing.exported_at or message.at)).total_seconds()
    due_at = message.at + timedelta(seconds=min(most, max(least, taken / 4)))
    waiting = replace(standing, expected=message.expected, changed_at=message.at)
    return _went_on(state, waiting, due_at=due_at)


def lost(state: StoreState, message: BulkExportLost) -> Done:
    """Have the export made anew, a few times: its orders are written over what was read of it."""
    standing = _of_run(state, message.run)
    if standing is None:
        return Decision(state, reply=None)
    if standing.exports >= MOST_EXPORTS:
        return failed(state, ImportFailed(message.run, "export_failed", message.at))
    again = replace(standing, run=standing.run + 1, bulk_export=None, changed_at=message.at)
    return _went_on(state, again, due_at=None)


def find_place(
    state: StoreState, message: FindPlaceInExport
) -> Decision[StoreState, PlaceInExport | None]:
    """Tell up to where an export is read."""
    standing = _of_run(state, message.run)
    if standing is None:
        return Decision(state, reply=None)
    place = PlaceInExport(
        shop_domain=standing.shop_domain,
        bulk_export=standing.bulk_export,
        read_bytes=standing.read_bytes,
    )
    return Decision(state, reply=place)


def keep(
    state: StoreState, message: KeepImported, forgotten: Collection[int]
) -> Decision[StoreState, PartOutcome]:
    """Write a part of an export, and up to where it is read, in one commit.

    A part that another call has read already is not read twice. What was deleted of a customer does not
    come back (rules/shops#earlier-orders): `forgotten` are those whose deletion is on disk.
    """
    standing = _of_run(state, message.run)
    if standing is None or not is_listening(state, standing.shop_domain):
        return Decision(state, reply=PartOutcome.OVER)
    if message.start != standing.read_bytes:
        return Decision(state, reply=PartOutcome.ELSEWHERE)
    further = replace(
        standing,
        read_bytes=message.end,
        orders=standing.orders + len(message.orders),
        unread=standing.unread + message.unread,
        changed_at=message.at,
    )
    gone = {*forgotten, *state.forgotten_customers}
    rows = [row for one in message.orders for row in _rows(one, gone)]
    return Decision(state.with_import(further), reply=PartOutcome.KEPT, records=filed(state, *rows))


def paused(state: StoreState, message: ImportPaused) -> Done:
    """Read on, after others had their turn in the lane."""
    standing = _of_run(state, message.run)
    if standing is None:
        return Decision(state, reply=None)
    return _went_on(state, replace(standing, expected=message.expected), due_at=None)


def ended(state: StoreState, message: ImportEnded) -> Done:
    """Say that the orders are known from then on."""
    standing = _of_run(state, message.run)
    if standing is None:
        return Decision(state, reply=None)
    done = replace(
        standing,
        state=ImportState.DONE,
        expected=message.expected,
        bulk_export=None,
        changed_at=message.at,
        finished_at=message.at,
        known_since=standing.since,
        knows_all=standing.since is None,
    )
    return Decision(state.with_import(done), reply=None)


def failed(state: StoreState, message: ImportFailed) -> Done:
    """Let the import stand, and say why; what was read stays."""
    standing = _of_run(state, message.run)
    if standing is None:
        return Decision(state, reply=None)
    stands = replace(
        standing,
        run=standing.run + 1,
        state=ImportState.FAILED,
        code=message.code,
        changed_at=message.at,
    )
    return Decision(state.with_import(stands), reply=None)


def next_call(state: StoreState, going: OrderImport, due_at: datetime | None = None) -> Perform:
    """Make the one call that an import waits for."""
    run = ImportRun(going.begun_at, going.run)
    key = f"import-orders:{going.store_id}:{going.begun_at.isoformat()}:{going.run}"
    call: StartBulkExport | ReadBulkExport
    if going.bulk_export is None:
        call = StartBulkExport(
            store_id=going.store_id,
            run=run,
            organization_id=state.organization_id,
            shop_domain=going.shop_domain,
            since=going.since,
        )
    else:
        call = ReadBulkExport(
            store_id=going.store_id, run=run, organization_id=state.organization_id
        )
    return Perform(call, key=key, due_at=due_at)


def _went_on(state: StoreState, going: OrderImport, *, due_at: datetime | None) -> Done:
    after = state.with_import(going)
    return Decision(after, reply=None, effects=(next_call(after, going, due_at),))


def _rows(found: ImportedOrder, gone: Collection[int]) -> list[object]:
    # An export is of a moment before it is read: of the same second a delivery knows better, and it may
    # come before or after (rules/shops#earlier-orders).
    order = replace(found.order, updated_at=found.order.updated_at - A_MOMENT)
    touch = found.touch and replace(found.touch, updated_at=found.touch.updated_at - A_MOMENT)
    if found.customer_id in gone:
        order = replace(order, customer_hash=None, metadata=NO_FREE_TEXT)
        touch = touch and replace(touch, session_id=None)
    return [order, *((touch,) if touch else ()), *found.refunds]


def _of_run(state: StoreState, run: ImportRun) -> OrderImport | None:
    """Find the import that a result is about, unless it has another run by now, or none."""
    standing = next((one for one in state.imports if one.begun_at == run.begun_at), None)
    if standing is None or standing.run != run.number or standing.state is not ImportState.RUNNING:
        return None
    return standing


def _new(
    state: StoreState, connection: Connection, at: datetime, user_id: str | None
) -> OrderImport:
    former = state.order_import
    is_still_known = former is not None and former.begun_at >= connection.connected_at
    return OrderImport(
        store_id=state.store_id,
        shop_domain=connection.shop_domain,
        begun_at=at,
        run=1,
        state=ImportState.RUNNING,
        changed_at=at,
        begun_by=user_id,
        # The platform shows the orders of 60 days unless the app may read all (rules/shops#earlier-orders).
        since=None if READ_ALL_ORDERS in connection.scopes else at - HORIZON,
        # What the import before had is known for as long as deliveries came ever since.
        known_since=former.known_since if former and is_still_known else None,
        knows_all=bool(former and is_still_known and former.knows_all),
    )


def _can_go_on(standing: OrderImport, connection: Connection, at: datetime) -> bool:
    return (
        standing.state in {ImportState.STOPPED, ImportState.FAILED}
        and standing.begun_at >= connection.connected_at
        and standing.bulk_export is not None
        and standing.exported_at is not None
        and at < standing.exported_at + EXPORT_LIFE
        and standing.code != "export_failed"
        # An app that may read all by now is to have all.
        and (standing.since is None) == (READ_ALL_ORDERS in connection.scopes)
    )


def _live(state: StoreState) -> Connection:
    """Give the connection whose orders can be read now."""
    connection = state.connection
    if connection is None:
        raise never_connected()
    if connection.status == DISCONNECTED:
        raise disconnected()
    if connection.status != ConnectionStatus.ACTIVE:
        raise token_unavailable()
    if connection.scopes and not _reads_orders(connection):
        raise lacking(READ_ORDERS)
    return connection


def _reads_orders(connection: Connection) -> bool:
    """Whether the app may read orders; whoever may write them may."""
    return bool({READ_ORDERS, "write_orders"} & set(connection.scopes))


def _audit(state: StoreState, what: str, who: str, shop_domain: str) -> AuditRecord:
    return audit_record(
        f"commerce.import.{what}",
        state.store_id,
        state.organization_id,
        who,
        shopDomain=shop_domain,
    )
