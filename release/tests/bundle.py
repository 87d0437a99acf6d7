"""The bundle for Claude Desktop, started as the manifest says."""

import json
import shutil
from pathlib import Path

from packaging.project import VERSION

from .support import BINARY, MCPB, Case, Session, everything, package

# Does what Claude Desktop does with a manifest, with Anthropic's own code.
CONFIGURE = """
import { getMcpConfigForManifest } from "%s/index.js";
import { readFileSync } from "node:fs";
const [folder, home, userConfig] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync(`${folder}/manifest.json`, "utf8"));
const config = await getMcpConfigForManifest({
  manifest, extensionPath: folder, systemDirs: { HOME: home }, userConfig: JSON.parse(userConfig), pathSeparator: "/",
});
console.log(JSON.stringify(config));
"""


class Bundle(Case):
    """The bundle for Linux, unpacked by `mcpb`."""

    def start(self, **filled: str) -> tuple[list, dict]:
        """Unpacks the bundle. Returns the command and the environment that the manifest gives."""
        there = self.folder / "Claude Extensions/lispbox"
        self.succeeds("node", MCPB / "cli/cli.js", "unpack", package(f"lispbox-{VERSION}-linux.mcpb"), there)
        script = self.folder / "configure.mjs"
        script.write_text(CONFIGURE % MCPB)
        home = self.folder / "home"
        config = json.loads(self.succeeds("node", script, there, home, json.dumps(filled)))
        self.assertTrue(Path(config["command"]).is_relative_to(there))
        # Nothing is left to be filled in.
        self.assertNotIn("${", json.dumps(config))
        return [config["command"], *config["args"]], self.env | config["env"]

    def test_nothing_filled_in_is_enough(self) -> None:
        command, env = self.start()
        self.assertEqual(env["LISPBOX_GUARDS"], "careful")
        self.serves(command, env=env, cwd=Path("/"))
        with Session(command, env, Path("/")) as session:
            session.evaluate("(def kept 42)")
        self.assertTrue((Path(env["HOME"]) / ".local/share/lispbox/sessions.db").is_file())

    def test_everything_emptied_is_enough(self) -> None:
        command, env = self.start(servers="", guards="", deny="")
        self.serves(command, env=env, cwd=Path("/"))

    def test_the_servers_of_a_file_are_called_under_its_rules(self) -> None:
        servers = self.folder / "claude_desktop_config.json"
        mail = {"command": str(BINARY), "args": ["sample-mailbox"]}
        own = {"command": "/Applications/lispbox/server/lispbox", "args": ["serve"]}
        servers.write_text(json.dumps({"mcpServers": {"mail": mail, "lispbox": own}}))
        command, env = self.start(servers=str(servers), guards="strict", deny="mail/send-* mail/delete-*")
        with Session(command, env, Path("/")) as session:
            self.assertIn("20", session.evaluate("(count (mail/fetch-emails :limit 20))"))
            denied = session.evaluate('(mail/send-email :to ["a@example.org"] :subject "x" :body "y")')
            self.assertIn("ToolDenied", denied)

    def test_a_wrong_preset_is_explained(self) -> None:
        command, env = self.start(guards="extreme")
        shown = self.fails(*command, env=env, status=2)
        self.assertIn("extreme", shown)
        self.assertIn("careful", shown)

    def test_each_system_has_a_bundle_with_its_own_command(self) -> None:
        for system, platform, exe in [
            ("macos", "darwin", "lispbox"),
            ("windows", "win32", "lispbox.exe"),
            ("linux", "linux", "lispbox"),
        ]:
            there = self.folder / system
            shutil.unpack_archive(package(f"lispbox-{VERSION}-{system}.mcpb", everything()), there, "zip")
            manifest = json.loads((there / "manifest.json").read_text())
            self.assertEqual(manifest["compatibility"]["platforms"], [platform])
            self.assertEqual(manifest["server"]["mcp_config"]["command"], f"${{__dirname}}/server/{exe}")
            self.assertTrue((there / "server" / exe).is_file())
            self.assertTrue(
                {"manifest.json", "server", "LICENSE-MIT", "LICENSE-APACHE"} <= {path.name for path in there.iterdir()}
            )
