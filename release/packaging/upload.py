"""The uploads of a release, in an order in which nothing ever points at something that is not there yet.

What is there already is left out, so that a release that failed half-way is repeated as a whole.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from .project import IMAGE, SLUG, VERSION
from .targets import TARGETS


@dataclass(frozen=True)
class Step:
    name: str
    commands: list[list[str]]
    # Succeeds if this has been uploaded already.
    is_there: list[str] = field(default_factory=list)


def steps(packages: Path) -> list[Step]:
    """All uploads, in order."""
    tag = f"v{VERSION}"
    attached = [path for path in sorted(packages.iterdir()) if path.is_file() and path.suffix not in (".tgz", ".whl")]
    archive = packages / f"lispbox-{VERSION}.tgz"
    platforms = [(packages / f"lispbox-{target.npm}-{VERSION}.tgz", f"@lispbox/{target.npm}") for target in TARGETS]
    out = [
        # Homebrew, Scoop, `cargo binstall` and the registry of MCP servers point at these files.
        Step(
            "release: draft",
            [["gh", "release", "create", tag, "--draft", "--verify-tag", "--title", tag, "--notes-file", "NOTES"]],
            ["gh", "release", "view", tag],
        ),
        Step("release: files", [["gh", "release", "upload", tag, "--clobber", *map(str, attached)]]),
        Step("release: published", [["gh", "release", "edit", tag, "--draft=false"]]),
    ]
    # `lispbox` depends on the packages of the platforms.
    for path, name in [*platforms, (archive, "lispbox")]:
        out.append(
            Step(
                f"npm: {name}",
                [["npm", "publish", str(path), "--access", "public", "--provenance"]],
                ["npm", "view", f"{name}@{VERSION}", "version", "--json"],
            )
        )
    wheels = [str(path) for path in sorted(packages.glob("*.whl"))]
    out += [
        Step(
            "PyPI",
            [["uv", "publish", "--trusted-publishing", "always", "--check-url", "https://pypi.org/simple/", *wheels]],
        ),
        Step(
            "image",
            [
                [
                    "skopeo",
                    "copy",
                    "--all",
                    "--preserve-digests",
                    f"oci:{packages / f'lispbox-{VERSION}-image'}:{VERSION}",
                    f"docker://{IMAGE}:{VERSION}",
                ]
            ],
            ["skopeo", "inspect", "--raw", f"docker://{IMAGE}:{VERSION}"],
        ),
    ]
    # Each depends on those before it.
    for crate in ["lispbox-lang", "lispbox-policy", "lispbox"]:
        out.append(
            Step(
                f"crates.io: {crate}",
                [["cargo", "publish", "--locked", "--package", crate]],
                ["cargo", "info", "--registry", "crates-io", f"{crate}@{VERSION}"],
            )
        )
    owner = SLUG.split("/")[0]
    for name, repository, place, file in [
        ("Homebrew", "homebrew-tap", "Formula/lispbox.rb", "lispbox.rb"),
        ("Scoop", "scoop-bucket", "bucket/lispbox.json", "lispbox.json"),
    ]:
        clone = packages / ".work" / repository
        git = ["git", "-C", str(clone)]
        out.append(
            Step(
                name,
                [
                    ["gh", "repo", "clone", f"{owner}/{repository}", str(clone), "--", "--depth", "1"],
                    ["install", "-D", "-m", "644", str(packages / file), str(clone / place)],
                    [*git, "add", place],
                    [*git, "commit", "--message", f"lispbox {VERSION}"],
                    [*git, "push"],
                ],
            )
        )
    # It checks that npm, PyPI, the image and the bundles are there and name the server.
    out.append(Step("registry of MCP servers", [["mcp-publisher", "publish", str(packages / "server.json")]]))
    return out


def shown(command: list[str]) -> str:
    """A command on one line, with names of files instead of long paths and lists."""
    words = [re.sub(r"^(oci:)?/.*/", r"\1", word) for word in command]
    files = [word for word in words if word.endswith((".whl", ".gz", ".json", ".deb", ".rpm", ".mcpb", ".zip", ".rb"))]
    if len(files) > 2:
        words = [word for word in words if word not in files] + [f"({len(files)} files)"]
    return " ".join(words)
