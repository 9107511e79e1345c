"""The API's reference as pages: all that the description says, each page light and without a script."""

import re
from collections.abc import Iterator

import orjson
import pytest

from tests.described import described
from tests.http.people import Browser
from tolsey.http.app import create_app
from tolsey.http.blueprints import BLUEPRINTS
from tolsey.http.description import reference
from tolsey.http.description.reference import Reference
from tolsey.http.description.shapes import Shapes
from tolsey.http.layout.assets import content_of
from tolsey.http.layout.templates import rendered
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge

KILOBYTES = 100
"""What issue 25 lets a page weigh, with its style."""
LINK = re.compile(r'href="(/docs/api/[^"]*)"')
ANCHOR = re.compile(r'href="#([^"]+)"')


@pytest.fixture(scope="module")
def known() -> Reference:
    return reference.read(orjson.dumps(described()))


@pytest.fixture
def edge(service: Service) -> Edge:
    return create_app(service, BLUEPRINTS, {})


def pages_of(known: Reference) -> Iterator[tuple[str, str]]:
    """Write every page, with its address."""
    groups = list(known.groups.values())
    yield "/docs/api", rendered(reference.ReferencePage(groups=groups))
    for group in groups:
        yield group.address, rendered(reference.ReferencePage(groups=groups, group=group))
        for one in group.operations:
            yield one.address, rendered(reference.described(known, group, one))


def test_every_route_has_a_page_and_each_page_is_light_and_leads_nowhere_else(
    known: Reference,
) -> None:
    pages = dict(pages_of(known))
    routes = [
        f'<h1 class="long"><code>{method.upper()} {path}</code></h1>'
        for path, operations in described()["paths"].items()
        for method in operations
    ]
    titles = [
        title for page in pages.values() for title in re.findall('<h1 class="long">.*?</h1>', page)
    ]
    assert sorted(titles) == sorted(routes)
    style = len(content_of("style"))
    for address, page in pages.items():
        assert len(page.encode()) + style < KILOBYTES * 1_000, address
        assert "<script" not in page, address
        assert [one for one in LINK.findall(page) if one not in pages] == [], address
        assert [one for one in ANCHOR.findall(page) if f'id="{one}"' not in page] == [], address


def test_a_page_says_who_may_call_what_is_sent_and_what_is_answered(known: Reference) -> None:
    group = known.groups["stores"]
    made = next(one for one in group.operations if one.id == "create_store")
    page = rendered(reference.described(known, group, made))
    for said in (
        "Whoever is signed in",
        "Idempotency-Key",
        "maxLength 255",
        '<a href="#StoreBody">StoreBody</a>',
        "<code>organizationId</code>",
        '<th scope="row">201</th>',
        "409 Conflict",
        '<a href="#StoreAnswer">StoreAnswer</a>',
        "date-time",
        'href="/docs/codes"',
    ):
        assert said in page, said


def test_a_shape_that_holds_itself_and_two_of_one_name_are_each_written_once() -> None:
    tree = {"type": "object", "properties": {"below": {"$ref": "#/components/schemas/Tree"}}}
    shapes = Shapes({"Tree": tree})
    other = {"type": "object", "title": "Tree", "properties": {"age": {"type": "integer"}}}
    array = {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}
    assert "".join(word.text for word in shapes.type_of(array, "x")) == "[Tree]"
    assert "".join(word.text for word in shapes.type_of(other, "x")) == "Tree 2"
    assert [(one.name, [line.name for line in one.fields]) for one in shapes.met()] == [
        ("Tree", ["below"]),
        ("Tree 2", ["age"]),
    ]


async def test_a_route_is_found_by_words_and_what_is_not_there_is_404(browser: Browser) -> None:
    reader = browser()
    assert 'href="/docs/api/selling"' in (await reader.get("/docs/api")).text
    found = (await reader.get("/docs/api", params={"q": "POST  sell/listings"})).text
    assert 'href="/docs/api/selling/create_listing"' in found
    assert 'href="/docs/api/selling"' not in found
    none = (await reader.get("/docs/api", params={"q": "<script>"})).text
    assert "None of" in none
    assert "<script>" not in none
    page = await reader.get("/docs/api/selling/create_listing")
    assert page.status_code == 200, page.text
    policy = page.headers["content-security-policy"]
    assert "style-src 'self'" in policy
    assert "script-src" not in policy
    for path in ("nothing", "selling/nothing", "stores/create_listing", "selling/%2e%2e"):
        answer = await reader.get(f"/docs/api/{path}")
        assert answer.status_code == 404, answer.text
