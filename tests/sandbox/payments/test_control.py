from tests.sandbox.payments.stage import STRIPE, Shop
from tolsey.sandbox.payments.course.business import open_business

pytestmark = STRIPE
HTML = {"Accept": "text/html,application/xhtml+xml"}


async def test_the_control_page_shows_a_payment_and_disputes_it(shop: Shop) -> None:
    session = await shop.credits(2_000)
    await shop.pay(session.url)
    control = f"{shop.processor.url}/sandbox"
    charge = shop.last("charge.succeeded")

    shown = await shop.browser.get(control, headers=HTML)
    assert "20.00 USD, paid" in shown.text
    form = {"charge": charge["id"], "inquiry": "no"}
    sent = await shop.browser.post(f"{control}/open_dispute", data=form, headers=HTML)
    assert (sent.status_code, sent.headers["location"]) == (303, "/sandbox")

    disputed = await shop.browser.get(control, headers=HTML)
    assert "20.00 USD, disputed" in disputed.text
    assert "needs_response" in disputed.text
    assert "charge.dispute.created: nobody listens" in disputed.text


async def test_a_program_reads_what_it_made(shop: Shop) -> None:
    await shop.pay((await shop.credits()).url)
    form = {"charge": shop.last("charge.succeeded")["id"], "inquiry": "yes"}
    made = await shop.browser.post(f"{shop.processor.url}/sandbox/open_dispute", data=form)

    assert made.json()["status"] == "warning_needs_response"
    ended = {"dispute": made.json()["id"], "status": "warning_closed"}
    closed = await shop.browser.post(f"{shop.processor.url}/sandbox/close_dispute", data=ended)
    assert closed.json()["status"] == "warning_closed"


async def test_a_restricted_key_is_made_that_may_what_was_ticked_and_no_more(shop: Shop) -> None:
    control = f"{shop.processor.url}/sandbox"
    business = open_business(shop.processor)
    form = {"account": business.id, "charge_read": "yes"}
    made = (await shop.browser.post(f"{control}/make_key", data=form)).json()["secret"]

    shown = await shop.browser.get(control, headers=HTML)
    assert f"<code>{made}</code> may charge_read<" in shown.text
    await shop.browser.post(f"{control}/make_key", data={"account": business.id})
    assert "may nothing<" in (await shop.browser.get(control, headers=HTML)).text
    bearer = {"Authorization": f"Bearer {made}"}
    for path, status in (("charges", 200), ("subscriptions", 403), ("account", 403)):
        answer = await shop.browser.get(f"{shop.processor.url}/v1/{path}", headers=bearer)
        assert answer.status_code == status, path
    for account in (shop.processor.platform.id, "acct_none"):
        refused = await shop.browser.post(f"{control}/make_key", data={"account": account})
        assert "No such account" in refused.text


async def test_what_a_customer_is_called_cannot_write_the_control_page(shop: Shop) -> None:
    await shop.client.v1.customers.create_async({"email": "<script>alert(1)</script>@x.test"})

    shown = await shop.browser.get(f"{shop.processor.url}/sandbox")
    assert "<script>" not in shown.text
    assert "&lt;script&gt;" in shown.text


async def test_a_form_that_makes_no_sense_is_refused_and_changes_nothing(shop: Shop) -> None:
    control, before = f"{shop.processor.url}/sandbox", shop.processor.clock.now()
    wrong: list[tuple[str, dict[str, str], str]] = [
        ("advance", {"days": "-1"}, "goes forward"),
        ("advance", {"days": "nan"}, "goes forward"),
        ("advance", {"days": "soon"}, "could not convert"),
        ("set_card", {"customer": "cus_1"}, "lacks &#39;behaviour&#39;"),
        ("open_dispute", {"charge": "ch_none"}, "No such charge"),
        ("explode", {}, "No such action"),
    ]
    for act, form, said in wrong:
        answer = await shop.browser.post(f"{control}/{act}", data=form)
        assert 400 <= answer.status_code < 500, act
        assert said in answer.text

    assert shop.processor.clock.now() == before
    assert shop.processor.failures == []
