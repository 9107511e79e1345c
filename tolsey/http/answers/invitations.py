"""Invitations to organizations, as their owners and admins see them."""

from typing import Self

from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.storage.people.invitations import InvitationRow


class InvitationAnswer(ApiAnswer):
    """An invitation that waits; its link is in the mail alone."""

    id: str
    organization_id: str
    email: str
    role: str
    invited_by: str
    created_at: Timestamp
    expires_at: Timestamp

    @classmethod
    def of(cls, row: InvitationRow) -> Self:
        """Show an invitation that is kept."""
        return cls.read(row.invitation, invited_by=row.inviter)
