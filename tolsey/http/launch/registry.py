"""The registry of skills, for anyone (rules/launch#playbook)."""

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.http.answers.stores.launch import SkillAnswer, SkillsAnswer
from tolsey.http.web.access import public

routes = Blueprint("registry", __name__, url_prefix="/api/registry")
tag_blueprint(routes, ["Launch"])


@routes.get("/skills")
@public
async def list_skills() -> SkillsAnswer:
    """List the skills that a launch takes: who has each, and with which permissions of the shop."""
    return SkillsAnswer(items=[SkillAnswer.of(one) for one in PLAYBOOK.milestones.values()])
