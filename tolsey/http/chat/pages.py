"""The chat as a page: forms that need no script. What was said travels with the form and is kept nowhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import orjson
from pydantic import StringConstraints, ValidationError
from quart import Blueprint, Response

from tolsey.actors.refusals import Refusal
from tolsey.http.chat import routes as chats
from tolsey.http.chat.routes import ChatTurn, Conversation, PlanDecision
from tolsey.http.chat.telling import told_in
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.web import limits, policies
from tolsey.http.web.access import page, store_of
from tolsey.http.web.api_model import ApiModel
from tolsey.storage.commerce.stores import StoreRow

TURNS: Final = 20
"""So much of a conversation goes on with it."""
QUESTION_CHARACTERS: Final = 4_000
SHOWN: Final = 400

routes = Blueprint("chat_pages", __name__)
answer_with_pages(routes)


class Question(ApiModel):
    """What is asked next."""

    question: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=QUESTION_CHARACTERS),
    ]


@dataclass(frozen=True, kw_only=True)
class ChatPage(Page):
    """A conversation, with the plans of its last answer."""

    template = "chat/chat.html"
    store: StoreRow
    turns: Sequence[ChatTurn] = ()
    tools: Sequence[str] = ()
    plans: Sequence[Mapping[str, Any]] = ()
    aborted: str = ""
    outcome: str = ""
    filled: Filled = field(default_factory=Filled)
    question_characters = QUESTION_CHARACTERS

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"/stores/{self.store.id}/chat"

    @property
    def said(self) -> str:
        """The conversation as the next form carries it."""
        return orjson.dumps([one.model_dump() for one in self.turns[-TURNS:]]).decode()

    @property
    def outcome_said(self) -> str:
        """Say what became of a plan."""
        return {
            "applied": _("It is done."),
            "replayed": _("It was done before, and was not done again."),
            "declined": _("Nothing was changed."),
            "unknown": _(
                "It was sent, and nobody knows yet whether it was done: look in the shop."
            ),
        }.get(self.outcome, _("It was not done."))

    def spelled(self, values: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        """Write what something is, or would be, a line for each of its fields."""
        return [(name.replace("_", " "), _short(one)) for name, one in values.items()]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


@routes.get("/stores/<store_id>/chat")
@page
async def show_chat(store_id: str) -> Response:
    """Show the form that asks."""
    return shown(ChatPage(store=await store_of(store_id)))


@routes.post("/stores/<store_id>/chat")
@page
async def ask_model(store_id: str) -> Response:
    """Have the model answer, and show what it planned with buttons to confirm or decline it."""
    store, values = await store_of(store_id), await forms.sent()
    before = _turns(values)
    try:
        question = forms.read(Question, {"question": values.get("question", "")}).question
        await limits.admit(policies.CHAT)
        asked = [*before, ChatTurn(role="user", content=question)]
        events = await _answered(Conversation(store_id=store_id, messages=asked[-TURNS:]))
    except (Misfilled, Refusal) as wrong:
        again = ChatPage(store=store, turns=before, filled=filled_again(values, wrong))
        return shown(again, refusal=wrong)
    text = "".join(said["text"] for name, said in events if name == "delta")
    if text:
        asked.append(ChatTurn(role="assistant", content=text))
    return shown(
        ChatPage(
            store=store,
            turns=asked,
            tools=[said["title"] for name, said in events if name == "tool"],
            plans=[said for name, said in events if name == "plan"],
            aborted=next((said["reason"] for name, said in events if name == "aborted"), ""),
        )
    )


@routes.post("/stores/<store_id>/chat/plan")
@page
async def decide(store_id: str) -> Response:
    """Carry out the plan that a person confirmed, or put on record that they declined it."""
    store, values = await store_of(store_id), await forms.sent()
    turns = _turns(values)
    try:
        sent = {name: values.get(name, "") for name in ("plan", "decision")}
        decision = forms.read(PlanDecision, {**sent, "storeId": store_id})
        done = await chats.post_plan(data=decision)
    except (Misfilled, Refusal) as wrong:
        again = ChatPage(store=store, turns=turns, filled=filled_again({}, wrong))
        return shown(again, refusal=wrong)
    words = "I confirmed the plan" if decision.decision == "confirm" else "I declined the plan"
    turns = [*turns, ChatTurn(role="user", content=f"({words}: {done.status}.)")]
    return shown(ChatPage(store=store, turns=turns, outcome=done.status))


async def _answered(conversation: Conversation) -> Sequence[tuple[str, dict[str, Any]]]:
    """Wait for the whole answer, unless the reader leaves before."""
    generation = await chats.begin(conversation)
    try:
        telling = await generation.begun()
        return [one async for one in told_in(telling.body())]
    finally:
        generation.leave()


def _turns(values: Mapping[str, str]) -> list[ChatTurn]:
    """Read the conversation that came with a form; what cannot be read begins anew."""
    try:
        kept = orjson.loads(values.get("said") or "[]")
        return [ChatTurn.model_validate(one) for one in kept][-TURNS:]
    except (orjson.JSONDecodeError, TypeError, ValidationError):
        return []
