"""People invite, join, change and remove each other without a script."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.http.people import PASSWORD, add_member
from tests.pages.chromium import Page
from tests.pages.conftest import ServedSite
from tests.pages.test_badge import READABLE, contrast
from tests.pages.test_billing import TEXTS
from tests.pages.test_gallery import UNNAMED
from tolsey.http.people.member_pages import PART

TOKEN = re.compile(r"/invitations/invite_[\w-]{43}")
BOB = "bob@example.com"
NAME = "Ann's <b>Ceramics</b>"


async def signed_up(client: httpx.AsyncClient, email: str) -> dict[str, Any]:
    body = {"email": email, "password": PASSWORD, "organizationName": NAME}
    made = await client.post("/api/auth/signup", json=body)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


@pytest.fixture
async def bob(live_site: ServedSite) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=live_site.url, headers={"Origin": live_site.url}
    ) as client:
        yield client


async def invited(visitor: httpx.AsyncClient, email: str = BOB, role: str = "admin") -> str:
    """Sign ann up and have her invite someone; answer the path that the mail leads to."""
    made = await signed_up(visitor, "ann@example.com")
    id = made["organization"]["id"]
    form = {"organizationId": id, "email": email, "role": role}
    sent = await visitor.post("/people/invite", data=form)
    assert sent.headers["location"] == f"/people?organizationId={id}&done=invited"
    return await latest(visitor)


async def latest(visitor: httpx.AsyncClient) -> str:
    """Open the latest mail of this machine, and tell where it leads."""
    found = re.search(r'href="(/mail/mail_\w+)"', (await visitor.get("/mail")).text)
    assert found
    link = TOKEN.search((await visitor.get(found[1])).text)
    assert link
    return link[0]


async def test_a_new_person_joins_from_the_mail_in_a_browser(
    live_site: ServedSite, page: Page, visitor: httpx.AsyncClient
) -> None:
    path = await invited(visitor)
    await page.open(live_site.url + path, width=390)
    assert await page.text("h1") == f"Join {NAME}"
    assert "ann@example.com invites you." in await page.text("main")
    await page.click("main a.button")  # Create your account
    assert await page.read("document.querySelector('#email').value") == BOB
    await page.write("#password", PASSWORD)
    await page.write("#organizationName", "Bob's")
    await page.click("main button")
    assert await page.address() == path
    await page.click("main button")  # Join
    assert (await page.address()).startswith("/people?")
    assert "You belong here now." in await page.text("main")
    assert BOB in await page.text("main")
    assert "(you)" in await page.text("main")
    assert page.problems == []


async def test_who_is_signed_in_as_another_is_told_and_led_to_sign_in(
    visitor: httpx.AsyncClient, bob: httpx.AsyncClient
) -> None:
    path = await invited(visitor)
    shown = await visitor.get(path)
    assert "You are signed in as <bdi>ann@example.com</bdi>" in shown.text
    assert f"{path}/accept" not in shown.text
    refused = await visitor.post(f"{path}/accept")
    assert refused.status_code == 403
    assert "This invitation was sent to another email address." in refused.text
    out = await visitor.post("/logout", data={"next": path})
    assert out.headers["location"] == f"/login?next={path}"
    form = await visitor.get(out.headers["location"])
    assert f'value="{BOB}"' in form.text

    await signed_up(bob, BOB)
    assert f"{path}/accept" in (await bob.get(path)).text
    joined = await bob.post(f"{path}/accept")
    assert joined.headers["location"].endswith("&done=joined")


async def test_who_is_signed_out_must_sign_in_to_join(
    visitor: httpx.AsyncClient, bob: httpx.AsyncClient
) -> None:
    path = await invited(visitor)
    assert (await bob.post(f"{path}/accept")).headers["location"] == "/login"
    looked = [await bob.get(path) for _ in range(2)]  # mail scanners look at links, too
    assert [one.status_code for one in looked] == [200, 200]


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("accepted", "was accepted. It works once."),
        ("expired", "older than 7 days"),
        ("withdrawn", "was withdrawn"),
        ("replaced", "Open the link of the latest mail."),
    ],
)
async def test_an_invitation_that_is_over_says_why_and_nothing_else(
    live_site: ServedSite, visitor: httpx.AsyncClient, bob: httpx.AsyncClient, way: str, said: str
) -> None:
    path = await invited(visitor)
    own = await visitor.get("/people", follow_redirects=True)
    id = own.url.params["organizationId"]
    match way:
        case "accepted":
            await signed_up(bob, BOB)
            assert (await bob.post(f"{path}/accept")).status_code == 303
        case "expired":
            live_site.clock.now = live_site.clock.now.replace(year=live_site.clock.now.year + 1)
        case "withdrawn":
            act = re.search(r'action="(/people/invitations/\w+/withdraw)"', own.text)
            assert act
            done = await visitor.post(act[1], data={"organizationId": id})
            assert done.headers["location"].endswith("&done=withdrawn")
            again = await visitor.post(act[1], data={"organizationId": id})
            assert again.status_code == 404
            assert "no longer pending" in again.text
        case _:
            form = {"organizationId": id, "email": BOB, "role": "member"}
            await visitor.post("/people/invite", data=form)
    answer = await bob.get(path)
    assert answer.status_code == 410
    _, _, shown = answer.text.partition("<main")
    assert said in shown
    assert BOB not in shown
    assert "Ceramics" not in shown


async def test_an_unknown_invitation_is_a_page_that_says_so(visitor: httpx.AsyncClient) -> None:
    shown = await visitor.get("/invitations/invite_" + "A" * 43)
    assert shown.status_code == 404
    assert "Open the link in the invitation email again." in shown.text


async def test_roles_change_and_people_are_removed_and_leave(
    live_site: ServedSite, visitor: httpx.AsyncClient, bob: httpx.AsyncClient
) -> None:
    ann, made = await signed_up(visitor, "ann@example.com"), await signed_up(bob, BOB)
    id, user_id = ann["organization"]["id"], made["user"]["id"]
    await add_member(live_site.running.service.database, id, BOB, "member")
    form = {"organizationId": id}
    mine = f"/people?organizationId={id}"
    listed = await bob.get(mine)
    assert "Owners and admins invite people and change roles." in listed.text
    assert "Send the invitation" not in listed.text
    hers = f"/people/{ann['user']['id']}"
    assert (await bob.post(f"{hers}/remove", data=form)).status_code == 403
    assert (await bob.post(f"{hers}/role", data={**form, "role": "member"})).status_code == 403

    his = f"/people/{user_id}"
    assert 'value="owner"' in (await visitor.get(his, params=form)).text
    risen = await visitor.post(f"{his}/role", data={**form, "role": "admin"})
    assert risen.headers["location"] == f"{mine}&done=role"
    assert 'value="owner"' not in (await bob.get(his, params=form)).text
    wrong = await visitor.post(f"{his}/role", data={**form, "role": "king"})
    assert wrong.status_code == 422
    stays = await visitor.post(f"{hers}/role", data={**form, "role": "member"})
    assert stays.status_code == 409
    assert "must have at least one owner" in stays.text

    gone = await visitor.post(f"{his}/remove", data=form)
    assert gone.headers["location"] == f"{mine}&done=removed"
    assert (await bob.get(mine)).status_code == 404
    await add_member(live_site.running.service.database, id, BOB, "member")
    left = await bob.post(f"{his}/remove", data=form)
    arrived = await bob.get(left.headers["location"], follow_redirects=True)
    assert "You left the organization." in arrived.text


async def test_what_is_wrong_with_an_invitation_is_said_where_it_was_typed(
    visitor: httpx.AsyncClient,
) -> None:
    id = (await signed_up(visitor, "ann@example.com"))["organization"]["id"]
    form = {"organizationId": id, "email": "bob@example", "role": "member"}
    shown = await visitor.post("/people/invite", data=form)
    assert shown.status_code == 422
    assert "Enter an e-mail address, such as ann@example.com." in shown.text
    assert 'value="bob@example"' in shown.text
    for _ in range(4):
        shown = await visitor.post("/people/invite", data={**form, "email": BOB})
    assert shown.status_code == 429
    assert "Too many attempts. Try again in" in shown.text


async def test_a_foreign_page_neither_invites_nor_removes(
    live_site: ServedSite, visitor: httpx.AsyncClient
) -> None:
    path = await invited(visitor)
    for form in ("/people/invite", f"{path}/accept", "/people/usr_1/remove", "/people/usr_1/role"):
        answer = await visitor.post(form, headers={"Origin": "https://evil.example"})
        assert answer.status_code == 403, form


@pytest.mark.parametrize("width", [1280, 390])
async def test_the_pages_of_people_are_readable_and_fit(
    live_site: ServedSite, page: Page, visitor: httpx.AsyncClient, width: int
) -> None:
    path = await invited(visitor, "a-rather-long-address-of-somebody@customs.example.com")
    await page.open(f"{live_site.url}/login?next={path}", width=width)
    await page.write("#email", "ann@example.com")
    await page.write("#password", PASSWORD)
    await page.click("main button")
    person = "/people/" + (await visitor.get("/api/auth/session")).json()["user"]["id"]
    organization = (await visitor.get("/people")).headers["location"].partition("?")[2]
    for address in (path, "/people", f"{person}?{organization}"):
        await page.open(live_site.url + address, width=width)
        texts = await page.read(TEXTS)
        assert [one for one in texts if contrast(one[1], one[2]) < READABLE] == []
        assert await page.read("document.documentElement.scrollWidth") == width
        assert await page.read(UNNAMED) == []
    assert page.problems == []


async def test_a_large_organization_is_read_page_by_page_and_each_of_its_people_opens(
    live_site: ServedSite, visitor: httpx.AsyncClient
) -> None:
    own = (await signed_up(visitor, "ann@example.com"))["organization"]["id"]
    database = live_site.running.service.database
    await database.execute(
        "INSERT INTO users (id, email, password_hash)"
        " SELECT 'usr_z' || n, 'z' || n || '@example.com', '' FROM generate_series(1001, 1120) n"
    )
    await database.execute(
        "INSERT INTO members (organization_id, user_id, role)"
        " SELECT $1, 'usr_z' || n, 'member' FROM generate_series(1001, 1120) n",
        own,
    )
    seen: list[str] = []
    address = f"/people?organizationId={own}"
    while address:
        page = (await visitor.get(address)).text
        shown = re.findall(r"<bdi>([\w.]+@example\.com)</bdi>(?: <span|</th>)", page)
        assert 0 < len(shown) <= PART, page
        seen += shown
        following = re.search(r'class="pager quiet"><a href="([^"]+)"', page)
        address = following[1].replace("&amp;", "&") if following else ""
    assert sorted(seen) == sorted(
        ["ann@example.com", *(f"z{n}@example.com" for n in range(1001, 1121))]
    )
    last = await visitor.get(f"/people/usr_z1120?organizationId={own}")
    assert last.status_code == 200, last.text
    wrong = await visitor.get(f"/people?organizationId={own}&cursor=%00")
    assert wrong.status_code == 400, wrong.text
