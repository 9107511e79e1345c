"""Many looks are few requests, and each gets its own answer."""

from typing import Any

import pytest
from graphql import parse

from tolsey.http.clients.commerce.edits.batching import MOST_TOGETHER, batches, merged
from tolsey.http.clients.commerce.edits.way import EditDocument

PAGE = "query Page($query: String!) { pages(first: 1, query: $query) { nodes { id } } }"
FIELDS = "query F($id: ID!) { title: node(id: $id) { id } other: node(id: $id) { id } }"
SHOP = "query Shop { shop { id } }"


def look(text: str, **variables: Any) -> EditDocument:
    return EditDocument(text=text, variables=variables)


def test_looks_of_one_text_become_one_document_under_names_of_their_own() -> None:
    (batch,) = batches([look(FIELDS, id="1"), look(FIELDS, id="2")])
    assert batch.document.variables == {"id_0": "1", "id_1": "2"}
    parse(batch.document.text)
    assert "e0_title: node(id: $id_0)" in batch.document.text
    assert "e1_other: node(id: $id_1)" in batch.document.text
    data = {"e0_title": 1, "e0_other": 2, "e1_title": 3, "e1_other": 4}
    assert dict(batch.answers(data)) == {0: {"title": 1, "other": 2}, 1: {"title": 3, "other": 4}}


def test_the_same_look_is_made_once_and_one_alone_as_it_is() -> None:
    shop, page = batches([look(SHOP), look(PAGE, query="a"), look(SHOP)])
    assert (shop.document.text, shop.document.variables) == (SHOP, {})
    assert dict(shop.answers({"shop": 7})) == {0: {"shop": 7}, 2: {"shop": 7}}
    assert page.document.text == PAGE
    assert dict(page.answers({"pages": 1})) == {1: {"pages": 1}}


@pytest.mark.parametrize("count", [1, MOST_TOGETHER, MOST_TOGETHER + 1, 3 * MOST_TOGETHER])
def test_no_document_asks_for_more_than_it_may_cost(count: int) -> None:
    found = list(batches([look(PAGE, query=str(one)) for one in range(count)]))
    assert len(found) == -(-count // MOST_TOGETHER)
    assert sorted(place for one in found for some in one.places for place in some) == list(
        range(count)
    )


def test_a_merged_document_keeps_what_else_stands_in_it() -> None:
    text = "query A($id: ID!) { node(id: $id) { ...F } } fragment F on Node { id }"
    assert "fragment F on Node" in merged(text, 2)
