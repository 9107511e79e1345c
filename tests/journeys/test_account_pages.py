"""Somebody takes their data along, deletes their account and takes it back; chooses mails; marks what they have seen."""

import httpx

from tests.http.people import PASSWORD
from tests.journeys.conftest import Seller
from tests.journeys.strangers import browsing
from tests.journeys.test_home import PROPOSED
from tolsey.actors.mail import MailEvent, TellPeople
from tolsey.http.mail.book import MailTopic
from tolsey.http.mail.pages import CHOSEN
from tolsey.service import Running
from tolsey.storage.people import mail as mails

EMAIL = "seller@example.com"
HTML = {"Accept": "text/html"}


async def test_an_account_is_deleted_after_a_question_and_taken_back(
    live: Running, seller: Seller
) -> None:
    browser = seller.browser
    asked = await browser.get("/account/delete", headers=HTML)
    assert "Delete the account?" in asked.text
    assert (await browser.get("/", headers=HTML)).status_code == 200
    gone = await browser.post("/account/delete", headers=HTML)
    assert "It is gone for good on" in gone.text
    assert 'class="side"' not in gone.text
    assert (await browser.get("/account", headers=HTML)).status_code == 303
    wrong = await browser.post("/account/restore", data={"email": EMAIL, "password": "x" * 12})
    assert wrong.status_code == 401
    assert f'value="{EMAIL}"' in wrong.text
    right = {"email": EMAIL, "password": PASSWORD}
    restored = await browser.post("/account/restore", data=right)
    assert (restored.status_code, restored.headers["location"]) == (303, "/login")
    again = await browser.post("/account/restore", data=right)
    assert "scheduled for deletion. Sign in as usual." in again.text
    assert (await browser.post("/login", data=right)).status_code == 303


async def test_all_other_sessions_end_and_this_one_goes_on(live: Running, seller: Seller) -> None:
    async with browsing(live) as other:
        await other.post("/api/auth/login", json={"email": EMAIL, "password": PASSWORD})
        assert (await other.get("/account", headers=HTML)).status_code == 200
        ended = await seller.browser.post("/account/sessions/end-others")
        assert ended.headers["location"] == "/account/sessions?done=others"
        assert (await other.get("/account", headers=HTML)).status_code == 303
        assert (await seller.browser.get("/account", headers=HTML)).status_code == 200


async def test_never_gets_none_and_what_is_about_money_comes_all_the_same(
    live: Running, seller: Seller
) -> None:
    choices = {str(topic): "never" for topic in MailTopic}
    kept = await seller.browser.post("/account/mails", data=choices, follow_redirects=True)
    assert "It is kept so." in kept.text
    assert kept.text.count('value="never" selected') == len(CHOSEN)
    office, database = live.service.mail, live.service.database
    facts = {"shop": "a.example", "why": "uninstalled", "minor": "7900", "currency": "usd"}
    facts["nextAttempt"] = ""
    for event in (MailEvent.CONNECTION_BROKEN, MailEvent.PAYMENT_FAILED):
        await office.tell_people(
            TellPeople(event=event, organization_id=seller.organization_id, about="1", facts=facts)
        )
    written = await mails.listed(database, 10, None, recipient=EMAIL)
    assert [one.event for one in written] == [MailEvent.PAYMENT_FAILED]
    await seller.browser.post("/account/mails", data={MailTopic.STORES: "at_once"})
    await office.tell_people(
        TellPeople(
            event=MailEvent.CONNECTION_BROKEN,
            organization_id=seller.organization_id,
            about="2",
            facts=facts,
        )
    )
    written = await mails.listed(database, 10, None, recipient=EMAIL)
    assert {one.event for one in written} == {MailEvent.PAYMENT_FAILED, MailEvent.CONNECTION_BROKEN}


async def test_mails_are_in_the_language_in_which_somebody_signed_in(
    live: Running, seller: Seller
) -> None:
    async with browsing(live) as other:
        await other.post(
            "/api/auth/login",
            json={"email": EMAIL, "password": PASSWORD},
            headers={"Accept-Language": "de-CH"},
        )
    await live.service.mail.tell_people(
        TellPeople(
            event=MailEvent.CONNECTION_BROKEN,
            organization_id=seller.organization_id,
            about="1",
            facts={"shop": "a.example", "why": "uninstalled"},
        )
    )
    (mail,) = await mails.listed(live.service.database, 10, None, recipient=EMAIL)
    assert mail.subject == "a.example ist nicht mehr verbunden"


async def test_what_is_new_is_marked_until_it_has_been_seen(live: Running, seller: Seller) -> None:
    await live.service.database.execute(PROPOSED, seller.store_id)
    assert "Mark 1 as seen" in (await seller.browser.get("/", headers=HTML)).text
    seen = await seller.browser.post("/inbox/seen", follow_redirects=True, headers=HTML)
    assert "Agents ask you to decide 2 times" in seen.text
    assert "as seen" not in seen.text


async def test_lists_are_sorted_and_filtered_by_their_address(seller: Seller) -> None:
    for name in ("Zebra", "alpha", "Middle"):
        made = await seller.post("/api/stores", organizationId=seller.organization_id, name=name)
        if made.status_code != 201:  # the plan holds one store
            break

    async def names(query: str) -> httpx.Response:
        return await seller.browser.get(f"/stores?{query}", headers=HTML)

    assert 'aria-sort="ascending"' in (await names("sort=name")).text
    assert 'aria-sort="descending"' in (await names("sort=-name")).text
    assert "aria-sort" not in (await names("sort=password")).text
    assert "A store" in (await names("q=a+STORE")).text
    none = await names("q=%3Cscript%3E")
    assert "<script>" not in none.text
    assert "Show all" in none.text
