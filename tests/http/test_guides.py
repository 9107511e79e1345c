"""The documentation as the service shows it."""

import re
from pathlib import Path

import httpx
import pytest

from tests.http.people import Browser
from tolsey.http.app import create_app
from tolsey.http.description import guides
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def edge(service: Service) -> Edge:
    return create_app(service, [guides.routes], {})


@pytest.fixture
async def reader(browser: Browser) -> httpx.AsyncClient:
    return browser()


async def test_every_document_of_a_clone_is_listed_and_shown(reader: httpx.AsyncClient) -> None:
    listed = (await reader.get("/docs")).text
    for path in DOCS.rglob("*.md"):
        slug = str(path.relative_to(DOCS)).removesuffix(".md").replace("api", "api-guide", 1)
        slug = slug if path.name == "api.md" else str(path.relative_to(DOCS)).removesuffix(".md")
        assert f'href="/docs/{slug}"' in listed
        page = await reader.get(f"/docs/{slug}")
        assert page.status_code == 200, slug
        title = path.read_text().splitlines()[0].removeprefix("# ")
        assert f"<title>{title}" in page.text


async def test_the_list_of_documents_is_there_before_any_is_written(
    reader: httpx.AsyncClient,
) -> None:
    """Each is written for who asks for it first; nobody waits for all of them."""
    guides.guide_of.cache_clear()
    assert (await reader.get("/docs")).status_code == 200
    assert guides.guide_of.cache_info().currsize == 0
    for slug in ("start", "start", "nothing"):
        await reader.get(f"/docs/{slug}")
    assert guides.guide_of.cache_info().currsize == 1


async def test_links_between_documents_lead_to_pages_and_headings(
    reader: httpx.AsyncClient,
) -> None:
    wrong = []
    for slug in guides.titles():
        page = (await reader.get(f"/docs/{slug}")).text
        for address in re.findall(r"<article.*</article>", page, re.DOTALL):
            for path, anchor in re.findall(r'href="(/docs/[^"#]*)(?:#([^"]*))?"', address):
                if path == "/docs/api":
                    continue
                there = await reader.get(path)
                if there.status_code != 200 or (anchor and f'id="{anchor}"' not in there.text):
                    wrong.append(f"{slug}: {path}#{anchor}")
    assert wrong == []


async def test_what_a_document_says_as_html_is_text_and_nothing_else_is_read(
    reader: httpx.AsyncClient,
) -> None:
    assert "<script" not in str(guides._guide("x.md", "# A\n\n<script>alert(1)</script>").text)
    for slug in ("../pyproject", "%2e%2e/README", "operate/../../README", "start.md", "nothing"):
        assert (await reader.get(f"/docs/{slug}")).status_code == 404
