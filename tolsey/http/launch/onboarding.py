"""The form before a launch: one question at a time, kept as it is answered, gone on with whenever."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from pydantic import ValidationError
from quart import Blueprint, Response, request

from tolsey.actors.refusals import NotFound, Refusal
from tolsey.actors.store.launch.grants import covers, grant_address
from tolsey.actors.store.launch.messages import KeepOnboardingAnswers
from tolsey.actors.store.launch.playbook import PLAYBOOK, PlaybookMilestone
from tolsey.actors.store.messages import store
from tolsey.http.launch import routes as api
from tolsey.http.launch.forms import LaunchBody, OnboardingSpec, SpecBody
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, shown
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.web.access import page, store_of
from tolsey.http.web.context import ask, now, service
from tolsey.storage.commerce import connections, launches
from tolsey.storage.commerce.stores import StoreRow

routes = Blueprint("onboarding_pages", __name__, url_prefix="/stores/<store_id>/launch/answers")
answer_with_pages(routes)

ANSWERS: Final = "onboardingAnswers"
"""The module of a store's context with what was answered so far, as it was typed."""
MOST_CHARACTERS: Final = 20_000
PARTS: Final = ("price", "cost")
"""What a line of a product has after its name."""
Answers = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blank:
    """One field of a question; `name` is where it stands in the form of a launch."""

    name: str
    label: str
    hint: str = ""
    wanted: str = ""
    type: str = "text"
    required: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnboardingQuestion:
    """One question, with the fields that answer it."""

    id: str
    title: str
    why: str
    blanks: Sequence[Blank]


PRICE: Final = marked("An amount in the shop's currency, such as 19.90.")
QUESTIONS: Final[Sequence[OnboardingQuestion]] = (
    OnboardingQuestion(
        id="name",
        title=marked("What is the business called?"),
        why=marked("It stands on pages, policies and the brand kit."),
        blanks=(
            Blank(
                name="businessName",
                label=marked("Name"),
                wanted=marked("Give the business a name."),
                required=True,
            ),
        ),
    ),
    OnboardingQuestion(
        id="country",
        title=marked("Where is the business?"),
        why=marked("It decides the first market and which policies are drafted."),
        blanks=(
            Blank(
                name="country",
                label=marked("Country"),
                hint=marked("Two letters, such as US or DE."),
                wanted=marked("Give the country as two letters, such as US or DE."),
                required=True,
            ),
        ),
    ),
    OnboardingQuestion(
        id="goods",
        title=marked("What do you sell?"),
        why=marked("Texts are drafted from it; you approve them before anyone sees them."),
        blanks=(
            Blank(name="industry", label=marked("In a few words")),
            Blank(name="description", label=marked("In a few sentences"), type="textarea"),
            Blank(
                name="tone",
                label=marked("How should it sound?"),
                type="select",
                options={
                    "": marked("No wish"),
                    "warm": marked("Warm"),
                    "playful": marked("Playful"),
                    "plain": marked("Plain"),
                    "luxurious": marked("Luxurious"),
                },
            ),
        ),
    ),
    OnboardingQuestion(
        id="contact",
        title=marked("Where do customers write to?"),
        why=marked("The contact page and the policies name it."),
        blanks=(
            Blank(
                name="contactEmail",
                label=marked("E-mail address"),
                type="email",
                wanted=marked("Give an address such as hello@example.com."),
            ),
        ),
    ),
    OnboardingQuestion(
        id="location",
        title=marked("Where are orders sent from?"),
        why=marked("What is left out stays as the shop has it."),
        blanks=(
            Blank(name="location.name", label=marked("Name of the place")),
            Blank(name="location.address1", label=marked("Street and number")),
            Blank(name="location.zip", label=marked("Postal code")),
            Blank(name="location.city", label=marked("City")),
            Blank(name="location.provinceCode", label=marked("State or province, by its code")),
        ),
    ),
    OnboardingQuestion(
        id="shipping",
        title=marked("Where do you ship to, and for how much?"),
        why=marked("Markets, zones and rates are made from it, and prices come from you alone."),
        blanks=(
            Blank(
                name="shipping.countries",
                label=marked("Countries"),
                hint=marked("Two letters each, with commas between: US, CA, DE."),
                wanted=marked("Give countries as two letters each, such as US, CA, DE."),
            ),
            Blank(name="shipping.flatRate", label=marked("Rate"), hint=PRICE, wanted=PRICE),
            Blank(
                name="shipping.freeFrom",
                label=marked("Free from an order of"),
                hint=PRICE,
                wanted=PRICE,
            ),
        ),
    ),
    OnboardingQuestion(
        id="products",
        title=marked("Which products come first?"),
        why=marked("They are made as drafts, which you review."),
        blanks=(
            Blank(
                name="products",
                label=marked("Products"),
                type="textarea",
                hint=marked(
                    "One a line: name; price; what it costs you. The cost may be left out."
                ),
                wanted=marked("Write one a line, as in: Blanket; 120; 70"),
            ),
        ),
    ),
    OnboardingQuestion(
        id="pricing",
        title=marked("What do you want of prices?"),
        why=marked("They are compared with it, and never changed."),
        blanks=(
            Blank(
                name="pricing.marginPercent",
                label=marked("Margin in percent"),
                wanted=marked("Give a whole number from 0 to 99."),
            ),
            Blank(name="pricing.lowest", label=marked("Lowest price"), wanted=PRICE),
            Blank(name="pricing.highest", label=marked("Highest price"), wanted=PRICE),
        ),
    ),
)
NUMBERS: Final = {one.id: number for number, one in enumerate(QUESTIONS, 1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """A milestone that will be blocked, and the permissions for want of which."""

    title: str
    scopes: Sequence[str]


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
    is_connected: bool
    lacking: Sequence[Lacking]
    grant_address: str | None
    filled: Filled = field(default_factory=Filled)
    questions = QUESTIONS

    @property
    def address(self) -> str:
        """The address of the form."""
        return f"/stores/{self.store.id}/launch/answers"

    @property
    def scopes(self) -> Sequence[str]:
        """Every permission that is missing, once."""
        return sorted({scope for one in self.lacking for scope in one.scopes})

    def said(self, words: str) -> str:
        """Say words of the form in the reader's language."""
        return _(words)


def lacking(granted: Sequence[str]) -> Sequence[Lacking]:
    """Name the milestones that a grant does not cover, and what each lacks (rules/launch#retries)."""
    found = ((one, _missing(one, granted)) for one in PLAYBOOK.milestones.values())
    return [Lacking(title=one.title, scopes=missing) for one, missing in found if missing]


def _missing(one: PlaybookMilestone, granted: Sequence[str]) -> Sequence[str]:
    return [scope for scope in one.scopes if not covers(granted, scope)]


def form_of(answers: Answers) -> dict[str, Any]:
    """Make the form of a launch of what was answered; raises Misfilled where a product cannot be read."""
    form: dict[str, Any] = {}
    for name, text in answers.items():
        if not text or name == "products":
            continue
        part, dot, inner = name.partition(".")
        place, key = (form.setdefault(part, {}), inner) if dot else (form, name)
        place[key] = READINGS.get(name, str)(text)
    # Without countries there is nothing to ship to, whatever it would cost.
    if "countries" not in form.get("shipping", {}):
        form.pop("shipping", None)
    form["products"] = [
        _product(line) for line in answers.get("products", "").splitlines() if line.strip()
    ]
    return form


def _codes(text: str) -> list[str]:
    return [one.strip().upper() for one in text.split(",") if one.strip()]


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() else text


READINGS: Final[Mapping[str, Callable[[str], Any]]] = {
    "country": str.upper,
    "shipping.countries": _codes,
    "pricing.marginPercent": _number,
}
"""What is not taken as it was typed."""


def _product(line: str) -> dict[str, str]:
    title, *rest = (part.strip() for part in line.split(";"))
    if not 1 <= len(rest) <= len(PARTS):
        raise Misfilled({"products": ""})
    named = dict(zip(PARTS, rest, strict=False))
    return {"title": title, **{name: value for name, value in named.items() if value}}


def answers_of(spec: Mapping[str, Any]) -> dict[str, str]:
    """Write a launch's form as it would have been typed."""
    found = dict[str, str]()
    for name, value in spec.items():
        if name == "products":
            lines = ([one["title"], one["price"], one.get("cost")] for one in value)
            found[name] = "\n".join("; ".join(filter(None, line)) for line in lines)
        elif isinstance(value, dict):
            parts = ((f"{name}.{inner}", one) for inner, one in value.items())
            found |= {
                key: ", ".join(one) if isinstance(one, list) else str(one) for key, one in parts
            }
        else:
            found[name] = str(value)
    return found


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
        spec = _spec(answers)
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
    raise NotFound("There is no such question.")


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


def _spec(answers: Answers) -> OnboardingSpec:
    """Read all answers; raises Misfilled where the first questions were left out."""
    try:
        return OnboardingSpec.model_validate(form_of(answers))
    except ValidationError as error:
        raise Misfilled(
            {forms.WHOLE: _("Something is missing. Answer the first two questions.")}
        ) from error


async def _review(store_id: str, filled: Filled | None = None) -> ReviewPage:
    row = await store_of(store_id, at_least="admin")
    answers, is_begun = await _known(store_id)
    connection = (await connections.load(service().database, [store_id]))[store_id].connection
    is_connected = connection is not None and connection.access_token is not None
    granted = connection.scopes if connection is not None and is_connected else ()
    return ReviewPage(
        store=row,
        answers=answers,
        is_begun=is_begun,
        is_connected=is_connected,
        # What the platform never told of is not guessed.
        lacking=lacking(granted) if granted else [],
        grant_address=grant_address(connection),
        filled=filled or Filled(),
    )
