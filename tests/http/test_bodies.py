"""Rules that hold for the bodies and forms of all routes."""

import importlib
import pkgutil
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, get_args

import pytest
from quart import formparser

from tests.http.people import Browser, Person, SignUp, made_operator, settings_of
from tests.http.test_tenants import address_of, body_of, routes_of, things_of
from tolsey import http as folder
from tolsey.http.layout.forms import count_fields
from tolsey.http.oauth import parameters
from tolsey.http.web.access import Access
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.edge import Edge
from tolsey.service import Running, running

READ = {"GET", "DELETE"}
REASONS_THEMSELVES = {
    "/api/integrations/commerce/rehash-identities",
    "/api/admin/intelligence/scan",
    "/api/admin/devstore-pool",
}
"""Acts whose body the specification gives, with no reason in it: there is only one to do them."""


@pytest.fixture
async def live(database_url: str, redis_url: str) -> AsyncIterator[Running]:
    settings = settings_of(database_url=database_url, redis_url=redis_url)
    async with running(settings, timers=False) as started:
        yield started


@pytest.fixture
def edge(live: Running) -> Edge:
    assert isinstance(live.app, Edge)
    return live.app


@pytest.fixture
async def operator(live: Running, sign_up: SignUp) -> Person:
    return await made_operator(live.service.database, await sign_up("operator@example.com"))


async def test_no_operator_acts_without_saying_why(
    live: Running, edge: Edge, operator: Person
) -> None:
    things, acts = await things_of(operator), 0
    for method, rule, access in routes_of(edge):
        if access is not Access.ADMINISTRATOR or method in READ or rule in REASONS_THEMSELVES:
            continue
        path = address_of(rule, things)
        for wrong in ({}, {"reason": ""}, {"reason": " "}):
            body = {key: value for key, value in body_of(rule, things).items() if key != "reason"}
            answer = await operator.browser.request(method, path, json={**body, **wrong})
            assert answer.status_code == 422, f"{method} {rule} with {wrong}: {answer.text}"
            assert "reason" in {one["field"] for one in answer.json()["errors"]}, rule
        silent = await operator.browser.request(method, path)
        assert silent.status_code == 422, f"{method} {rule}: {silent.text}"
        assert silent.json()["errors"] == [{"field": "", "message": "must be a JSON object"}]
        acts += 1
    assert acts >= 9
    rows = await live.service.database.fetch("SELECT FROM audit_log WHERE event LIKE 'admin.%'")
    assert rows == []


def multipart(fields: int) -> tuple[bytes, str]:
    part = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
    return part * fields + b"--b--\r\n", "multipart/form-data; boundary=b"


def urlencoded(fields: int) -> tuple[bytes, str]:
    return b"&".join([b"a=1"] * fields), "application/x-www-form-urlencoded"


@pytest.mark.parametrize("fields", [0, 1, 2, 1_000, 1_001])
@pytest.mark.parametrize("written", [urlencoded, multipart])
def test_the_fields_of_a_form_are_counted_in_its_bytes(
    written: Callable[[int], tuple[bytes, str]], fields: int
) -> None:
    body, content_type = written(fields)
    mimetype, _, boundary = content_type.partition("; boundary=")
    assert count_fields(body, mimetype, boundary) == fields


async def test_a_form_of_100_000_fields_reaches_no_parser(
    edge: Edge, operator: Person, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(*args: Any, **kwargs: Any) -> Any:
        parsed.append(args)
        return []

    parsed: list[Any] = []
    for parser in ("parse_qsl", "MultiPartParser"):
        monkeypatch.setattr(formparser, parser, parse)
    monkeypatch.setattr(parameters, "parse_qsl", parse)
    things, stranger, forms = await things_of(operator), browser(), 0
    large = b"&" * 99_999, "application/x-url-encoded"
    for method, rule, access in routes_of(edge):
        if method != "POST" or rule.startswith("/api/") or rule == "/oauth/register":
            continue
        for body, content_type in (urlencoded(100_000), (multipart(9_000)), large):
            for who in (operator.browser, stranger):
                answer = await who.post(
                    address_of(rule, things), content=body, headers={"Content-Type": content_type}
                )
                # The endpoints for programs refuse a form of more than 16 KiB.
                expected = {400, 413} if rule.startswith("/oauth/") else {400}
                assert answer.status_code in expected, (rule, access, answer.status_code)
        forms += 1
    assert forms >= 9
    assert parsed == []


async def test_a_form_of_1_000_fields_is_read_and_of_one_more_is_refused(
    operator: Person,
) -> None:
    for written in (urlencoded, multipart):
        for fields, status in ((1_000, 422), (1_001, 400)):
            body, content_type = written(fields)
            sent = {"Content-Type": content_type}
            answer = await operator.browser.post("/login", content=body, headers=sent)
            assert answer.status_code == status, (written, fields)
    assert "at most 1,000 fields" in answer.text


async def test_no_page_fails_on_a_form_that_holds_a_nul(edge: Edge, operator: Person) -> None:
    things, forms = await things_of(operator), 0
    for method, rule, access in routes_of(edge):
        if method != "POST" or rule.startswith(("/api/", "/oauth/")):
            continue
        assert access in {Access.PAGE, Access.PUBLIC}, rule
        for form in ({"organizationId": "\0"}, {"email": "\0", "next": "\0"}, {"a\0": "b"}):
            answer = await operator.browser.post(address_of(rule, things), data=form)
            assert answer.status_code == 422, f"{rule}: {answer.status_code}"
            assert "could not be read" in answer.text
        forms += 1
    assert forms >= 9


def test_an_integer_of_a_body_is_one_in_json_too() -> None:
    for module in pkgutil.walk_packages(folder.__path__, f"{folder.__name__}."):
        importlib.import_module(module.name)
    loose = [
        f"{model.__name__}.{name}"
        for model in models(ApiModel)
        if not model.__name__.endswith("Query")  # an address has only texts
        for name, field in model.model_fields.items()
        if int in (field.annotation, *get_args(field.annotation))
        and not any(getattr(one, "strict", False) for one in said(field))
    ]
    assert loose == []


def models(base: type[ApiModel]) -> Iterator[type[ApiModel]]:
    for model in base.__subclasses__():
        yield model
        yield from models(model)


def said(field: Any) -> Iterator[Any]:
    """List what is said of a field, within an optional one too."""
    yield from field.metadata
    for one in get_args(field.annotation):
        yield from getattr(one, "__metadata__", ())
