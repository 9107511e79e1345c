"""API keys, as their users see them."""

from typing import Self

from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.storage.records.people import ApiKey


class ApiKeyAnswer(ApiAnswer):
    """A live key: by what its value begins, for what and how long it is good."""

    id: str
    organization_id: str
    name: str
    prefix: str
    scopes: list[str]
    created_at: Timestamp
    expires_at: Timestamp
    last_used_at: Timestamp | None

    @classmethod
    def of(cls, key: ApiKey) -> Self:
        """Show a key that is kept."""
        return cls.read(key, last_used_at=key.used_at)


class MadeKeyAnswer(ApiKeyAnswer):
    """A key just made, with its value; a repeat with the same `Idempotency-Key` has it no more."""

    value: str | None = None
