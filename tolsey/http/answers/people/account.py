"""What a person is told of their account."""

from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.http.answers.stores.connection import ExportedRowsAnswer, StoreExportAnswer


class OwnedRowsAnswer(ExportedRowsAnswer):
    """All that is kept of a user or an organization."""

    id: str


class KeptAnswer(ApiAnswer):
    """What of the caller's stays for one reason, each by its name in an export."""

    reason: str
    names: list[str]


class AccountDeletionAnswer(ApiAnswer):
    """An account that is being deleted: when it is gone for good, and what stays then, and why."""

    gone_at: Timestamp
    kept: list[KeptAnswer]


class AccountExportAnswer(ApiAnswer):
    """All that is kept about a user, about the organizations that they own, and about the stores of these."""

    user: OwnedRowsAnswer
    organizations: list[OwnedRowsAnswer]
    stores: list[StoreExportAnswer]
