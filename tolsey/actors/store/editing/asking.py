"""How a change of a shop is asked for, by whoever wants one: an agent's tool, a page, a launch milestone.

All come to one machine (`operations`): what is asked is kept, planned, sent once and looked for afterwards.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import anyio
import orjson

from tolsey.actors.edit import Edit
from tolsey.actors.ports import CommerceEditor
from tolsey.actors.reach import Ask
from tolsey.actors.store.connection.messages import UseToken
from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.kinds.kind import Planned, Rejected
from tolsey.actors.store.editing.messages import BeginChangeSet, BeginOperation, PlannedChange
from tolsey.actors.store.editing.queueing import AT_ONCE
from tolsey.actors.store.effects import shops
from tolsey.actors.store.grants import lacking
from tolsey.actors.store.messages import store
from tolsey.runtime.tasks import together
from tolsey.storage.commerce import agent_operations
from tolsey.storage.sealing.sealed import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRequest:
    """A change that somebody asks for, under an id that is theirs for this change alone.

    `client_id` names the program that asks, `digest` what it was asked with: the same id with another digest is refused.
    """

    store_id: str
    operation_id: str
    user_id: str
    client_id: str
    tool: str
    digest: str
    edit: Edit


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEdit:
    """What a thing of the shop is, and what an edit would make of it, both as they are shown."""

    before: dict[str, Any] | None
    """None where the shop has no such thing."""
    after: dict[str, Any] | None
    version: str
    rejected: Rejected | None = None


class ShopEditor:
    """Plans changes of shops, and has their stores carry them out."""

    def __init__(
        self, *, ask: Ask, editor: CommerceEditor, vault: Vault, clock: Callable[[], datetime]
    ) -> None:
        self._ask = ask
        self._shops = shops(ask, vault, clock)
        self._editor = editor
        self._vault = vault
        self._clock = clock

    async def require_grant(self, store_id: str, edit: Edit) -> None:
        """Refuse by its name a scope of the shop that is known to be missing."""
        kind = edits.KINDS[edit.kind]
        token = await self._ask(store(store_id), UseToken(self._clock()))
        if token.scopes and {kind.platform_scope, kind.or_scope}.isdisjoint(token.scopes):
            raise lacking(kind.platform_scope)

    async def plan(self, store_id: str, edit: Edit) -> PlannedEdit:
        """Look at the shop and say what an edit would do; it changes nothing."""
        facts = await self._shops.call(store_id, lambda shop: self._editor.look(shop, edit))
        planned = edits.plan(edit, facts)
        before = None if facts is None else edits.shown(edit, facts)
        version = "" if facts is None else edits.version_of(edit, facts)
        if isinstance(planned, Planned):
            after = edits.shown(edit, planned.after)
            return PlannedEdit(before=before, after=after, version=version)
        return PlannedEdit(before=before, after=None, version=version, rejected=planned)

    async def plan_all(self, store_id: str, some: Sequence[Edit]) -> list[PlannedEdit]:
        """Say what many edits would do, looking at as many things at once as a store may."""
        places = anyio.CapacityLimiter(AT_ONCE)

        async def one(edit: Edit) -> PlannedEdit:
            async with places:
                return await self.plan(store_id, edit)

        return await together([partial(one, edit) for edit in some])

    def begin_message(
        self,
        asked: EditRequest,
        *,
        is_repeat: bool = False,
        proposed: PlannedEdit | None = None,
        before: Mapping[str, Any] | None = None,
    ) -> BeginOperation:
        """Write what the store is asked for; what is `proposed` waits for a person, who sees that plan.

        An edit that has its `change` was planned from what is shown in `before`.
        """
        return BeginOperation(
            operation_id=asked.operation_id,
            user_id=asked.user_id,
            client_id=asked.client_id,
            tool=asked.tool,
            subject=edits.subject_of(asked.edit),
            digest=asked.digest,
            intent=self._sealed(asked),
            at=self._clock(),
            is_repeat=is_repeat,
            is_proposal=proposed is not None,
            before=_written(before if proposed is None else proposed.before),
            after=None if proposed is None else _written(proposed.after),
        )

    def begin_many_message(
        self,
        change_set: str,
        asked: Sequence[EditRequest],
        *,
        digest: str,
        plans: Sequence[PlannedEdit] | None,
    ) -> BeginChangeSet:
        """Write what the store is asked for to make changes that were planned together, each under an id of its own.

        Without `plans` it asks what became of those that were begun before, and begins nothing.
        """
        first = asked[0]
        shown = plans or [PlannedEdit(before=None, after=None, version="")] * len(asked)
        return BeginChangeSet(
            change_set=change_set,
            user_id=first.user_id,
            client_id=first.client_id,
            digest=digest,
            changes=tuple(
                PlannedChange(
                    operation_id=one.operation_id,
                    tool=one.tool,
                    subject=edits.subject_of(one.edit),
                    intent=self._sealed(one),
                    before=_written(plan.before),
                    after=_written(plan.after),
                )
                for one, plan in zip(asked, shown, strict=True)
            ),
            at=self._clock(),
            is_repeat=plans is None,
        )

    def _sealed(self, asked: EditRequest) -> str:
        """Seal what is asked for, for the row that keeps it."""
        return agent_operations.seal_intent(
            self._vault, asked.store_id, asked.operation_id, asked.edit.written()
        )


def _written(shown: Mapping[str, Any] | None) -> str | None:
    return None if shown is None else orjson.dumps(dict(shown)).decode()
