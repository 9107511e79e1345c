"""Chat: a conversation with the model over a store, paid out of its organization's credits."""

import asyncio
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, field_validator
from quart import Blueprint, Response, request
from quart_schema import tag_blueprint, validate_request

from tolsey.actors.chat import input_tokens
from tolsey.actors.refusals import Unprocessable
from tolsey.http.answers.base import Media
from tolsey.http.answers.stores.chat import ChatPlanAnswer
from tolsey.http.chat import prompt
from tolsey.http.chat.generation import AnswerGeneration, Order
from tolsey.http.chat.requests import sizes_of
from tolsey.http.chat.telling import CONTENT_TYPE
from tolsey.http.web import policies
from tolsey.http.web.access import caller, session, store_of
from tolsey.http.web.api_model import ApiModel, Identifier, Whole
from tolsey.http.web.context import new_id, now, service
from tolsey.http.web.limits import limited
from tolsey.http.web.repeats.idempotency import HEADER, idempotent
from tolsey.runtime import ids

MOST_MESSAGES = 200
MESSAGE_CHARACTERS = 100_000
PLAN_CHARACTERS = 200_000

routes = Blueprint("chat", __name__, url_prefix="/api")
tag_blueprint(routes, ["Chat"])


class ChatTurn(ApiModel):
    """Something that was said; what the service itself tells the model is not the caller's."""

    role: Literal["user", "assistant"]
    content: Annotated[str, Field(min_length=1, max_length=MESSAGE_CHARACTERS)]


class Conversation(ApiModel):
    """A conversation over a store; the last word is the user's."""

    store_id: Identifier
    messages: Annotated[list[ChatTurn], Field(min_length=1, max_length=MOST_MESSAGES)]
    max_output_tokens: Annotated[Whole | None, Field(ge=1, le=1_000_000)] = None
    tools: bool = True
    """Whether the model may use the tools that agents have, with the caller's role."""

    @field_validator("messages")
    @classmethod
    def _asks_something(cls, messages: list[ChatTurn]) -> list[ChatTurn]:
        if messages[-1].role != "user":
            raise ValueError("must end with a user message")
        return messages


class PlanDecision(ApiModel):
    """What a person says of a plan that an answer showed them."""

    store_id: Identifier
    plan: Annotated[str, Field(min_length=1, max_length=PLAN_CHARACTERS)]
    decision: Literal["confirm", "decline"]


@routes.post("/chat")
@session
@limited(policies.CHAT)
@validate_request(Conversation)  # what cannot be read was counted, too
@idempotent
async def post_chat(data: Conversation) -> Annotated[Response, Media(CONTENT_TYPE)]:
    """Stream an answer as events `delta`, `tool`, `plan`, `usage`, `done`, or `aborted` with its reason."""
    generation = await begin(data)
    asking = asyncio.current_task()
    if asking is not None:
        # The server cancels this task when the caller goes, be it before the first byte or after.
        asking.add_done_callback(lambda _: generation.leave())
    telling = await generation.begun()
    response = Response(telling.body(), content_type=CONTENT_TYPE)
    response.headers["X-Accel-Buffering"] = "no"
    response.timeout = None
    return response


async def begin(data: Conversation) -> AnswerGeneration:
    """Begin the answer to a conversation over a store of the caller's."""
    answers = service().chat
    answers.require_model()
    store = await store_of(data.store_id)
    known = await prompt.written(
        service().database,
        service().reports.of(store.organization_id),
        store=store,
        remembered=await service().memory.find(
            store.organization_id, store.id, data.messages[-1].content, prompt.PASSAGES
        ),
        at=now(),
    )
    said = [{"role": turn.role, "content": turn.content} for turn in data.messages]
    messages = [{"role": "system", "content": known}, *said]
    toolbox = await answers.toolbox(store, caller().user_id) if data.tools else None
    offered = toolbox.offered if toolbox else ()
    return answers.begin(
        _order(data, store.organization_id, sizes_of(messages, offered)), messages, toolbox
    )


@routes.post("/chat/plans")
@session
@limited(policies.CHAT)
async def post_plan(data: PlanDecision) -> ChatPlanAnswer:
    """Carry out a plan that an answer showed, or decline it: only who was shown it can, for five minutes."""
    store = await store_of(data.store_id)
    toolbox = await service().chat.toolbox(store, caller().user_id)
    if toolbox is None:
        raise Unprocessable(
            "This plan isn't one you were shown. Ask the assistant for a new plan.",
            code="plan_invalid",
        )
    if data.decision == "decline":
        await toolbox.decline(data.plan)
        return ChatPlanAnswer(status="declined")
    done = await toolbox.confirm(data.plan)
    return ChatPlanAnswer(
        status=done["status"],
        operation_id=done.get("operation_id"),
        before=done.get("before"),
        after=done.get("after"),
        code=done.get("code"),
        detail=done.get("detail"),
    )


def _order(data: Conversation, organization_id: str, asked: Iterable[str]) -> Order:
    """Measure what is asked for; refuse what leaves the model no room to answer."""
    given, terms = input_tokens(asked), service().chat.terms
    most = terms.most_output(data.max_output_tokens, given)
    if most < 1:
        raise Unprocessable(
            "The conversation is too long for the model. Start a new conversation.",
            code="conversation_too_long",
            inputTokens=given,
            limit=terms.context_tokens,
        )
    return Order(
        ids.new_id("gen"),
        organization_id,
        data.store_id,
        caller().user_id,
        claim=new_id("claim"),
        input_tokens=given,
        output_tokens=most,
        key=request.headers.get(HEADER),
    )
