"""What the packages contain and say of themselves, and when there must be no release."""

import hashlib
import json
import os
import re
import shutil
import tarfile
import tomllib
from pathlib import Path

from packaging.elf import needs
from packaging.indexes import SCHEMA
from packaging.project import DOWNLOADS, IMAGE, MCP_NAME, ROOT, VERSION
from packaging.targets import TARGETS

from .image import Layout
from .support import BINARY, HOST, STATIC, Case, build, everything, package, packages, scratch, stage


class Release(Case):
    """Reasons not to release."""

    def test_a_release_is_refused_with_all_reasons(self) -> None:
        binaries = stage(self.folder / "binaries", {f"{HOST}/lispbox": BINARY, f"{STATIC}/lispbox": BINARY})
        refused = build(binaries, self.folder / "out", tag="v9.9.9")
        self.assertEqual(refused.returncode, 1)
        for reason in [
            f"the tag is `v9.9.9`, and the version in Cargo.toml `{VERSION}`",
            "there is no binary for aarch64-apple-darwin",
            "there is no binary for the bundle for macos: universal-apple-darwin/lispbox",
            f"{STATIC} is not static: it needs {needs(BINARY).loader}",
        ]:
            self.assertIn(f"  - {reason}", refused.stderr)
        self.assertFalse((self.folder / "out").exists())

    def test_the_same_commit_makes_the_same_files(self) -> None:
        files = [f"{HOST}/lispbox", f"{STATIC}/lispbox", "x86_64-pc-windows-msvc/lispbox.exe"]
        everything()
        some = stage(self.folder / "binaries", {file: scratch() / "stand-ins" / file for file in files})
        again = build(some, self.folder / "again", "--rehearsal")
        self.assertEqual(again.returncode, 0, again.stderr)
        before = set((everything() / "SHA256SUMS").read_text().splitlines())
        differ = {
            line.split("  ")[1] for line in set((self.folder / "again/SHA256SUMS").read_text().splitlines()) - before
        }
        # These list the files of fewer platforms.
        self.assertEqual(differ, {"lispbox.rb", "server.json"})
        layers = [
            Layout(package("*-image", folder)).image("amd64")[0]["rootfs"]
            for folder in (everything(), self.folder / "again")
        ]
        self.assertEqual(*layers)


class Sums(Case):
    """SHA256SUMS."""

    def test_every_file_has_its_checksum(self) -> None:
        for folder in [packages(), everything()]:
            self.succeeds("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS", cwd=folder)
            listed = {line.split("  ")[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
            self.assertEqual(listed, {path.name for path in folder.iterdir() if path.is_file()} - {"SHA256SUMS"})


class Archives(Case):
    """The archives that Homebrew, Scoop and `cargo binstall` download."""

    def test_an_unpacked_archive_is_used(self) -> None:
        name = f"lispbox-{VERSION}-{HOST}"
        with tarfile.open(package(f"{name}.tar.gz")) as archive:
            archive.extractall(self.folder, filter="data")
        self.is_used([self.folder / name / "lispbox"])
        for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "completions/_lispbox"]:
            self.assertTrue((self.folder / name / file).is_file(), file)

    def test_manual_pages_are_rendered_without_warnings(self) -> None:
        with tarfile.open(package(f"lispbox-{VERSION}-{HOST}.tar.gz")) as archive:
            archive.extractall(self.folder, filter="data")
        pages = sorted((self.folder / f"lispbox-{VERSION}-{HOST}/man").iterdir())
        self.assertIn("lispbox-serve.1", [page.name for page in pages])
        for page in pages:
            done = self.run_here("man", "--warnings", "--local-file", page)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)
            self.assertNotIn("sample-mailbox", page.name)

    def test_binstall_finds_the_archive_under_its_name(self) -> None:
        about = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["metadata"]["binstall"]
        for target in TARGETS:
            override = about["overrides"].get(target.triple, {})
            ending = {"tgz": ".tar.gz", "zip": ".zip"}[override.get("pkg-fmt", about["pkg-fmt"])]
            words = {
                "repo": "R",
                "version": VERSION,
                "target": target.triple,
                "name": "lispbox",
                "archive-suffix": ending,
            }
            address = re.sub(r"\{ ([a-z-]+) \}", lambda found, words=words: words[found.group(1)], about["pkg-url"])
            file = address.rsplit("/", 1)[1]
            self.assertTrue((everything() / file).is_file(), file)
            self.assertEqual(address, f"R/releases/download/v{VERSION}/{file}")


class Crates(Case):
    """The crates, as `cargo publish` uploads them. That they build is shown by `cargo publish --dry-run`."""

    def test_each_crate_has_every_file_that_its_sources_include(self) -> None:
        cargo = ["cargo", "package", "--workspace", "--locked", "--offline", "--no-verify", "--allow-dirty"]
        self.succeeds(*cargo, "--target-dir", self.folder / "target", cwd=ROOT, env=dict(os.environ))
        for name, least in [("lispbox-lang", 6), ("lispbox-policy", 1), ("lispbox", 6)]:
            with tarfile.open(self.folder / f"target/package/{name}-{VERSION}.crate") as archive:
                archive.extractall(self.folder, filter="data")
            root = self.folder / f"{name}-{VERSION}"
            included = 0
            for source in root.rglob("*.rs"):
                text = source.read_text()
                # Tests in a source file may read files of the repository.
                text = text.split("#[cfg(test)]")[0] if source.name != "tests.rs" else ""
                for path in re.findall(r'include_(?:str|bytes)!\("([^"]+)"\)', text):
                    included += 1
                    there = (source.parent / path).resolve()
                    self.assertTrue(there.is_file() and there.is_relative_to(root), f"{source.name}: {path}")
            self.assertGreaterEqual(included, least)
            self.assertFalse((root / "tests").exists())


class Indexes(Case):
    """The files of Homebrew, Scoop and the registry of MCP servers."""

    def test_each_address_is_a_file_of_the_release_with_its_digest(self) -> None:
        formula = package("lispbox.rb", everything()).read_text()
        pairs = re.findall(r'url "([^"]+)"\s+sha256 "([^"]+)"', formula)
        scoop = json.loads(package("lispbox.json", everything()).read_text())["architecture"]["64bit"]
        pairs.append((scoop["url"], scoop["hash"]))
        server = json.loads(package("server.json", everything()).read_text())
        pairs += [(each["identifier"], each["fileSha256"]) for each in server["packages"] if "fileSha256" in each]
        self.assertEqual(len(pairs), 4 + 1 + 3)
        for address, digest in pairs:
            self.assertTrue(address.startswith(f"{DOWNLOADS}/"))
            content = (everything() / address.rsplit("/", 1)[1]).read_bytes()
            self.assertEqual(hashlib.sha256(content).hexdigest(), digest)

    def test_the_entry_of_the_registry_names_the_packages(self) -> None:
        server = json.loads(package("server.json", everything()).read_text())
        self.assertEqual(server["$schema"], SCHEMA)
        self.assertEqual(server["name"], MCP_NAME)
        # The bounds of the schema.
        self.assertRegex(server["name"], r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$")
        self.assertLessEqual(len(server["description"]), 100)
        identifiers = [(each["registryType"], each["identifier"]) for each in server["packages"][:3]]
        self.assertEqual(identifiers, [("npm", "lispbox"), ("pypi", "lispbox"), ("oci", f"{IMAGE}:{VERSION}")])
        with tarfile.open(package(f"lispbox-{VERSION}.tgz")) as archive:
            about = json.loads(archive.extractfile("package/package.json").read())
        self.assertEqual(about["mcpName"], MCP_NAME)

    def test_the_formula_is_ruby(self) -> None:
        self.succeeds("ruby", "-c", package("lispbox.rb", everything()))

    def test_the_description_fits_homebrew(self) -> None:
        (line,) = re.findall(r'^  desc "(.*)"$', package("lispbox.rb", everything()).read_text(), re.M)
        self.assertLess(len(line), 80)
        self.assertNotRegex(line, r"(?i)^(an?|the) |\.$|lispbox")


class Materials(Case):
    """The bill of materials."""

    def test_it_lists_the_crates_that_are_linked_and_no_others(self) -> None:
        bill = json.loads(package(f"*{HOST}.cdx.json").read_text())
        names = {component["name"] for component in bill["components"]}
        own = {"lispbox-lang", "lispbox-policy"}
        self.assertLessEqual(own | {"rmcp", "libsqlite3-sys", "rustls", "mimalloc"}, names)
        # Of tests, of other systems, of builds.
        self.assertFalse({"proptest", "divan", "windows-sys", "cc", "vcpkg"} & names)
        for component in bill["components"]:
            self.assertTrue(component["licenses"][0]["expression"], component["name"])
            self.assertEqual("hashes" in component, component["name"] not in own, component["name"])
        references = {component["bom-ref"] for component in [*bill["components"], bill["metadata"]["component"]]}
        self.assertEqual({each["ref"] for each in bill["dependencies"]}, references)


class Traces(Case):
    """No trace of the machine that made the packages."""

    def test_no_text_names_a_folder_or_a_host_of_this_machine(self) -> None:
        here = [str(ROOT), str(scratch()), str(Path.home()) + "/", os.uname().nodename]
        found = []
        for path in [
            *packages().glob("*.tgz"),
            *packages().glob("*.tar.gz"),
            *packages().glob("*.whl"),
            *packages().glob("*.mcpb"),
        ]:
            there = self.folder / path.name
            shutil.unpack_archive(path, there, "zip" if path.suffix in (".whl", ".mcpb") else "gztar")
            for file in there.rglob("*"):
                if file.is_file() and file.stat().st_size < 1_000_000:
                    text = file.read_bytes().decode(errors="replace")
                    found += [f"{path.name}: {file.name}: {word}" for word in here if len(word) > 6 and word in text]
        self.assertEqual(found, [])
