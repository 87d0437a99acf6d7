"""The commands of README.md and docs/install.md, as they stand there, in empty folders with clean caches.

The registries of npm and PyPI are the packages of this commit.
"""

import json
import re
import sys
from pathlib import Path

from packaging.project import ROOT

from .npm import registry
from .support import PEERS, Case, Session, packages

REMARK = "<!-- not run: installs lispbox; release/test runs it with the packages of this commit -->"


def blocks(page: str) -> list[str]:
    """The commands of a page that only an installation can run."""
    return re.findall(rf"{re.escape(REMARK)}\n```sh\n(.*?)```", (ROOT / page).read_text(), re.S)


class FirstMinute(Case):
    """Each way in of the first screen, and that of the page about the installation."""

    def setUp(self) -> None:
        super().setUp()
        prefix = self.folder / "prefix"
        self.env |= {
            "PATH": f"{prefix}/bin:{PEERS}/venv/bin:{self.env['PATH']}",
            "npm_config_prefix": str(prefix),
            "npm_config_registry": registry(packages()),
            "UV_OFFLINE": "1",
            "UV_NO_INDEX": "1",
            "UV_FIND_LINKS": str(packages()),
            "UV_PYTHON": sys.executable,
        }

    def test_the_first_screen_has_commands_of_at_most_three_lines(self) -> None:
        found = blocks("README.md")
        self.assertEqual(len(found), 2)
        for block in found:
            self.assertLessEqual(len(block.splitlines()), 3)

    def test_a_client_gets_lispbox(self) -> None:
        for page in ["README.md", "docs/install.md"]:
            with self.subTest(page=page):
                self.succeeds("sh", "-euc", blocks(page)[0])
                file = self.folder / "home/.claude.json"
                entry = json.loads(file.read_text())["mcpServers"]["lispbox"]
                self.serves([entry["command"], *entry["args"]], env=self.env, cwd=self.folder)
                file.unlink()

    def test_a_terminal_shows_the_demo(self) -> None:
        self.assertIn("tokens", self.succeeds("sh", "-euc", blocks("README.md")[1]))

    def test_npx_and_uvx_write_entries_that_outlive_their_caches(self) -> None:
        for launcher, expected in [(["npx", "--yes"], "npx"), (["uvx"], "uvx")]:
            with self.subTest(launcher=expected):
                self.succeeds(*launcher, "lispbox", "setup", "claude-code")
                file = self.folder / "home/.claude.json"
                entry = json.loads(file.read_text())["mcpServers"]["lispbox"]
                self.assertEqual(Path(entry["command"]).name, expected)
                with Session([entry["command"], *entry["args"]], self.env, self.folder) as session:
                    self.assertIn("lisp_eval", session.tools())
                file.unlink()
