"""Files that an organization asked for; nothing of them is in memory but their operations."""

from tolsey.actors.organization.files import exports
from tolsey.actors.organization.files.messages import AskForExport, ExportGivenUp, ExportKept
from tolsey.actors.organization.operations.part import kept_in
from tolsey.actors.organization.state import OrganizationState
from tolsey.runtime.actor import KindPart, gathers, on
from tolsey.storage.database import Database


class Files(KindPart[OrganizationState]):
    """Exports of stores."""

    def __init__(self, database: Database) -> None:
        self.decides = (
            gathers(AskForExport, kept_in(database), exports.begin),
            on(ExportKept, exports.kept),
            on(ExportGivenUp, exports.given_up),
        )
