"""What agents proposed and a person of the store decides."""

from typing import Any, Self

import orjson

from tolsey.actors.store.editing.operations import PROPOSAL_LIFE
from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.storage.records.commerce.agent_operation import AgentOperation


class ProposalAnswer(ApiAnswer):
    """A change that waits for a person: what it is of, and how that is before and after."""

    id: str
    kind: str
    subject: str
    created_at: Timestamp
    expires_at: Timestamp
    before: dict[str, Any]
    after: dict[str, Any]

    @classmethod
    def of(cls, proposed: AgentOperation) -> Self:
        """Show a proposal to whoever may decide."""
        return cls(
            id=proposed.operation_id,
            kind=proposed.tool,
            subject=proposed.subject,
            created_at=proposed.created_at,
            expires_at=proposed.created_at + PROPOSAL_LIFE,
            before=orjson.loads(proposed.before or "{}"),
            after=orjson.loads(proposed.after or "{}"),
        )
