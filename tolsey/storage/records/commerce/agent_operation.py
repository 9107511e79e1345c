"""What an agent asked to have changed in a shop, and what became of it."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from tolsey.storage.owners import EVIDENCE_OF_USER, OF_STORE, ORDERS_OF_BUYER, Belongs, RowOwner
from tolsey.storage.tables import Age, Integer, Jsonb, Personal, stored


class OperationState(StrEnum):
    """How far an operation is.

    `proposed` until a person decides, `decided_by` whom; `waiting` for another edit of the same thing or the same plan; `stopped` before its turn came, until
    the plan is resumed; `running` before it is sent; `sent` from the moment it may have reached the platform; `unknown` when no answer came and the shop does not tell yet.
    `applied`, `rejected` and `unclear` (nobody could tell any more) are the end; after `not_sent` the
    same key may try again.
    """

    PROPOSED = "proposed"
    WAITING = "waiting"
    STOPPED = "stopped"
    RUNNING = "running"
    SENT = "sent"
    UNKNOWN = "unknown"
    APPLIED = "applied"
    REJECTED = "rejected"
    UNCLEAR = "unclear"
    NOT_SENT = "not_sent"


@stored(
    "agent_operations",
    key=("store_id", "operation_id"),
    # For that long the same key changes nothing twice.
    retention=Age(column="finished_at", interval="90 days"),
    swept="agentOperations",
    belongs=(
        OF_STORE,
        EVIDENCE_OF_USER,
        # A subject is `order/1`, or names the order in its midst.
        Belongs(
            to=RowOwner.BUYER,
            by="store_id = split_part($2, '@', 1)"
            f" AND string_to_array(subject, '/') && ARRAY({ORDERS_OF_BUYER.replace('order_id', 'order_id::text', 1)})",
        ),
    ),
    export="agentOperations",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOperation:
    """A row of agent_operations.

    `digest` is of the arguments, so that a key is never used for others; `intent` is sealed text,
    gone once the operation has ended; `before` and `after` are JSON text without personal data.
    `sends` counts how often it was sent, `looks` how often the shop was read for what became of it.
    Changes that were planned together bear the id of their plan as `change_set`, and ids of their own in its order;
    `decided_by` is then the person who stopped them.
    """

    store_id: str
    operation_id: str
    user_id: Annotated[str, Personal.USER]
    client_id: str
    tool: str
    subject: str
    digest: str
    state: str
    created_at: datetime
    intent: Annotated[str | None, Personal.FREE_TEXT] = field(
        default=None, metadata={"secret": True}, repr=False
    )
    before: Annotated[str | None, Jsonb] = None
    after: Annotated[str | None, Jsonb] = None
    version: str | None = None
    code: str | None = None
    detail: str | None = None
    sends: Annotated[int, Integer] = 0
    looks: Annotated[int, Integer] = 0
    finished_at: datetime | None = None
    decided_by: Annotated[str | None, Personal.USER] = None
    decided_at: datetime | None = None
    change_set: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will become of it by itself."""
        return self.finished_at is not None
