"""Most tests have servers of their own, because most of them end badly; who only looks shares some."""

import asyncio
import contextlib
import os
import pwd
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import pytest
import redis

from tests.conftest import memory
from tests.timing import block_until
from tolsey.storage.embedded import binaries, locks
from tolsey.storage.embedded.home import EmbeddedError, ServerHome, reachable
from tolsey.storage.embedded.servers import EmbeddedServers

pytestmark = pytest.mark.slow  # each starts servers of its own; every run of the suite starts one

CHECKOUT = Path(__file__).parents[2]

USER = """
import sys
from pathlib import Path
from tolsey.storage.embedded.servers import EmbeddedServers
with EmbeddedServers(Path(sys.argv[1])) as servers:
    print(servers.database_url, flush=True)
    sys.stdin.read()
"""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as somebody else")


@contextlib.contextmanager
def short_path() -> Iterator[Path]:
    """A short path that any user may walk to; pytest's own is closed to others."""
    made = Path(tempfile.mkdtemp(prefix="tolsey-embedded-", dir=memory()))
    made.chmod(0o755)
    yield made / "servers"
    if (made / "servers").exists():
        eventually(lambda: not locks.owned(made / "servers" / "keeper.lock"))
    shutil.rmtree(made)


@pytest.fixture
def fresh() -> Iterator[Path]:
    """A place where nothing was ever made."""
    with short_path() as path:
        yield path


@pytest.fixture(scope="module")
def untouched() -> Iterator[EmbeddedServers]:
    """Servers of a first start that every test leaves as they are."""
    with short_path() as path, EmbeddedServers(path) as servers:
        yield servers


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    """What a first start made, and went: to make it takes half the time of a test."""
    with short_path() as path:
        with EmbeddedServers(path) as servers:
            pass
        yield servers.home.postgres / "data"


@pytest.fixture
def folder(fresh: Path, cluster: Path) -> Path:
    """A place where servers have been before."""
    home = ServerHome.of(fresh)
    home.build()
    subprocess.run(["cp", "-a", cluster, home.postgres], check=True)  # noqa: S607 - with its owner
    return fresh


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds of servers that cannot be reached meanwhile."""

    def holds() -> bool:
        with contextlib.suppress(OSError, asyncpg.PostgresError):
            return condition()
        return False

    block_until(holds)


def ask(url: str, sql: str) -> object:
    async def once() -> object:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(sql)
        finally:
            await connection.close()

    return asyncio.run(once())


def postmaster(servers: EmbeddedServers) -> int:
    """Tell PostgreSQL's process, or 0 while one that starts has not written its number."""
    written = (servers.home.postgres / "data" / "postmaster.pid").read_text().split()
    return int(written[0]) if written else 0


def keeper(servers: EmbeddedServers) -> int:
    return int(servers.home.ready.read_text().split()[0])


def nothing_left(home: ServerHome) -> bool:
    return not any(locks.owned(home.lock(name)) for name in ("keeper", "postgres", "valkey"))


@contextlib.contextmanager
def user_process(folder: Path, **how: object) -> Iterator[subprocess.Popen[str]]:
    """Another process that uses the servers until its input ends."""
    command = [str(how.pop("python", sys.executable)), "-c", USER, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, **how) as process:  # type: ignore[call-overload]  # whatever Popen takes
        try:
            yield process
        finally:
            process.kill()


def started(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_postgres_with_vectors_and_redis_answer(untouched: EmbeddedServers) -> None:
    assert untouched.alive()
    assert ask(untouched.database_url, "SELECT 1") == 1
    ask(untouched.database_url, "CREATE EXTENSION vector")
    assert ask(untouched.database_url, "SELECT '[1,2]'::vector <-> '[1,3]'::vector") == 1.0
    assert ask(untouched.database_url, "SHOW listen_addresses") == ""
    with redis.Redis.from_url(untouched.redis_url) as client:
        assert client.ping()


def test_commits_are_on_disk_before_they_are_answered(untouched: EmbeddedServers) -> None:
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        assert ask(untouched.database_url, f"SHOW {name}") == "on"


def test_the_last_user_leaves_nothing_running_and_the_next_finds_its_data(folder: Path) -> None:
    with EmbeddedServers(folder) as servers:
        ask(servers.database_url, "CREATE TABLE kept AS SELECT 7 AS n")
    assert nothing_left(servers.home)
    assert not servers.alive()
    with EmbeddedServers(folder) as servers:
        assert ask(servers.database_url, "SELECT n FROM kept") == 7


def test_two_processes_share_one_postmaster_until_both_are_gone(folder: Path) -> None:
    with EmbeddedServers(folder) as servers:
        first = postmaster(servers)
        with user_process(folder) as other:
            assert started(other) == servers.database_url
            assert postmaster(servers) == first
            servers.__exit__(None, None, None)
            assert servers.alive()
            assert postmaster(servers) == first
    eventually(lambda: nothing_left(servers.home))


def test_processes_that_come_at_once_make_one_postmaster(fresh: Path) -> None:
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(user_process(fresh)) for _ in range(4)]
        assert len({started(process) for process in processes}) == 1
        starts = (fresh / "postgres.log").read_text().count("starting PostgreSQL")
        assert starts == 1
    eventually(lambda: nothing_left(ServerHome.of(fresh)))


def test_servers_stop_when_their_only_user_is_killed(folder: Path) -> None:
    with user_process(folder) as process:
        url = started(process)
        assert ask(url, "SELECT 1") == 1
        process.kill()
        process.wait()
        eventually(lambda: nothing_left(ServerHome.of(folder)))


def test_servers_outlive_their_user_as_long_as_the_first_asked(folder: Path) -> None:
    with EmbeddedServers(folder, linger_seconds=60) as servers:
        first = postmaster(servers)
    assert servers.alive()
    with EmbeddedServers(folder) as servers:
        assert postmaster(servers) == first
    assert servers.alive()
    os.kill(keeper(servers), signal.SIGTERM)  # an operator who does not want to wait
    eventually(lambda: nothing_left(servers.home))


def test_a_killed_keeper_leaves_no_orphan_and_committed_rows_are_there(folder: Path) -> None:
    with user_process(folder) as process:
        url = started(process)
        ask(url, "CREATE TABLE kept AS SELECT 7 AS n")
        os.kill(int((folder / "ready").read_text().split()[0]), signal.SIGKILL)
        process.kill()
    with EmbeddedServers(folder) as servers:
        assert ask(servers.database_url, "SELECT n FROM kept") == 7
    assert nothing_left(servers.home)


def test_a_keeper_that_gives_no_sign_of_life_is_not_relied_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tolsey.storage.embedded.servers.ANSWER_SECONDS", 0.1)
    with EmbeddedServers(folder) as servers:
        os.kill(keeper(servers), signal.SIGSTOP)
        try:
            assert servers.alive()
            eventually(lambda: not servers._kept())
        finally:
            os.kill(keeper(servers), signal.SIGCONT)
        eventually(servers._kept)


def test_a_user_whose_keeper_was_killed_gets_another(folder: Path) -> None:
    with EmbeddedServers(folder) as servers:
        first = keeper(servers)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: servers.alive() and keeper(servers) != first)
        assert ask(servers.database_url, "SELECT 1") == 1


@contextlib.contextmanager
def without_descriptors(pid: int) -> Iterator[None]:
    """Let a process open nothing more (EMFILE) until its newest thread has looked some times, or ended."""
    thread = max(Path(f"/proc/{pid}/task").iterdir(), key=lambda task: int(task.name))

    def looks() -> int:  # whoever polls waits between two looks
        _, _, found = (thread / "status").read_text().partition("\nvoluntary_ctxt_switches:")
        return int(found.split()[0])

    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    past = looks()
    try:
        yield
        eventually(lambda: not thread.exists() or looks() > past + 5)
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def test_a_keeper_without_a_descriptor_left_abandons_nobody(folder: Path) -> None:
    with EmbeddedServers(folder) as servers:
        first = keeper(servers)
        with without_descriptors(first):
            assert servers.alive()
        assert keeper(servers) == first
        assert ask(servers.database_url, "SELECT 1") == 1


def test_a_user_that_had_no_descriptor_left_still_gets_another_keeper(folder: Path) -> None:
    with user_process(folder) as one:
        url = started(one)
        with without_descriptors(one.pid):
            assert ask(url, "SELECT 1") == 1
        first = int((folder / "ready").read_text().split()[0])
        os.kill(first, signal.SIGKILL)
        eventually(lambda: int((folder / "ready").read_text().split()[0]) != first)
        eventually(lambda: ask(url, "SELECT 1") == 1)


def test_a_killed_postmaster_comes_back_with_the_committed_row(folder: Path) -> None:
    with EmbeddedServers(folder) as servers:
        ask(servers.database_url, "CREATE TABLE kept AS SELECT 7 AS n")
        first = postmaster(servers)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: postmaster(servers) not in {0, first} and servers.alive())
        eventually(lambda: ask(servers.database_url, "SELECT n FROM kept") == 7)


def test_a_killed_valkey_comes_back(folder: Path) -> None:
    with EmbeddedServers(folder) as servers, redis.Redis.from_url(servers.redis_url) as client:
        with contextlib.suppress(redis.ConnectionError):
            client.execute_command("SHUTDOWN", "NOSAVE")
        eventually(lambda: not servers.alive())
        eventually(servers.alive)
        assert client.ping()


def test_a_stale_pid_file_that_names_a_stranger_does_it_no_harm(folder: Path) -> None:
    with EmbeddedServers(folder) as servers:
        home = servers.home
    with subprocess.Popen(["sleep", "60"], **home.identity()) as stranger:  # noqa: S607 - any process will do
        try:
            for stale in (
                home.postgres / "data" / "postmaster.pid",
                home.sockets / ".s.PGSQL.5432.lock",
                home.valkey / "valkey.pid",
            ):
                stale.write_text(
                    f"{stranger.pid}\n{home.postgres}/data\n1\n5432\n{home.sockets}\n\n"
                )
                os.chown(stale, home.uid, -1)
            with EmbeddedServers(folder) as servers:
                assert ask(servers.database_url, "SELECT 1") == 1
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_unreadable_redis_data_are_set_aside(folder: Path) -> None:
    with EmbeddedServers(folder) as servers, redis.Redis.from_url(servers.redis_url) as client:
        client.set("kept", "1")
    (servers.home.valkey / "appendonlydir" / "appendonly.aof.manifest").write_text("nonsense")
    with EmbeddedServers(folder) as servers, redis.Redis.from_url(servers.redis_url) as client:
        assert client.get("kept") is None
        assert (servers.home.valkey / "unreadable").exists()


def test_data_of_another_postgres_are_refused_with_a_sentence(fresh: Path) -> None:
    home = ServerHome.of(fresh)
    home.build()
    (home.postgres / "data").mkdir()
    (home.postgres / "data" / "PG_VERSION").write_text("9\n")
    with pytest.raises(EmbeddedError, match="data were written by PostgreSQL 9; installed is"):
        EmbeddedServers(fresh).__enter__()
    assert nothing_left(home)


def test_a_server_that_does_not_start_says_why_with_the_end_of_its_log(folder: Path) -> None:
    with EmbeddedServers(folder) as servers:
        pass
    (servers.home.postgres / "data" / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(EmbeddedError, match="no_such_setting"):
        EmbeddedServers(folder).__enter__()
    assert nothing_left(servers.home)


def test_a_folder_that_cannot_be_made_is_an_embedded_error(fresh: Path) -> None:
    fresh.write_text("a file, not a folder")
    with pytest.raises(EmbeddedError, match="cannot be kept here"):
        EmbeddedServers(fresh).__enter__()
    fresh.unlink()
    fresh.mkdir()


def test_a_long_or_odd_path_does_not_matter(fresh: Path) -> None:
    odd = fresh / ("long" * 25) / "a, b & c%20?"
    with EmbeddedServers(odd) as servers, redis.Redis.from_url(servers.redis_url) as client:
        assert ask(servers.database_url, "SELECT 1") == 1
        assert client.ping()
        assert servers.home.postgres.is_relative_to(odd)
    shutil.rmtree(servers.home.sockets)


def test_a_socket_folder_planted_by_somebody_else_is_refused(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tolsey.storage.embedded.home.LONGEST_SOCKET_FOLDER", 0)
    monkeypatch.setattr("tolsey.storage.embedded.home.SHORT_ROOT", fresh.parent)
    home = ServerHome.of(fresh)
    home.sockets.symlink_to(tempfile.gettempdir())
    with pytest.raises(EmbeddedError, match="belongs to somebody else"):
        EmbeddedServers(fresh).__enter__()


def test_the_environment_cannot_bend_the_servers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PGPORT": "6543", "PGHOST": "nowhere", "HOME": "/nonexistent"}.items():
        monkeypatch.setenv(name, value)
    with EmbeddedServers(folder) as servers:
        assert ask(servers.database_url, "SELECT 1") == 1


def test_the_folders_are_closed_to_other_users(untouched: EmbeddedServers) -> None:
    home = untouched.home
    closed = (home.postgres, home.valkey, home.sockets)
    assert {stat.S_IMODE(inner.stat().st_mode) for inner in closed} == {0o700}
    assert stat.S_IMODE(home.log("postgres").stat().st_mode) == 0o600


def test_the_keeper_needs_the_standard_library_only() -> None:
    loaded = "import sys, tolsey.storage.embedded.keeper; print(*sys.modules)"
    reported = subprocess.run(
        [sys.executable, "-c", loaded], check=True, capture_output=True, text=True
    )
    assert not {"asyncpg", "redis", "structlog", "pydantic"} & set(reported.stdout.split())


@as_root
def test_root_runs_the_servers_as_an_ordinary_user(untouched: EmbeddedServers) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(untouched.home.valkey_socket))
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    assert int.from_bytes(credentials[4:8], sys.byteorder) == untouched.home.uid != 0


@as_root
def test_data_move_when_the_servers_user_cannot_enter_the_folder(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tolsey.storage.embedded.home.FAR_HOME", fresh.parent / "far")
    closed = fresh / "closed"
    closed.mkdir(parents=True)
    closed.chmod(0o700)
    with EmbeddedServers(closed / "data") as servers:
        ask(servers.database_url, "CREATE TABLE kept AS SELECT 7 AS n")
        assert servers.home.folder.parent == fresh.parent / "far"
        assert (closed / "data" / "moved").readlink() == servers.home.folder
    closed.chmod(0o755)
    with EmbeddedServers(closed / "data") as servers:
        assert ask(servers.database_url, "SELECT n FROM kept") == 7


@as_root
def test_data_that_went_out_of_reach_are_not_mistaken_for_none(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tolsey.storage.embedded.home.FAR_HOME", fresh.parent / "far")
    with EmbeddedServers(fresh / "data"):
        pass
    fresh.chmod(0o700)
    with pytest.raises(EmbeddedError, match="cannot enter"):
        EmbeddedServers(fresh / "data").__enter__()


@as_root
def test_programs_out_of_reach_are_copied_once_and_run(fresh: Path) -> None:
    home = ServerHome.of(fresh)
    home.build()
    found = binaries.postgres(None).programs
    if not found.is_relative_to(sysconfig.get_path("purelib")):
        pytest.skip("the system's programs are never out of reach")
    closed = fresh / "closed"
    closed.mkdir(mode=0o700)
    install = closed / found.parent.parent.name / found.parent.name
    (install / "bin").mkdir(parents=True)
    shutil.copytree(
        found.parent.parent.with_name(f"{install.parent.name}.libs"),
        closed / f"{install.parent.name}.libs",
    )
    shutil.copy(found / "initdb", install / "bin")
    copy = binaries.within_reach(install / "bin" / "initdb", home)
    reported = subprocess.check_output([copy, "--version"], text=True, **home.identity())
    assert reported.startswith("initdb (PostgreSQL)")
    before = copy.stat().st_ino
    assert binaries.within_reach(install / "bin" / "initdb", home) == copy
    assert copy.stat().st_ino == before


@as_root
def test_an_ordinary_user_needs_nothing_from_root(fresh: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    packages = sysconfig.get_path("purelib")
    pythons = (Path(sys.executable).resolve(), Path("/usr/bin/python3"))
    python = next((one for one in pythons if one.exists() and reachable(one, nobody)), None)
    if (
        python is None
        or not reachable(CHECKOUT / "x", nobody)
        or not reachable(Path(packages, "x"), nobody)
    ):
        pytest.skip("nobody can get to this checkout or to a Python")
    fresh.mkdir()
    os.chown(fresh, nobody.pw_uid, nobody.pw_gid)
    environment = {"PYTHONPATH": f"{CHECKOUT}:{packages}", "HOME": "/nonexistent"}
    identity = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    with user_process(
        fresh / "own", python=python, env=environment, cwd="/", **identity
    ) as process:
        url = started(process)
        assert ask(url, "SELECT 1") == 1
        assert (fresh / "own" / "keeper.lock").stat().st_uid == nobody.pw_uid
        process.kill()
        process.wait()
        eventually(lambda: not locks.owned(fresh / "own" / "keeper.lock"))
