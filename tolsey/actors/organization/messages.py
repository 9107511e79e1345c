"""How an organization is addressed; what it can be asked is in the `messages` of its parts."""

from tolsey.actors.organization import KIND
from tolsey.runtime.messages import ActorId


def organization(organization_id: str) -> ActorId:
    """Address an organization."""
    return ActorId(KIND, organization_id)
