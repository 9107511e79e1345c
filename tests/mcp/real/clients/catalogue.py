"""The clients that are tried: where each is installed, from which lock, and how it is run."""

import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mcp.conformance import suite

HERE: Final = Path(__file__).parent
HOME: Final = suite.HOME / "clients"
NODE: Final = HERE / "node"
PYTHON: Final = HERE / "python"
SCRIPTS: Final = "scripts"


@dataclass(frozen=True)
class Installed:
    """A folder that holds what a lock names."""

    name: str
    lock: Path

    @property
    def folder(self) -> Path:
        return HOME / self.name

    @property
    def _stamp(self) -> Path:
        return self.folder / "installed"

    def stands(self) -> bool:
        """Tell whether what stands is what the lock says."""
        return self._stamp.exists() and self._stamp.read_bytes() == self.lock.read_bytes()

    def install(self) -> None:
        """Install what the lock names, unless it stands; says so where that cannot be done."""
        if self.stands():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            for command in self._commands():
                subprocess.run(command, cwd=self.folder, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.stdout.write(f"The clients of {self.lock.name} could not be installed: {error}\n")
            return
        self._stamp.write_bytes(self.lock.read_bytes())

    def _commands(self) -> list[list[str]]:
        if self.lock.parent == NODE:
            for file in NODE.glob("package*.json"):
                shutil.copy(file, self.folder)
            with suppress(FileExistsError):
                (self.folder / SCRIPTS).symlink_to(NODE)
            return [["npm", "ci", "--no-audit", "--no-fund", "--silent"]]
        pip = [str(self.folder / "bin/python"), "-m", "pip", "install", "--quiet"]
        hashed = ["--no-deps", "--require-hashes", "-r", str(self.lock)]
        return [[sys.executable, "-m", "venv", "."], [*pip, *hashed]]


NPM: Final = Installed("npm", NODE / "package-lock.json")
MCP_2: Final = Installed("mcp2", PYTHON / "mcp2.lock")
MCP_1: Final = Installed("mcp1", PYTHON / "mcp1.lock")
"""Some clients want the Python SDK of before 2.0."""


@dataclass(frozen=True)
class Client:
    """A client as people install it, and the script that drives it with its defaults."""

    name: str
    installed: Installed
    script: str

    def command(self) -> list[str]:
        """Begin the command that runs it, from the folder that `cwd` names."""
        if self.installed is NPM:
            # The scripts lie elsewhere, and import what lies beside the link to them.
            flags = ("--preserve-symlinks", "--preserve-symlinks-main")
            return [str(suite.NODE), *flags, str(NPM.folder / SCRIPTS / self.script)]
        module = f"{__package__}.python.{self.script}"
        return [str(self.installed.folder / "bin/python"), "-m", module]

    @property
    def cwd(self) -> Path:
        return NPM.folder if self.installed is NPM else suite.ROOT


CLIENTS: Final = (
    Client("TypeScript SDK 1.x", NPM, "typescript_1.mjs"),
    Client("TypeScript SDK 2.x", NPM, "typescript_2.mjs"),
    Client("Vercel AI SDK", NPM, "vercel.mjs"),
    Client("mcp-remote", NPM, "mcp_remote.mjs"),
    Client("Python SDK", MCP_2, "sdk"),
    Client("fastmcp", MCP_2, "of_fastmcp"),
    Client("openai-agents", MCP_2, "of_openai_agents"),
    Client("pydantic-ai", MCP_2, "of_pydantic_ai"),
    Client("langchain-mcp-adapters", MCP_1, "of_langchain"),
    Client("mcp-use", MCP_1, "of_mcp_use"),
)


def main() -> None:
    """Install all that can be installed here."""
    for one in (NPM, MCP_2, MCP_1):
        one.install()


if __name__ == "__main__":
    main()
