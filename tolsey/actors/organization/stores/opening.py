"""Decisions about an organization's stores."""

from dataclasses import replace

from tolsey.actors.organization import plans
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.organization.stores.messages import CloseStore, OpenStore, StoreOpened
from tolsey.actors.refusals import Conflict, NotFound, PaymentRequired
from tolsey.runtime.decision import Decision
from tolsey.storage.records.commerce.stores import NOT_HELD, StoreRecord
from tolsey.storage.records.journal import AuditRecord


def open_store(
    state: OrganizationState, message: OpenStore
) -> Decision[OrganizationState, StoreOpened]:
    """Open a store if the plan includes one more; 402 proposes the plan that does."""
    if not state.exists:
        raise NotFound("This organization doesn't exist, or you don't belong to it. Check the id.")
    known = state.store(message.store_id)
    if known is not None:
        if known.deleted_at is not None:
            raise Conflict(
                "This store was deleted and can't be restored. Create a new store.",
                code="store_deleted",
            )
        return Decision(state, reply=_opened(known))
    wanted = len(state.open_stores) + 1
    included = plans.stores_included(state.plan, state.stores_contracted)
    if included is not None and wanted > included:
        raise PaymentRequired(
            f"Your plan includes {included} {'store' if included == 1 else 'stores'}, and all are in use. Upgrade your plan to add another.",
            code="store_limit",
            plan=plans.proposed_for(wanted),
            storesIncluded=included,
        )
    opened = StoreRecord(
        id=message.store_id,
        organization_id=state.organization_id,
        name=message.name,
        sealed_salt=message.sealed_salt,
        created_at=message.at,
    )
    made = AuditRecord(
        event="store.created",
        subject=opened.id,
        organization_id=state.organization_id,
        actor=message.user_id,
    )
    # The salt is written and not remembered: nobody here could let go of it when it is destroyed.
    kept = replace(opened, sealed_salt=NOT_HELD)
    after = replace(state, stores=(*state.stores, kept))
    return Decision(after, reply=_opened(opened), records=(opened, made))


def close_store(state: OrganizationState, message: CloseStore) -> Decision[OrganizationState, bool]:
    """Close a store; its place in the plan is free again."""
    known = state.store(message.store_id)
    if known is None or known.deleted_at is not None:
        return Decision(state, reply=False)
    closed = replace(known, deleted_at=message.at)
    stores = tuple(closed if kept is known else kept for kept in state.stores)
    gone = AuditRecord(
        event="store.deleted",
        subject=known.id,
        organization_id=state.organization_id,
        actor=message.user_id,
    )
    return Decision(replace(state, stores=stores), reply=True, records=(gone,))


def _opened(record: StoreRecord) -> StoreOpened:
    return StoreOpened(record.id, record.name, record.created_at)
