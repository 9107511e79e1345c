"""A newcomer runs one command and sees the main job, and money."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.journeys.conftest import free_port
from tests.rules import ROOT

STEPS = (
    ".myshopify.com is active",
    "A payout account is opened",
    "Goods are put on its shelves: 8 products, 40 of each",
    "Its revenue is verified: verified",
    "were applied once each",
    "Pro is paid, and its invoice granted 49.00 USD of credits",
    "Credits are bought: 49.00 USD became 99.00 USD",
    "A question is answered",
    "A purchase is refunded: nothing of it was used",
    "The bank disputes a purchase",
    "last month's credits ended, 49.00 USD are there anew",
    "without a gap add up to the balance",
    "badge.svg",
)


def sandbox(tmp_path: Path, *options: str) -> subprocess.Popen[str]:
    tmp_path.chmod(0o755)
    names = ("--port", "--platform-port", "--payments-port", "--model-port")
    ports = [part for name in names for part in (name, str(free_port()))]
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "tolsey", "sandbox", "--orders", "200", *ports, *options),
            *("--data-dir", str(tmp_path / "sandbox")),
        ],
        env={name: value for name, value in os.environ.items() if not name.endswith("_URL")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_sandbox_shows_the_main_job_on_its_own(tmp_path: Path) -> None:
    with sandbox(tmp_path, "--once") as process:
        reported, complained = process.communicate(timeout=110)

    assert process.returncode == 0, reported + complained
    for said in STEPS:
        assert said in reported
    assert complained == ""
    ((apart,),) = [re.findall(r"in 30 days, (-?[0-9.]+) % apart", reported)]
    assert abs(float(apart)) < 5, "the shop and the payments tell of one business"
    agents = re.findall(r"^ +agents  (\S+)", reported, re.MULTILINE)
    ((claude,),) = [re.findall(r"^ +Claude  claude mcp add .* (\S+)$", reported, re.MULTILINE)]
    assert agents == [claude]
    (variables,) = tmp_path.glob("sandbox/env.sh")
    assert f"MCP_URL={claude}\n" in variables.read_text()


def test_the_sandbox_launches_a_store_from_an_empty_shop(tmp_path: Path) -> None:
    with sandbox(tmp_path, "--once", "--launch") as process:
        reported, complained = process.communicate(timeout=600)

    assert process.returncode == 0, reported + complained
    assert re.search(r"The store is open at https://loom-\w+\.example", reported)
    # What people do is said as it is done; that of another kind nobody was asked for.
    for said in ("Approve the brand kit", "Place a test order", "Remove the storefront password"):
        assert reported.count(f"✓ {said}: ") == 1
    assert complained == ""


def test_the_sandbox_shows_it_a_second_time_in_the_same_folder(tmp_path: Path) -> None:
    shops = set()
    for _ in range(2):
        with sandbox(tmp_path, "--once") as process:
            reported, complained = process.communicate(timeout=110)
        assert process.returncode == 0, reported + complained
        assert all(said in reported for said in STEPS)
        assert complained == ""
        shops |= set(re.findall(r"demo-\w+\.myshopify\.com", reported))
    assert len(shops) == 2, "each run has a shop of its own"


def test_the_sandbox_stays_with_its_pages_until_it_is_interrupted(tmp_path: Path) -> None:
    with sandbox(tmp_path) as process:
        assert process.stdout is not None
        reported = ""
        for line in process.stdout:
            reported += line
            if "Ctrl+C" in line:
                break
        try:
            found = re.findall(r"^ +(sign in|billing|processor)  (\S+)", reported, re.MULTILINE)
            addresses = dict(found)
            shown = httpx.get(addresses["processor"], trust_env=False)
            signing_in = httpx.get(addresses["sign in"], trust_env=False)
            billing = httpx.get(addresses["billing"], trust_env=False)
            refused, proof = verified_by_key(reported, addresses["processor"])
            goods = known_goods(reported)
        finally:
            process.send_signal(signal.SIGINT)
            _, complained = process.communicate(timeout=60)

    assert shown.status_code == 200
    assert "50.00 USD, disputed" in shown.text
    assert signing_in.status_code == 200
    assert billing.status_code == 303, "a stranger is sent to sign in"
    assert process.returncode == 0, complained
    assert refused["code"] == "missing_permission:charges"
    assert goods == 8
    assert proof["corroboration"]["source"] == "payments"
    assert proof["corroboration"]["revenue30d"] > 0


def known_goods(reported: str) -> int:
    """Count the products that the seller's store knows."""
    ((base, store),) = re.findall(r"^ +agents  (\S+)/api/mcp/v1/(\S+)", reported, re.MULTILINE)
    ((email, password),) = re.findall(r"^ +seller  (\S+)  password (\S+)", reported, re.MULTILINE)
    with httpx.Client(base_url=base, headers={"Origin": base}, trust_env=False) as browser:
        login = {"email": email, "password": password}
        assert browser.post("/api/auth/login", json=login).status_code == 200
        return len(browser.get(f"/api/stores/{store}/export").json()["products"])


def verified_by_key(reported: str, processor: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Prove a listing's revenue with a key that may too little, then with the printed one."""
    said = dict(re.findall(r"^ +(listing|payments key|sign in)  (\S+)", reported, re.MULTILINE))
    key, listing, base = said["payments key"], said["listing"], said["sign in"][: -len("/login")]
    ((email, password),) = re.findall(r"^ +seller  (\S+)  password (\S+)", reported, re.MULTILINE)
    page = httpx.get(processor, trust_env=False).text
    assert key in page
    account, *_ = re.findall(r'/sandbox/make_key"><input [^>]*value="(acct_\w+)"', page)
    form = {"account": account, "accounts_kyc_basic_read": "yes"}
    poor = httpx.post(f"{processor}/make_key", data=form, trust_env=False).json()["secret"]
    with httpx.Client(base_url=base, headers={"Origin": base}, trust_env=False) as browser:
        login = {"email": email, "password": password}
        assert browser.post("/api/auth/login", json=login).status_code == 200
        path = f"/api/sell/listings/{listing}"
        refused = browser.post(f"{path}/verify/payments", json={"restrictedKey": poor})
        taken = browser.post(f"{path}/verify/payments", json={"restrictedKey": key}, timeout=30)
        assert taken.status_code == 200, taken.text
        until = time.monotonic() + 60
        while True:
            proof: dict[str, Any] = browser.get(path).json()["verification"]
            if (proof["corroboration"] or {}).get("revenue30d") is not None:
                return refused.json(), proof
            assert time.monotonic() < until, proof
            time.sleep(0.1)


@pytest.mark.parametrize("shell", ["bash", "zsh", "sh"])
def test_the_commands_of_the_readme_and_the_start_page_work_as_typed(
    shell: str, tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    with sandbox(tmp_path) as process:
        assert process.stdout is not None
        try:
            assert any("Ctrl+C" in line for line in process.stdout), "the sandbox ended early"
            typed = typed_commands().replace(".data/sandbox/", f"{tmp_path}/sandbox/")
            done = subprocess.run(
                [shell], input=f"set -e\n{typed}", cwd=tmp_path, text=True, capture_output=True,
                timeout=100, check=False,
            )  # fmt: skip
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert '"corroboration":{' in done.stdout
    assert (tmp_path / "badge.svg").read_text().startswith("<svg")


def typed_commands() -> str:
    """Give what the README and the start page say to type once the sandbox runs, in order."""
    pages = [(ROOT / name).read_text() for name in ("README.md", "docs/start.md")]
    blocks = re.findall(r"```sh\n(.*?)```", "\n".join(pages), re.DOTALL)
    return "\n".join(one for one in blocks if not one.startswith("make "))


def test_a_port_that_is_taken_ends_the_sandbox_in_plain_words(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = str(listener.getsockname()[1])
        with sandbox(tmp_path, "--once", "--model-port", taken) as process:
            reported, complained = process.communicate(timeout=60)

    assert process.returncode == 1
    assert f"another program listens on {taken}" in reported
    assert complained == ""


def test_the_sandbox_watches_competitors_for_a_fortnight(tmp_path: Path) -> None:
    with sandbox(tmp_path, "--once", "--competitors") as process:
        reported, complained = process.communicate(timeout=600)

    assert process.returncode == 0, reported + complained
    for said in (
        r"kettles.example is active; its best seller sells [0-9.]+ a day, [0-9.]+ to [0-9.]+",
        r"tinhob.example is active; its best seller sells",
        r"copper.example is robots_denied: .*robots.txt does not allow it",
        r"quern.example is password_protected: It opens with a password only",
        r"weary.example is blocked: .*wants to be left alone",
        r"competitors  http://127.0.0.1:\d+/stores/store_\w+/competitors",
    ):
        assert re.search(said, reported), said
    assert complained == ""
