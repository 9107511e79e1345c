"""Signatures checked over HTTP: by their parties, by strangers who have a link, and after the database was written to."""

import re
from datetime import timedelta
from typing import Any

import anyio.to_thread
import orjson
import pytest

from tests.http.deals.evidence.conftest import Rooting, unpacked
from tests.http.deals.sealing.conftest import Seals
from tests.http.deals.table import MARKET, Table, signed
from tests.http.people import Clock
from tolsey.http.deals import papers
from tolsey.http.deals.evidence import checking
from tolsey.storage.database import Database

ROOTS = "/.well-known/esign-roots.json"
EVIDENCE = (
    *("legal_documents", "legal_signatures", "signature_events", "deal_events"),
    *("esign_leaves", "esign_roots", "sealed_documents"),
)
TAMPERED = [
    (
        "UPDATE legal_documents SET content = replace(content, 'two years', 'ten years')",
        ("document", "document.html"),
    ),
    ("DELETE FROM legal_documents", ("document", "document.html")),
    (
        "UPDATE signature_events SET body = replace(body, 'Ben', 'Bob') WHERE seq = 3",
        ("event", "events/0003.json"),
    ),
    ("DELETE FROM signature_events WHERE seq = 2", ("event", "events/0002.json")),
    (
        "UPDATE legal_signatures SET signers = jsonb_set(signers, '{buyer,name}', '\"Bob\"')",
        ("summary", "signature.json"),
    ),
    ("UPDATE legal_signatures SET status = 'DECLINED'", ("summary", "signature.json")),
    (
        "UPDATE deal_events SET body = replace(body, 'auditHash', 'auditHush')",
        ("ledger", "ledger/0001.json"),
    ),
    (
        "UPDATE deal_events SET body = replace(body, 'INQUIRY', 'INQUIRE') WHERE seq = 1",
        ("ledger", "ledger/0002.json"),
    ),
    ("UPDATE esign_leaves SET head = repeat('0', 64)", ("root", "roots/2036-06-15")),
    ('UPDATE esign_leaves SET way = \'[["left", "00"]]\'', ("root", "root/way.txt")),
    (
        "UPDATE esign_roots SET body = replace(body, '\"signatures\":1', '\"signatures\":2')",
        ("root", "root/statement.json"),
    ),
    ("UPDATE esign_roots SET signature = reverse(signature)", ("root", "root/statement.json")),
    ("UPDATE esign_roots SET public_key = 'none'", ("root", "root/key.pem")),
    ("DELETE FROM esign_leaves", ("root", "roots/2036-06-15")),
    ("DELETE FROM esign_roots", ("root", "roots/2036-06-15")),
    ("UPDATE sealed_documents SET content = set_byte(content, 900, 1)", ("pdf", "document.pdf")),
]


async def checked(table: Table, signature_id: str) -> dict[str, Any]:
    answer = await table.ann.browser.get(f"{MARKET}/signatures/{signature_id}/verify")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.changes_schema
async def test_whatever_is_changed_of_what_is_kept_is_named(
    table: Table, seals: Seals, rooting: Rooting, database: Database
) -> None:
    deal = await signed(table, table.ben)
    id = deal["signatureId"]
    await seals.pdf_of(table, id)
    await rooting.next_day()
    for one in EVIDENCE:
        if one != "legal_signatures":
            with pytest.raises(Exception, match="only added"):
                await database.execute(f"DELETE FROM {one}")  # noqa: S608 - a constant
        await database.execute(f"ALTER TABLE {one} DISABLE TRIGGER ALL")
        await database.execute(f"CREATE TABLE was_{one} AS TABLE {one}")

    wrong = {}
    for sql, named in TAMPERED:
        await database.execute(sql)
        found = await checked(table, id)
        said = found["firstBreak"] and (found["firstBreak"]["part"], found["firstBreak"]["name"])
        if (found["valid"], said) != (False, named):
            wrong[sql] = said
        for one in EVIDENCE:
            await database.execute(f"TRUNCATE {one}")
            await database.execute(f"INSERT INTO {one} SELECT * FROM was_{one}")  # noqa: S608 - constants

    whole = await checked(table, id)
    for one in EVIDENCE:
        await database.execute(f"DROP TABLE was_{one}")
    assert wrong == {}
    assert (whole["valid"], whole["firstBreak"]) == (True, None)


async def test_a_root_is_signed_once_a_day_over_what_no_root_has_yet(
    table: Table, rooting: Rooting
) -> None:
    assert await rooting.next_day() == 0
    first = await signed(table, table.ben)
    assert (await checked(table, first["signatureId"]))["rootProof"] is None
    assert await rooting.next_day() == 1
    assert await rooting.again() == 0
    asked = (await table.access(table.cleo)).json()
    await table.advance(table.ann, asked, "access.approve")
    assert await rooting.next_day() == 1
    assert await rooting.next_day() == 0

    page = (await table.eve.browser.get(ROOTS, params={"limit": 1})).json()
    rest = await table.eve.browser.get(ROOTS, params={"limit": 1, "cursor": page["nextCursor"]})
    (newer,), (older,) = page["items"], rest.json()["items"]
    statements = [orjson.loads(one["statement"]) for one in (newer, older)]
    assert [one["signatures"] for one in statements] == [1, 1]
    assert statements[1]["previous"] is None
    assert statements[0]["previous"] is not None
    found = await checked(table, first["signatureId"])
    assert (found["valid"], found["rootProof"]["day"]) == (True, older["day"])


async def test_who_has_a_link_may_check_a_signature_until_it_expires(
    table: Table, clock: Clock
) -> None:
    deal = await signed(table, table.ben)
    path = f"{MARKET}/signatures/{deal['signatureId']}"
    other = await signed(table, table.cleo)
    assert (await table.eve.browser.post(f"{path}/share")).status_code == 404
    made = await table.ben.browser.post(f"{path}/share")
    assert made.status_code == 201
    link = made.json()["url"].partition("/api/")[2]
    anyone = table.eve.browser
    anyone.cookies.clear()

    shown = (await anyone.get(f"/api/{link}")).json()
    assert (shown["valid"], shown["events"]) == (True, [])
    assert [one["name"] for one in shown["signers"]] == ["B…", "A…"]
    # It opens that signature, and no more of it than whether it is right.
    elsewhere = link.replace(deal["signatureId"], other["signatureId"])
    assert (await anyone.get(f"/api/{elsewhere}")).status_code == 401
    assert (await anyone.get(f"/api/{link}".replace("/verify", "/evidence"))).status_code == 401
    assert (await anyone.get(f"{path}/verify", params={"token": "none"})).status_code == 401
    clock.advance(timedelta(days=30))
    assert (await anyone.get(f"/api/{link}")).status_code == 401


async def test_a_file_is_told_which_document_of_the_deal_it_is(table: Table, seals: Seals) -> None:
    deal = await signed(table, table.ben)
    path = f"{MARKET}/signatures/{deal['signatureId']}"
    page = (await table.ben.browser.get(f"{path}/document")).content
    pdf = await seals.pdf_of(table, deal["signatureId"])

    async def told(content: bytes) -> list[str]:
        answer = await table.ann.browser.post(f"{path}/verify", content=content)
        assert answer.status_code == 200, answer.text
        return [f"{one['documentType']} {one['part']}" for one in answer.json()["found"]]

    assert await told(page) == ["NDA document"]
    assert await told(pdf) == ["NDA pdf"]
    assert await told(page + b" ") == []
    assert (await table.eve.browser.post(f"{path}/verify", content=page)).status_code == 404


async def test_a_document_requested_under_an_earlier_template_reads_verifies_and_seals_as_before(
    table: Table, seals: Seals, rooting: Rooting, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier_release:
        earlier_release.setitem(papers.VERSIONS, "NDA", "nda-2026-11")
        asked = (await table.access(table.ben)).json()
        approved = (await table.advance(table.ann, asked, "access.approve")).json()
        id = approved["signatureId"]
        shown = (await table.ben.browser.get(f"{MARKET}/signatures/{id}/document")).text
        assert (await table.sign(table.ben, id)).status_code == 200
    assert "Two years from the last signature" in shown

    # The seller signs after the release with the new wording.
    assert (await table.sign(table.ann, id)).status_code == 200
    await seals.pdf_of(table, id)
    await rooting.next_day()
    newer = await signed(table, table.cleo)

    path = f"{MARKET}/signatures/{{}}"
    answers = [
        (await table.ann.browser.get(path.format(one))).json() for one in (id, newer["signatureId"])
    ]
    versions = [one["templateVersion"] for one in answers]
    assert versions == ["nda-2026-11", papers.VERSIONS["NDA"]]
    assert (await table.ann.browser.get(path.format(id) + "/document")).text == shown
    assert (await checked(table, id))["valid"]
    files = await unpacked(table, id)
    assert files["document.html"].decode() == shown
    assert {"document.pdf", "root/statement.json"} <= files.keys()
    summary = await anyio.to_thread.run_sync(checking.check, files)
    assert [one["name"] for one in summary["signers"]] == ["Ben", "Ann"]
    certificate = (await table.ann.browser.get(f"/signatures/{id}")).text
    assert "nda-2026-11<" in certificate
    assert "Everything was computed again" in certificate


@pytest.mark.changes_schema
async def test_a_certificate_says_who_signed_and_what_is_broken_to_whom_it_concerns(
    table: Table, seals: Seals, rooting: Rooting, database: Database
) -> None:
    waiting = (await table.access(table.cleo)).json()
    await table.advance(table.ann, waiting, "access.approve")
    unsigned = (await table.deal(table.cleo, waiting["id"]))["signatureId"]
    assert (await table.cleo.browser.get(f"/signatures/{unsigned}")).status_code == 404

    deal = await signed(table, table.ben)
    path = f"/signatures/{deal['signatureId']}"
    await seals.pdf_of(table, deal["signatureId"])
    await rooting.next_day()
    for party in (table.ann, table.ben):
        page = (await party.browser.get(path)).text
        check = await checked(table, deal["signatureId"])
        assert "Everything was computed again" in page
        for said in ("Ann", "Ben", check["documentSha256"], check["pdfSha256"]):
            assert said in page
        for line in [*check["events"], {"hash": check["rootProof"]["root"]}]:
            assert line["hash"] in page
    assert (await table.eve.browser.get(path)).status_code == 404
    assert (await table.eve.browser.post(f"{path}/share")).status_code == 404

    made = (await table.ben.browser.post(f"{path}/share")).text
    link = path + "?token=" + re.findall(r"\?token=([\w-]+)", made)[0]
    anyone = table.eve.browser
    anyone.cookies.clear()
    assert (await anyone.get(path)).headers["Location"] == f"/login?next={path}"
    shown = (await anyone.get(link)).text
    assert "B…" in shown
    for hidden in ("Ben", "Ann", "verify-bundle", deal["id"], check["events"][0]["hash"]):
        assert hidden not in shown, hidden

    await database.execute("ALTER TABLE signature_events DISABLE TRIGGER ALL")
    await database.execute(
        "UPDATE signature_events SET body = replace(body, 'Ben', 'Bob') WHERE seq = 3"
    )
    for browser, address in ((anyone, link), (table.ann.browser, path)):
        page = (await browser.get(address)).text
        assert "events/0003.json is not what was written" in page
        assert "Everything was computed again" not in page
    await database.execute("ALTER TABLE signature_events ENABLE TRIGGER ALL")
