"""The workflow that releases, and the order of its uploads."""

import re
import shutil
import sys

from packaging.project import ROOT, VERSION
from packaging.targets import TARGETS
from packaging.upload import steps

from .support import PEERS, Case, everything


class Workflow(Case):
    """.github/workflows/release.yml."""

    def test_actionlint_accepts_it(self) -> None:
        lint = PEERS / "venv/bin/actionlint"
        self.succeeds(lint, "-shellcheck", shutil.which("shellcheck") or "", ROOT / ".github/workflows/release.yml")

    def test_it_builds_every_platform(self) -> None:
        text = (ROOT / ".github/workflows/release.yml").read_text()
        self.assertEqual(re.findall(r"- \{ target: (\S+),", text), [target.triple for target in TARGETS])


class Uploads(Case):
    """Nothing points at something that is not there yet."""

    def test_each_upload_follows_those_that_it_points_at(self) -> None:
        names = [step.name for step in steps(everything())]
        for target in TARGETS:
            self.assertLess(names.index(f"npm: @lispbox/{target.npm}"), names.index("npm: lispbox"))
        self.assertLess(names.index("crates.io: lispbox-lang"), names.index("crates.io: lispbox-policy"))
        self.assertLess(names.index("crates.io: lispbox-policy"), names.index("crates.io: lispbox"))
        files = names.index("release: published")
        for later in ["Homebrew", "Scoop", "crates.io: lispbox", "registry of MCP servers"]:
            self.assertLess(files, names.index(later))
        self.assertEqual(names[-1], "registry of MCP servers")

    def test_every_package_is_uploaded(self) -> None:
        words = " ".join(word for step in steps(everything()) for command in step.commands for word in command)
        for path in everything().iterdir():
            self.assertIn(str(path), words)

    def test_a_rehearsal_prints_the_uploads_and_makes_none(self) -> None:
        # No program that could upload is on the path.
        env = {"PATH": "/nonexistent"}
        shown = self.succeeds(
            sys.executable, ROOT / "release/publish", "--packages", everything(), "--rehearsal", env=env
        )
        self.assertIn(f"npm publish lispbox-{VERSION}.tgz --access public --provenance", shown)
        self.assertNotIn(str(everything()), shown)

    def test_an_upload_needs_a_tag_of_this_version(self) -> None:
        refused = self.fails(
            sys.executable, ROOT / "release/publish", "--packages", everything(), "--tag", "v9.9.9", status=1
        )
        self.assertIn("the tag is `v9.9.9`", refused)
