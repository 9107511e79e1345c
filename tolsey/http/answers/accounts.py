"""What a person is told of their account."""

from tolsey.http.answers.base import ApiAnswer
from tolsey.http.answers.stores import ExportedRowsAnswer, StoreExportAnswer


class OwnedRowsAnswer(ExportedRowsAnswer):
    """All that is kept of a user or an organization."""

    id: str


class AccountExportAnswer(ApiAnswer):
    """All that is kept about a user, about the organizations that they own, and about the stores of these."""

    user: OwnedRowsAnswer
    organizations: list[OwnedRowsAnswer]
    stores: list[StoreExportAnswer]
