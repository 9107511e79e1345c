"""An affiliate brings organizations in, each once."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.http.people import PASSWORD, Browser, Clock, Person, SignUp, add_member, settings_of
from tests.payees import account, verified
from tolsey.actors.organization.agreements.affiliates import AFFILIATE_BONUS, AlreadyRedeemed
from tolsey.actors.organization.agreements.messages import RedeemAffiliateCode, Redeemed
from tolsey.actors.organization.messages import organization
from tolsey.http.billing.affiliate import ALPHABET, CODE_CHARACTERS
from tolsey.http.web.edge import Edge
from tolsey.runtime.errors import Duplicate
from tolsey.service import Running, running
from tolsey.storage.database import Database
from tolsey.storage.money import affiliates, payouts

CODES, REDEEM = "/api/affiliate/codes", "/api/affiliate/redeem"


@pytest.fixture
async def live(database_url: str, redis_url: str, clock: Clock) -> AsyncIterator[Running]:
    settings = settings_of(
        database_url=database_url, redis_url=redis_url, payments_secret_key="sk_test_unused"
    )
    async with running(settings, clock=clock, timers=False) as started:
        yield started


@pytest.fixture
def database(live: Running) -> Database:
    return live.service.database


@pytest.fixture
def edge(live: Running) -> Edge:
    assert isinstance(live.app, Edge)
    return live.app


@pytest.fixture
async def ann(database: Database, sign_up: SignUp, clock: Clock) -> Person:
    """Ann, an affiliate."""
    person = await sign_up("ann@example.com")
    await payouts.opened(database, person.user_id, verified(), clock())
    return person


@pytest.fixture
async def bob(sign_up: SignUp) -> Person:
    return await sign_up("bob@example.com")


@pytest.fixture
async def code(ann: Person) -> str:
    return str((await created(ann))["code"])


async def created(person: Person) -> dict[str, Any]:
    answer = await person.browser.post(CODES)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def redeem(person: Person, code: str, key: str = "", **body: Any) -> httpx.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return await person.browser.post(REDEEM, json={"code": code, **body}, headers=headers)


async def outcome(person: Person, code: str, **body: Any) -> tuple[int, Any]:
    answer = await redeem(person, code, **body)
    return answer.status_code, answer.json().get("code")


async def credits(person: Person) -> dict[str, Any]:
    query = {"organizationId": person.organization_id}
    answer = await person.browser.get("/api/credits", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def granted(database: Database) -> int:
    """Sum up what all organizations were ever granted."""
    (row,) = await database.fetch("SELECT coalesce(sum(amount), 0)::bigint AS n FROM credit_lots")
    return int(row["n"])


async def another_organization(person: Person) -> str:
    answer = await person.browser.post("/api/organizations", json={"name": "Another"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_an_organization_is_granted_a_bonus_and_the_affiliate_sees_it(
    database: Database, ann: Person, bob: Person
) -> None:
    made = await created(ann)
    assert len(made["code"]) == CODE_CHARACTERS
    assert set(made["code"]) <= set(ALPHABET)
    answer = await redeem(bob, made["code"])
    assert answer.status_code == 201, answer.text
    said = answer.json()
    assert (said["organizationId"], said["credits"]) == (bob.organization_id, AFFILIATE_BONUS)
    assert said["available"] == AFFILIATE_BONUS
    (grant,) = (await credits(bob))["grants"]
    assert (grant["kind"], grant["amount"]) == ("bonus", AFFILIATE_BONUS)
    assert grant["id"] == f"affiliate:{bob.organization_id}"
    assert grant["expiresAt"][:4] == str(int(grant["grantedAt"][:4]) + 1)
    listed = (await ann.browser.get(CODES)).json()
    assert [(one["code"], one["redemptions"]) for one in listed["items"]] == [(made["code"], 1)]
    rows = await database.fetch(
        "SELECT subject, organization_id, actor, metadata->>'affiliate' AS affiliate"
        " FROM audit_log WHERE event = 'affiliate.redeemed'"
    )
    assert [tuple(row) for row in rows] == [
        (said["id"], bob.organization_id, bob.user_id, ann.user_id)
    ]


async def test_a_code_is_read_however_it_is_typed(bob: Person, code: str) -> None:
    typed = f" {code[:5]}-{code[5:]} ".lower()
    assert (await redeem(bob, typed)).status_code == 201


async def test_an_affiliate_needs_a_verified_account(
    database: Database, bob: Person, clock: Clock
) -> None:
    for _ in range(2):
        answer = await bob.browser.post(CODES)
        assert (answer.status_code, answer.json()["code"]) == (403, "payout_account_required")
        assert answer.json()["begin"].endswith("/api/payouts/account")
        restricted = verified("acct_bob", past_due=("individual.address",))
        await payouts.opened(database, bob.user_id, restricted, clock())
    assert await database.fetch("SELECT FROM affiliate_codes") == []


async def test_a_redemption_whose_answer_was_lost_is_answered_and_not_granted_again(
    database: Database, bob: Person, code: str
) -> None:
    first = await redeem(bob, code, "one")
    again = await redeem(bob, code, "one")
    assert first.json() == again.json()
    await database.execute("UPDATE idempotency_keys SET answer = NULL, locked_until = NULL")
    lost = await redeem(bob, code, "one")
    assert (lost.status_code, lost.json()) == (201, first.json())
    assert await granted(database) == AFFILIATE_BONUS


async def test_an_organization_redeems_one_code_ever(
    database: Database, ann: Person, bob: Person, code: str, sign_up: SignUp
) -> None:
    assert (await redeem(bob, code)).status_code == 201
    other = (await created(ann))["code"]
    assert await outcome(bob, code) == (409, "already_redeemed")
    carol = await sign_up("carol@example.com")
    await add_member(database, bob.organization_id, carol.email, "admin")
    of_bobs = {"organizationId": bob.organization_id}
    assert await outcome(carol, other, **of_bobs) == (409, "already_redeemed")
    assert await granted(database) == AFFILIATE_BONUS


async def test_a_person_redeems_once_for_whichever_organization(
    database: Database, bob: Person, code: str
) -> None:
    mine = {"organizationId": bob.organization_id}
    another = {"organizationId": await another_organization(bob)}
    assert await outcome(bob, code) == (422, "invalid_request")  # which of the two is not said
    assert (await redeem(bob, code, **another)).status_code == 201
    assert await outcome(bob, code, **mine) == (409, "already_redeemed")
    assert await granted(database) == AFFILIATE_BONUS


async def test_of_redemptions_at_once_one_is_granted(
    database: Database, bob: Person, code: str, sign_up: SignUp
) -> None:
    carol = await sign_up("carol@example.com")
    await add_member(database, bob.organization_id, carol.email, "admin")
    of_bobs = {"organizationId": bob.organization_id}
    of_another = {"organizationId": await another_organization(bob)}
    answers = await asyncio.gather(
        redeem(bob, code, **of_bobs),
        redeem(bob, code, **of_another),
        redeem(carol, code, **of_bobs),
    )
    statuses = sorted(answer.status_code for answer in answers)
    # Bob's for another organization and Carol's for Bob's are two people and two organizations.
    assert statuses in ([201, 409, 409], [201, 201, 409])
    rows = await database.fetch("SELECT organization_id, user_id FROM affiliate_redemptions")
    assert len({row["organization_id"] for row in rows}) == len(rows) == statuses.count(201)
    assert len({row["user_id"] for row in rows}) == len(rows)
    assert await granted(database) == AFFILIATE_BONUS * len(rows)


async def test_a_person_redeems_once_even_for_two_organizations_in_one_commit(
    live: Running, database: Database, bob: Person, code: str, clock: Clock
) -> None:
    """Both turns see that nothing was redeemed; the row that only one can write decides."""
    to = [organization(bob.organization_id), organization(await another_organization(bob))]
    answers = await asyncio.gather(
        *(
            live.service.runtime.ask(
                one,
                RedeemAffiliateCode(
                    redemption_id=f"redemption_{n}", code=code, user_id=bob.user_id, at=clock()
                ),
            )
            for n, one in enumerate(to)
        ),
        return_exceptions=True,
    )
    assert [isinstance(answer, Redeemed) for answer in answers].count(True) == 1
    refused = next(answer for answer in answers if not isinstance(answer, Redeemed))
    assert isinstance(refused, AlreadyRedeemed | Duplicate), refused
    assert await granted(database) == AFFILIATE_BONUS


async def test_nobody_brings_in_themselves(
    database: Database, ann: Person, bob: Person, code: str
) -> None:
    assert await outcome(ann, code) == (403, "own_code")
    await add_member(database, bob.organization_id, ann.email, "member")
    assert await outcome(bob, code) == (403, "own_organization")
    assert await granted(database) == 0


async def test_a_code_is_redeemed_for_an_organization_that_one_runs(
    database: Database, bob: Person, code: str, sign_up: SignUp
) -> None:
    carol = await sign_up("carol@example.com")
    of_bobs = {"organizationId": bob.organization_id}
    foreign = await redeem(carol, code, **of_bobs)
    absent = await redeem(carol, code, organizationId="org_0")
    assert foreign.status_code == absent.status_code == 404
    await add_member(database, bob.organization_id, carol.email, "member")
    assert await outcome(carol, code, **of_bobs) == (403, "forbidden")
    assert await granted(database) == 0


@pytest.mark.parametrize("leaving", ["banned = true", "deletion_requested_at = now()"])
async def test_codes_that_were_never_made_and_of_who_is_gone_are_unknown(
    database: Database, ann: Person, bob: Person, code: str, leaving: str
) -> None:
    never = await redeem(bob, "BCDFGHJKLM")
    await database.execute(f"UPDATE users SET {leaving} WHERE id = $1", ann.user_id)  # noqa: S608 - a constant
    gone = await redeem(bob, code)
    assert (never.status_code, never.json()["code"]) == (404, "not_found")
    assert never.json()["detail"] == gone.json()["detail"]
    assert gone.status_code == 404
    assert await granted(database) == 0


async def test_a_person_tries_three_times_an_hour(bob: Person, code: str) -> None:
    for wrong in ("BBBBBBBBBB", "CCCCCCCCCC", "DDDDDDDDDD"):
        assert (await redeem(bob, wrong)).status_code == 404
    assert await outcome(bob, code) == (429, "too_many_requests")


async def test_an_affiliate_has_so_many_codes_and_sees_their_own_page_by_page(
    database: Database, ann: Person, bob: Person, clock: Clock
) -> None:
    await payouts.opened(database, bob.user_id, verified("acct_bob"), clock())
    made = [await created(ann) for _ in range(affiliates.CODES_PER_PERSON)]
    full = await ann.browser.post(CODES)
    assert (full.status_code, full.json()["code"]) == (409, "too_many_codes")
    await created(bob)
    first = (await ann.browser.get(CODES, params={"limit": 15})).json()
    rest = (await ann.browser.get(CODES, params={"cursor": first["nextCursor"]})).json()
    assert [one["code"] for one in (*first["items"], *rest["items"])] == [
        one["code"] for one in reversed(made)
    ]


async def test_a_code_whose_answer_was_lost_is_the_same_again(
    database: Database, ann: Person
) -> None:
    headers = {"Idempotency-Key": "one"}
    first = await ann.browser.post(CODES, headers=headers)
    await database.execute("UPDATE idempotency_keys SET answer = NULL, locked_until = NULL")
    again = await ann.browser.post(CODES, headers=headers)
    assert (again.status_code, again.json()) == (201, first.json())
    assert len(await database.fetch("SELECT FROM affiliate_codes")) == 1


async def test_bonuses_expire_after_twelve_months(bob: Person, code: str, clock: Clock) -> None:
    await redeem(bob, code)
    clock.advance(timedelta(days=364))
    login = {"email": bob.email, "password": PASSWORD}  # the session is long over
    assert (await bob.browser.post("/api/auth/login", json=login)).status_code == 200
    assert (await credits(bob))["balance"] == AFFILIATE_BONUS
    clock.advance(timedelta(days=2))
    assert (await credits(bob))["balance"] == 0


async def test_codes_are_for_who_is_signed_in(browser: Browser) -> None:
    stranger = browser()
    assert (await stranger.post(CODES)).status_code == 401
    assert (await stranger.get(CODES)).status_code == 401
    assert (await stranger.post(REDEEM, json={"code": "BCDFGHJKLM"})).status_code == 401


class TestWithoutAProcessor:
    """The service is given no key."""

    @pytest.fixture
    async def live(self, database_url: str, redis_url: str, clock: Clock) -> AsyncIterator[Running]:
        settings = settings_of(database_url=database_url, redis_url=redis_url)
        async with running(settings, clock=clock, timers=False) as started:
            yield started

    async def test_who_has_no_account_is_told_the_variable(
        self, database: Database, bob: Person, clock: Clock
    ) -> None:
        for _ in range(2):
            answer = await bob.browser.post(CODES)
            assert (answer.status_code, answer.json()["code"]) == (503, "missing_credential")
            assert answer.json()["variable"] == "PAYMENTS_SECRET_KEY"
            await payouts.opened(database, bob.user_id, account("acct_bob"), clock())
