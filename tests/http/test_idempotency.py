import asyncio
from datetime import timedelta

from tests.http.people import Clock, SignUp
from tolsey.storage.database import Database

PATH = "/api/organizations"
KEY = {"Idempotency-Key": "a-key"}


async def test_a_repeat_gets_the_same_answer_and_makes_nothing(sign_up: SignUp) -> None:
    ann = await sign_up()
    first = await ann.browser.post(PATH, json={"name": "Second"}, headers=KEY)
    again = await ann.browser.post(PATH, json={"name": "Second"}, headers=KEY)
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert len((await ann.browser.get(PATH)).json()["items"]) == 2


async def test_another_body_under_the_same_key_is_refused(sign_up: SignUp) -> None:
    ann = await sign_up()
    await ann.browser.post(PATH, json={"name": "Second"}, headers=KEY)
    response = await ann.browser.post(PATH, json={"name": "Third"}, headers=KEY)
    assert (response.status_code, response.json()["code"]) == (422, "idempotency_key_reused")


async def test_a_refusal_is_repeated_too(sign_up: SignUp) -> None:
    ann = await sign_up()
    await ann.store("One")
    first = await ann.store("Two", **KEY)
    again = await ann.store("Two", **KEY)
    assert first.status_code == again.status_code == 402
    assert {**first.json(), "requestId": ""} == {**again.json(), "requestId": ""}


async def test_keys_of_two_users_are_two_keys(sign_up: SignUp) -> None:
    ann, bob = await sign_up(), await sign_up("bob@example.com")
    first = await ann.browser.post(PATH, json={"name": "Second"}, headers=KEY)
    second = await bob.browser.post(PATH, json={"name": "Second"}, headers=KEY)
    assert first.json()["id"] != second.json()["id"]


async def test_a_key_is_new_again_after_a_day(sign_up: SignUp, clock: Clock) -> None:
    ann = await sign_up()
    first = await ann.browser.post(PATH, json={"name": "Second"}, headers=KEY)
    clock.advance(timedelta(hours=24))
    second = await ann.browser.post(PATH, json={"name": "Third"}, headers=KEY)
    assert second.status_code == 201
    assert first.json()["id"] != second.json()["id"]


async def test_a_crash_before_the_answer_was_kept_creates_once(
    sign_up: SignUp, clock: Clock, database: Database
) -> None:
    ann = await sign_up()
    first = await ann.store("Only one", **KEY)
    await database.execute(
        "UPDATE idempotency_keys SET answer = NULL, locked_until = $1",
        clock() + timedelta(seconds=60),
    )
    waiting = await ann.store("Only one", **KEY)
    assert (waiting.status_code, waiting.json()["code"]) == (409, "request_in_progress")
    assert waiting.headers["retry-after"] == "1"
    clock.advance(timedelta(seconds=61))
    again = await ann.store("Only one", **KEY)
    assert again.status_code == 201
    assert again.json() == first.json()


async def test_repeats_at_once_create_once(sign_up: SignUp) -> None:
    ann = await sign_up()
    answers = await asyncio.gather(
        *(ann.browser.post(PATH, json={"name": "Second"}, headers=KEY) for _ in range(5))
    )
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len((await ann.browser.get(PATH)).json()["items"]) == 2


async def test_a_key_that_is_none_is_refused(sign_up: SignUp) -> None:
    ann = await sign_up()
    for key in ("", "x" * 256, "caf\xe9"):
        response = await ann.browser.post(
            PATH, json={"name": "x"}, headers={b"Idempotency-Key": key.encode("latin-1")}
        )
        assert (response.status_code, response.json()["code"]) == (400, "invalid_idempotency_key")
