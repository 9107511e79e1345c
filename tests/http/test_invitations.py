"""Nobody is put into an organization unasked, and nobody learns who has an account."""

import asyncio
import re
from datetime import timedelta
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from tests.http.people import NOON, Browser, Clock, Person, SignUp, add_member, settings_of
from tolsey.http.app import create_app
from tolsey.http.people import auth, invitations, organizations
from tolsey.http.web import policies
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.logs import mask
from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.people import mail as mails
from tolsey.storage.people.invitations import LIFETIME, MOST_OPEN

TOKEN = re.compile(r"/invitations/(invite_[\w-]{43})$", re.MULTILINE)
BOB = "bob@example.com"


@pytest.fixture
def edge(service: Service) -> Edge:
    return create_app(service, [auth.routes, organizations.routes, invitations.routes], {})


async def invited(ann: Person, email: str = BOB, role: str = "member") -> httpx.Response:
    path = f"/api/organizations/{ann.organization_id}/members"
    return await ann.browser.post(path, json={"email": email, "role": role})


async def told(service: Service, email: str = BOB) -> list[str]:
    """Read what is written to someone, the latest first."""
    found = await mails.listed(service.database, 10, None, recipient=email)
    said = [service.mail.content(one) for one in found]
    return [one.text for one in said if one]


async def token_for(service: Service, email: str = BOB) -> str:
    """Open the latest mail to someone and take the token of its link."""
    found = TOKEN.search((await told(service, email))[0])
    assert found
    return found[1]


async def accepted(person: Person, token: str) -> httpx.Response:
    return await person.browser.post(f"/api/invitations/{token}/accept")


async def role_of(person: Person, ann: Person) -> str | None:
    shown = await person.browser.get(f"/api/organizations/{ann.organization_id}")
    found: str | None = shown.json().get("role")
    return found


async def pending(ann: Person) -> list[dict[str, Any]]:
    shown = await ann.browser.get(f"/api/organizations/{ann.organization_id}/invitations")
    assert shown.status_code == 200, shown.text
    found: list[dict[str, Any]] = shown.json()["items"]
    return found


async def audited(database: Database) -> list[tuple[str, str]]:
    rows = await database.fetch(
        "SELECT event, actor FROM audit_log WHERE event LIKE 'organization.%' ORDER BY id"
    )
    return [(row["event"], row["actor"]) for row in rows]


def refusal(answer: httpx.Response) -> tuple[int, str, str | None]:
    problem = answer.json()
    return answer.status_code, problem["code"], problem.get("state")


async def test_who_is_invited_joins_by_the_mail_and_not_before(
    sign_up: SignUp, service: Service, database: Database
) -> None:
    ann, bob = await sign_up(), await sign_up(BOB)
    answer = await invited(ann, " Bob@Example.com ", "admin")
    assert answer.status_code == 202
    said = answer.json()
    assert (said["email"], said["role"], said["invitedBy"]) == (BOB, "admin", ann.email)
    assert await role_of(bob, ann) is None
    assert await pending(ann) == [said]
    (text,) = await told(service)
    assert "Accept the invitation from ann@example.com to join Ann's on tolsey." in text

    joined = await accepted(bob, await token_for(service))
    assert (joined.status_code, joined.json()["id"]) == (200, ann.organization_id)
    assert await role_of(bob, ann) == "admin"
    assert await pending(ann) == []
    assert (await audited(database))[-3:] == [
        ("organization.member_invited", ann.user_id),
        ("organization.invitation_ended", bob.user_id),
        ("organization.member_added", bob.user_id),
    ]


async def test_an_answer_is_one_whether_or_not_an_address_has_an_account(
    sign_up: SignUp, service: Service
) -> None:
    ann, bob = await sign_up(), await sign_up(BOB)
    answers = [await invited(ann, email) for email in (bob.email, "nil@example.com")]
    assert [one.status_code for one in answers] == [202, 202]
    bodies = [one.json() for one in answers]
    assert [set(one) for one in bodies] == [set(bodies[0])] * 2
    for one in bodies:
        del one["id"], one["email"], one["createdAt"], one["expiresAt"]
    assert bodies[0] == bodies[1]
    assert len(await told(service)) == len(await told(service, "nil@example.com")) == 1


async def test_what_is_asked_of_the_database_does_not_tell_either(
    sign_up: SignUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing looks for an account by the address: so no time it takes can tell of one."""
    ann, bob = await sign_up(), await sign_up(BOB)
    asked: list[str] = []
    fetchrow = Database.fetchrow

    async def noted(self: Database, sql: str, *args: Any) -> Any:
        asked.append(sql)
        return await fetchrow(self, sql, *args)

    monkeypatch.setattr(Database, "fetchrow", noted)
    await invited(ann, bob.email)
    known, asked[:] = list(asked), []
    await invited(ann, "nil@example.com")
    assert known == asked
    assert all("FROM users WHERE email" not in sql for sql in known)


async def test_a_new_person_joins_with_the_account_they_make(
    sign_up: SignUp, service: Service
) -> None:
    ann = await sign_up()
    await invited(ann)
    bob = await sign_up(BOB)
    assert await role_of(bob, ann) is None
    assert (await accepted(bob, await token_for(service))).status_code == 200
    assert await role_of(bob, ann) == "member"


async def test_an_invitation_works_once(sign_up: SignUp, service: Service) -> None:
    ann, bob = await sign_up(), await sign_up(BOB)
    await invited(ann)
    token = await token_for(service)
    answers = await asyncio.gather(*(accepted(bob, token) for _ in range(4)))
    assert sorted(one.status_code for one in answers) == [200, 410, 410, 410]
    path = f"/api/organizations/{ann.organization_id}/members/{bob.user_id}"
    assert (await ann.browser.delete(path)).status_code == 204
    assert refusal(await accepted(bob, token)) == (410, "invitation_over", "accepted")
    assert await role_of(bob, ann) is None


async def test_a_link_without_its_mailbox_opens_nothing(
    sign_up: SignUp, service: Service, browser: Browser
) -> None:
    ann, eve = await sign_up(), await sign_up("eve@example.com")
    await invited(ann)
    token = await token_for(service)
    assert refusal(await accepted(eve, token)) == (403, "wrong_address", None)
    assert (await browser().post(f"/api/invitations/{token}/accept")).status_code == 401
    bob = await sign_up(BOB)
    assert (await accepted(bob, token)).status_code == 200


@pytest.mark.parametrize("token", ["invite_" + "A" * 43, "x", "A" * 4000])
async def test_a_made_up_token_is_none(sign_up: SignUp, token: str) -> None:
    assert refusal(await accepted(await sign_up(), token)) == (404, "not_found", None)


async def test_an_invitation_is_over_after_seven_days(
    sign_up: SignUp, service: Service, clock: Clock
) -> None:
    ann = await sign_up()
    await invited(ann)
    token = await token_for(service)
    clock.advance(LIFETIME - timedelta(seconds=1))
    assert timedelta(days=7) == LIFETIME
    assert len(await pending(ann)) == 1
    clock.advance(timedelta(seconds=1))
    bob = await sign_up(BOB)
    assert refusal(await accepted(bob, token)) == (410, "invitation_over", "expired")
    assert await pending(ann) == []
    assert (await invited(ann)).status_code == 202  # the old one is in nobody's way
    assert (await accepted(bob, await token_for(service))).status_code == 200


async def test_a_withdrawn_invitation_opens_nothing(sign_up: SignUp, service: Service) -> None:
    ann, bob = await sign_up(), await sign_up(BOB)
    made, token = (await invited(ann)).json(), await token_for(service)
    path = f"/api/organizations/{ann.organization_id}/invitations/{made['id']}"
    assert (await bob.browser.delete(path)).status_code == 404
    assert (await ann.browser.delete(path)).status_code == 204
    assert refusal(await accepted(bob, token)) == (410, "invitation_over", "withdrawn")
    (mail,) = await mails.listed(service.database, 10, None, recipient=BOB)
    assert (mail.state, mail.sealed_content) == ("given_up", None)  # it had not been sent
    assert (await ann.browser.delete(path)).status_code == 404


async def test_a_second_invitation_takes_the_first_ones_place(
    sign_up: SignUp, service: Service
) -> None:
    ann, bob = await sign_up(), await sign_up(BOB)
    await invited(ann, role="admin")
    first = await token_for(service)
    await invited(ann, role="member")
    assert refusal(await accepted(bob, first)) == (410, "invitation_over", "replaced")
    assert (await accepted(bob, await token_for(service))).status_code == 200
    assert await role_of(bob, ann) == "member"


async def test_two_who_invite_one_address_at_once_leave_one_invitation(
    sign_up: SignUp, database: Database
) -> None:
    ann, eve = await sign_up(), await sign_up("eve@example.com")
    await add_member(database, ann.organization_id, eve.email, "admin")
    eve.organization_id = ann.organization_id
    answers = await asyncio.gather(invited(ann), invited(eve))
    assert [one.status_code for one in answers] == [202, 202]
    assert len(await pending(ann)) == 1


@pytest.mark.parametrize("way", ["removed", "demoted", "banned", "deleted"])
async def test_an_invitation_ends_with_the_right_of_who_invited(
    sign_up: SignUp, service: Service, database: Database, way: str
) -> None:
    ann, eve, bob = [await sign_up(f"{name}@example.com") for name in ("ann", "eve", "bob")]
    await add_member(database, ann.organization_id, eve.email, "admin")
    await invited(Person(eve.browser, eve.user_id, ann.organization_id, eve.email))
    token = await token_for(service)
    members = f"/api/organizations/{ann.organization_id}/members"
    match way:
        case "removed":
            assert (await ann.browser.delete(f"{members}/{eve.user_id}")).status_code == 204
        case "demoted":
            body = {"email": eve.email, "role": "member"}
            assert (await ann.browser.post(members, json=body)).status_code == 200
        case "banned":
            await database.execute("UPDATE users SET banned = true WHERE id = $1", eve.user_id)
        case _:
            await database.execute(
                "UPDATE users SET deletion_requested_at = now() WHERE id = $1", eve.user_id
            )
    assert refusal(await accepted(bob, token)) == (410, "invitation_over", "withdrawn")
    assert ("organization.invitation_ended", "system") in await audited(database)


async def test_an_owner_who_is_one_no_more_makes_no_owner_by_an_earlier_invitation(
    sign_up: SignUp, service: Service, database: Database
) -> None:
    ann, eve, bob = [await sign_up(f"{name}@example.com") for name in ("ann", "eve", "bob")]
    await add_member(database, ann.organization_id, eve.email, "owner")
    there = Person(eve.browser, eve.user_id, ann.organization_id, eve.email)
    await invited(there, BOB, "owner")
    await invited(there, "cas@example.com", "member")
    body = {"email": eve.email, "role": "admin"}
    members = f"/api/organizations/{ann.organization_id}/members"
    assert (await ann.browser.post(members, json=body)).status_code == 200
    assert (await accepted(bob, await token_for(service))).status_code == 410
    assert [one["email"] for one in await pending(ann)] == ["cas@example.com"]


async def test_who_joins_while_the_inviter_is_removed_joins_or_does_not(
    sign_up: SignUp, service: Service, database: Database
) -> None:
    ann, eve, bob = [await sign_up(f"{name}@example.com") for name in ("ann", "eve", "bob")]
    there = Person(eve.browser, eve.user_id, ann.organization_id, eve.email)
    gone = f"/api/organizations/{ann.organization_id}/members"
    for _ in range(3):
        await add_member(database, ann.organization_id, eve.email, "admin")
        await invited(there)
        token = await token_for(service)
        removed, joined, _ = await asyncio.gather(
            ann.browser.delete(f"{gone}/{eve.user_id}"),
            accepted(bob, token),
            invited(there, "cas@example.com"),
        )
        assert removed.status_code == 204
        assert joined.status_code in {200, 410}
        assert (await role_of(bob, ann) == "member") is (joined.status_code == 200)
        await ann.browser.delete(f"{gone}/{bob.user_id}")


async def test_members_and_strangers_neither_invite_nor_look(
    sign_up: SignUp, database: Database
) -> None:
    ann, eve, bob = [await sign_up(f"{name}@example.com") for name in ("ann", "eve", "bob")]
    await add_member(database, ann.organization_id, eve.email, "member")
    made = (await invited(ann, "cas@example.com")).json()
    path = f"/api/organizations/{ann.organization_id}"
    for person, status in ((eve, 403), (bob, 404)):
        body = {"email": "x@example.com", "role": "member"}
        assert (await person.browser.post(f"{path}/members", json=body)).status_code == status
        assert (await person.browser.get(f"{path}/invitations")).status_code == status
        answer = await person.browser.delete(f"{path}/invitations/{made['id']}")
        assert answer.status_code == status
    own = f"/api/organizations/{bob.organization_id}/invitations/{made['id']}"
    assert (await bob.browser.delete(own)).status_code == 404
    assert [one["id"] for one in await pending(ann)] == [made["id"]]


async def test_the_token_is_in_the_mail_and_nowhere_else(
    sign_up: SignUp, service: Service, database: Database
) -> None:
    ann, bob = await sign_up(), await sign_up(BOB)
    with capture_logs() as logs:
        answer = await invited(ann)
        token = await token_for(service)
        await accepted(bob, token)
    assert token not in answer.text + str(logs)
    tables = await database.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    for table in tables:
        rows = await database.fetch(f"SELECT t::text AS row FROM {table['tablename']} t")  # noqa: S608 - our tables
        assert not any(token in row["row"] for row in rows), table
    event = mask(None, "", {"path": f"/invitations/{token}"})
    assert event["path"] == "/invitations/[masked]"


async def test_invitations_are_limited_for_each_person_and_address(sign_up: SignUp) -> None:
    ann = await sign_up()
    for _ in range(policies.INVITATIONS_OF_ONE.limit):
        assert (await invited(ann)).status_code == 202
    refused = await invited(ann)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 80_000
    for number in range(policies.INVITATIONS.limit - policies.INVITATIONS_OF_ONE.limit - 1):
        assert (await invited(ann, f"u{number}@example.com")).status_code == 202
    assert (await invited(ann, "last@example.com")).status_code == 429


async def test_so_many_invitations_wait_and_no_more(sign_up: SignUp, database: Database) -> None:
    ann = await sign_up()
    await database.execute(
        """
        INSERT INTO invitations (id, token_hash, organization_id, email, role, invited_by,
            created_at, expires_at)
        SELECT 'inv_' || n, sha256(n::text::bytea), $1, n || '@example.com', 'member', $2,
            $4::timestamptz, $4::timestamptz + interval '7 days' FROM generate_series(1, $3) n
        """,
        ann.organization_id,
        ann.user_id,
        MOST_OPEN,
        NOON,
    )
    assert refusal(await invited(ann)) == (409, "too_many_invitations", None)
    assert (await invited(ann, "7@example.com")).status_code == 202  # in place of an earlier one


async def test_pending_invitations_come_in_pages_newest_first(sign_up: SignUp) -> None:
    ann = await sign_up()
    for name in ("a", "b", "c"):
        await invited(ann, f"{name}@example.com")
    path = f"/api/organizations/{ann.organization_id}/invitations"
    first = (await ann.browser.get(path, params={"limit": 2})).json()
    query = {"limit": 2, "cursor": first["nextCursor"]}
    second = (await ann.browser.get(path, params=query)).json()
    seen = [one["email"][0] for page in (first, second) for one in page["items"]]
    assert (seen, second["nextCursor"]) == (["c", "b", "a"], None)


async def test_a_repeat_of_an_invitation_writes_one_mail(sign_up: SignUp, service: Service) -> None:
    ann = await sign_up()
    path = f"/api/organizations/{ann.organization_id}/members"
    body, headers = {"email": BOB, "role": "member"}, {"Idempotency-Key": "once"}
    answers = [await ann.browser.post(path, json=body, headers=headers) for _ in range(2)]
    assert [one.status_code for one in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    assert len(await told(service)) == 1


class TestInPublic:
    @pytest.fixture
    def settings(self) -> Settings:
        return settings_of(base_url="https://shop.example.com")

    async def test_where_nobody_could_read_the_mail_nobody_is_invited(
        self, sign_up: SignUp, database: Database
    ) -> None:
        ann = await sign_up(Origin="https://shop.example.com", Host="shop.example.com")
        ann.browser.base_url = httpx.URL("https://127.0.0.1:8000")  # where its cookie is sent
        refused = await invited(ann)
        assert refusal(refused) == (503, "missing_credential", None)
        assert refused.json()["variable"] == "MAIL_URL"
        assert not await database.fetch("SELECT FROM invitations")
