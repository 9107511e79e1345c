"""The form before a launch: one question at a time, kept as it is answered, gone on with whenever."""

from dataclasses import dataclass, field
from typing import Final

import orjson
from pydantic import ValidationError
from quart import Blueprint, Response, request

from tolsey.actors.refusals import NotFound, Refusal
from tolsey.actors.store.launch.messages import KeepOnboardingAnswers
from tolsey.actors.store.messages import store
from tolsey.http.launch import routes as api
from tolsey.http.launch.onboarding.forms import LaunchBody, OnboardingSpec, SpecBody
from tolsey.http.launch.onboarding.questions import (
    NUMBERS,
    QUESTIONS,
    Answers,
    OnboardingQuestion,
    answers_of,
    form_of,
)
from tolsey.http.launch.onboarding.scope_plan import ScopePlan, scope_plan
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.web.access import page, store_of
from tolsey.http.web.context import ask, now, service
from tolsey.storage.commerce import launches
from tolsey.storage.commerce.stores import StoreRow

routes = Blueprint("onboarding_pages", __name__, url_prefix="/stores/<store_id>/launch/answers")
answer_with_pages(routes)

ANSWERS: Final = "onboardingAnswers"
"""The module of a store's context with what was answered so far, as it was typed."""
MOST_CHARACTERS: Final = 20_000
PASSWORD: Final = "storefrontPassword"  # noqa: S105 - the name of a field
"""It is asked for with the answers, since it is kept with none of them."""


@dataclass(frozen=True, kw_only=True)
class QuestionPage(Page):
    """One question, as it was answered so far."""

    template = "launch/question.html"
    store: StoreRow
    question: OnboardingQuestion
    filled: Filled

    @property
    def number(self) -> int:
        """Which of them it is."""
        return NUMBERS[self.question.id]

    @property
    def most(self) -> int:
        """How many there are."""
        return len(QUESTIONS)

    @property
    def address(self) -> str:
        """The address of the form."""
        return f"/stores/{self.store.id}/launch/answers"

    @property
    def before(self) -> str:
        """The address of the question before, or of what the form is of."""
        if self.number == 1:
            return f"/stores/{self.store.id}"
        return f"{self.address}/{QUESTIONS[self.number - 2].id}"

    def said(self, words: str) -> str:
        """Say words of the form in the reader's language."""
        return _(words) if words else ""


@dataclass(frozen=True, kw_only=True)
class ReviewPage(Page):
    """All answers, which milestones will be blocked and why, and the button that begins."""

    template = "launch/review.html"
    store: StoreRow
    answers: Answers
    is_begun: bool
    plan: ScopePlan
    filled: Filled = field(default_factory=Filled)
    questions = QUESTIONS

    @property
    def address(self) -> str:
        """The address of the form."""
        return f"/stores/{self.store.id}/launch/answers"

    def said(self, words: str) -> str:
        """Say words of the form in the reader's language."""
        return _(words)


async def _known(store_id: str) -> tuple[dict[str, str], bool]:
    """Read what was answered so far, and whether the launch has begun."""
    modules = await launches.modules(service().database, store_id)
    spec = modules.get("onboardingSpec")
    return {**answers_of(spec or {}), **modules.get(ANSWERS, {})}, spec is not None


@routes.get("")
@page
async def show_next_question(store_id: str) -> Response:
    """Lead to the first question that has no answer yet, or to all of them."""
    await store_of(store_id, at_least="admin")
    answers, is_begun = await _known(store_id)
    address = f"/stores/{store_id}/launch/answers"
    for one in QUESTIONS:
        if not is_begun and not any(blank.name in answers for blank in one.blanks):
            return sent_on(f"{address}/{one.id}")
    return sent_on(f"{address}/review")


@routes.get("/review")
@page
async def review_answers(store_id: str) -> Response:
    """Show all answers before anything begins, with what the shop would not allow."""
    return shown(await _review(store_id))


@routes.post("/review")
@page
async def take_answers(store_id: str) -> Response:
    """Begin the launch with these answers, or let it go by them from now on."""
    row = await store_of(store_id, at_least="admin")
    answers, is_begun = await _known(store_id)
    try:
        spec = _spec(answers, (await forms.sent()).get(PASSWORD, ""))
        if is_begun:
            await api.change_spec(store_id, data=SpecBody(spec=spec))
        else:
            await api.begin_launch(data=LaunchBody(store_id=row.id, spec=spec))
    except (Misfilled, Refusal) as wrong:
        return shown(await _review(store_id, filled_again({}, wrong)), refusal=wrong)
    return sent_on(f"/stores/{store_id}/launch")


@routes.get("/<question>")
@page
async def show_question(store_id: str, question: str) -> Response:
    """Show one question."""
    row = await store_of(store_id, at_least="admin")
    answers, _begun = await _known(store_id)
    return shown(QuestionPage(store=row, question=_found(question), filled=Filled(answers)))


@routes.post("/<question>")
@page
async def answer_question(store_id: str, question: str) -> Response:
    """Keep an answer, and lead to the next question."""
    row = await store_of(store_id, at_least="admin")
    asked = _found(question)
    values = await forms.sent()
    given = {blank.name: values.get(blank.name, "").strip() for blank in asked.blanks}
    before, _begun = await _known(store_id)
    try:
        _check(asked, given)
    except Misfilled as wrong:
        again = QuestionPage(store=row, question=asked, filled=filled_again(given, wrong))
        return shown(again, refusal=wrong)
    told = KeepOnboardingAnswers(
        module=ANSWERS, value=orjson.dumps({**before, **given}).decode(), at=now()
    )
    await ask(store(store_id), told)
    number = NUMBERS[asked.id]
    following = (
        "review" if "review" in request.args or number == len(QUESTIONS) else QUESTIONS[number].id
    )
    return sent_on(f"/stores/{store_id}/launch/answers/{following}")


def _found(id: str) -> OnboardingQuestion:
    for one in QUESTIONS:
        if one.id == id:
            return one
    raise NotFound("This question doesn't exist. Go back to the list of questions.")


def _check(asked: OnboardingQuestion, given: Answers) -> None:
    """Read one answer as the launch will; raises Misfilled at the fields that are wrong."""
    wrong = {one.name: "" for one in asked.blanks if one.required and not given[one.name]}
    wrong |= {name: "" for name, text in given.items() if len(text) > MOST_CHARACTERS}
    # Of the rest of the form anything will do that can be read.
    stand_in = {"businessName": "Any", "country": "US"}
    try:
        OnboardingSpec.model_validate({**stand_in, **form_of(given)})
    except ValidationError as error:
        for one in error.errors(include_input=False, include_url=False, include_context=False):
            place = [str(part) for part in one["loc"]]
            names = [blank.name for blank in asked.blanks]
            dotted = ".".join(place[:2])
            name = (
                dotted if dotted in names else place[0] if place and place[0] in names else names[0]
            )
            wrong[name] = ""
    if wrong:
        raise Misfilled(wrong)


def _spec(answers: Answers, password: str) -> OnboardingSpec:
    """Read all answers; raises Misfilled where the first questions were left out, or the password is too long."""
    told = {PASSWORD: password} if password else {}
    try:
        return OnboardingSpec.model_validate({**form_of(answers), **told})
    except ValidationError as error:
        if all(one["loc"][0] == PASSWORD for one in error.errors(include_input=False)):
            raise Misfilled({PASSWORD: ""}) from error
        raise Misfilled(
            {forms.WHOLE: _("Something is missing. Answer the first two questions.")}
        ) from error


async def _review(store_id: str, filled: Filled | None = None) -> ReviewPage:
    row = await store_of(store_id, at_least="admin")
    answers, is_begun = await _known(store_id)
    plan = await scope_plan(store_id)
    return ReviewPage(
        store=row,
        answers=answers,
        is_begun=is_begun,
        plan=plan,
        filled=filled or Filled(),
    )
