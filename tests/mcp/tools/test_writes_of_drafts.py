"""Collections and pages that an agent drafts: seen by nobody before a person says so, and never edited after."""

from typing import Any

import pytest

from tests.mcp.tools.shop import Counter, answered, opened
from tests.mcp.tools.two_stores import TwoStores, refused
from tolsey.http.answers.operators.operations import OperationAnswer
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.content import Collection, ContentPage
from tolsey.storage.commerce import agent_operations

pytestmark = pytest.mark.anyio

WORDS = {"title": "About us", "body_html": "<p>We weave.</p>"}


@pytest.fixture
async def counter(two_stores: TwoStores, platform: Platform) -> Counter:
    return await opened(two_stores, platform)


@pytest.fixture(params=["collection", "page"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def saved(counter: Counter, kind: str, key: str, **more: Any) -> dict[str, Any]:
    call = {"idempotency_key": key, "handle": "about-us", **more}
    return answered(await counter.agent.call(f"save_{kind}", **call))


async def made(counter: Counter, kind: str, key: str, **more: Any) -> dict[str, Any]:
    plan = await saved(counter, kind, key, **more, dry_run=True)
    if plan["status"] == "rejected":
        return plan
    return await saved(counter, kind, key, **more, plan_token=plan["plan_token"])


def the_draft(counter: Counter, kind: str) -> Any:
    kept = counter.shop.collections if kind == "collection" else counter.shop.pages
    (found,) = kept.values()
    return found


def text_of(draft: Collection | ContentPage) -> str:
    return draft.description_html if isinstance(draft, Collection) else draft.body


def publish(counter: Counter, draft: Collection | ContentPage) -> None:
    if isinstance(draft, Collection):
        draft.channels = 1
    else:
        draft.published_at = counter.platform.now()


def is_seen(draft: Collection | ContentPage) -> bool:
    return bool(draft.channels if isinstance(draft, Collection) else draft.published_at)


async def test_a_draft_is_new_once_and_seen_by_nobody(counter: Counter, kind: str) -> None:
    answer = await counter.agent.call(
        f"save_{kind}", idempotency_key="key-00001", handle="about-us", **WORDS
    )
    assert "plan_required" in refused(answer)
    done = await made(counter, kind, "key-00001", **WORDS)
    draft = the_draft(counter, kind)
    assert (done["status"], done["before"]) == ("applied", {kind: None})
    assert done["after"] == {kind: {"id": str(draft.id), "is_published": False, **WORDS}}
    assert (draft.handle, text_of(draft)) == ("about-us", WORDS["body_html"])
    assert not is_seen(draft)
    told = await made(counter, kind, "key-00002", body_html="x", handle="another")
    assert (told["status"], told["code"]) == ("rejected", "title_required")


async def test_a_draft_is_edited_and_put_back(counter: Counter, kind: str) -> None:
    await made(counter, kind, "key-00001", **WORDS)
    done = await made(counter, kind, "key-00002", body_html="<p>We knit.</p>")
    draft = the_draft(counter, kind)
    assert (draft.title, text_of(draft)) == ("About us", "<p>We knit.</p>")
    kept = await agent_operations.find(
        counter.two_stores.database, counter.two_stores.ann.store_id, done["operation_id"]
    )
    assert kept is not None
    undo = (OperationAnswer.of_edit(kept).result or {})["undo"]
    assert undo["tool"] == f"save_{kind}"
    await made(counter, kind, "key-00003", **undo["arguments"])
    assert text_of(draft) == WORDS["body_html"]


async def test_what_buyers_see_is_never_edited(counter: Counter, kind: str) -> None:
    await made(counter, kind, "key-00001", **WORDS)
    draft = the_draft(counter, kind)
    plan = await saved(counter, kind, "key-00002", title="Mine", dry_run=True)
    publish(counter, draft)
    told = await made(counter, kind, "key-00003", title="Mine")
    assert (told["status"], told["code"]) == ("rejected", "published")
    late = await saved(counter, kind, "key-00002", title="Mine", plan_token=plan["plan_token"])
    assert (late["status"], late["code"]) == ("rejected", "version_changed")
    assert draft.title == "About us"


async def test_a_draft_whose_answer_was_lost_is_found(counter: Counter, kind: str) -> None:
    plan = await saved(counter, kind, "key-00001", **WORDS, dry_run=True)
    counter.platform.faults.lose()
    told = await saved(counter, kind, "key-00001", **WORDS, plan_token=plan["plan_token"])
    assert (told["status"], counter.platform.admin.mutations) == ("applied", 1)


@pytest.mark.parametrize("scope", ["write_content", "write_online_store_pages", "write_themes"])
async def test_either_scope_of_pages_writes_them(
    two_stores: TwoStores, platform: Platform, scope: str
) -> None:
    counter = await opened(two_stores, platform, ("read_orders", "read_content", scope))
    call = {"idempotency_key": "key-00001", "handle": "about-us", **WORDS, "dry_run": True}
    answer = await counter.agent.call("save_page", **call)
    if scope == "write_themes":
        assert "missing_scope" in refused(answer)
    else:
        assert answered(answer)["status"] == "planned"
