"""What package indexes read: a formula of Homebrew, a manifest of Scoop, and `server.json` for the registry of MCP
servers. Each names files by address and digest, so that it is uploaded after them."""

import json
from pathlib import Path

from .files import sha256
from .project import DOWNLOADS, IMAGE, LICENSE, LINE, MCP_NAME, REPOSITORY, SHORT, SUMMARY, VERSION
from .targets import Target

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"


def homebrew(archives: dict[Target, Path], output: Path) -> Path:
    """The formula, for the platforms that there are."""
    lines = [
        "class Lispbox < Formula",
        f'  desc "{LINE}"',
        f'  homepage "{REPOSITORY}"',
        f'  version "{VERSION}"',
        f"  license any_of: [{', '.join(chr(34) + name + chr(34) for name in LICENSE.split(' OR '))}]",
    ]
    for system, block in [("darwin", "on_macos"), ("linux", "on_linux")]:
        choices = [(target, path) for target, path in archives.items() if target.os == system and target.libc != "musl"]
        if choices:
            lines += ["", f"  {block} do"]
            for target, path in choices:
                cpu = "on_arm" if target.cpu == "arm64" else "on_intel"
                lines += [
                    f"    {cpu} do",
                    f'      url "{DOWNLOADS}/{path.name}"',
                    f'      sha256 "{sha256(path)}"',
                    "    end",
                ]
            lines += ["  end"]
    lines += [
        "",
        "  def install",
        '    bin.install "lispbox"',
        '    (var/"lispbox").mkpath',
        '    man1.install Dir["man/*.1"]',
        '    bash_completion.install "completions/lispbox.bash" => "lispbox"',
        '    zsh_completion.install "completions/_lispbox"',
        '    fish_completion.install "completions/lispbox.fish"',
        "  end",
        "",
        "  service do",
        '    environment_variables LISPBOX_STORE: "sqlite:#{var}/lispbox/sessions.db"',
        '    run [opt_bin/"lispbox", "serve", "--http", "127.0.0.1:8787"]',
        "    keep_alive true",
        "  end",
        "",
        "  test do",
        '    assert_equal "2", shell_output("#{bin}/lispbox eval \'(+ 1 1)\'").strip',
        "  end",
        "end",
    ]
    path = output / "lispbox.rb"
    path.write_text("\n".join(lines) + "\n")
    return path


def scoop(windows: Path, output: Path) -> Path:
    folder = windows.name.removesuffix(".zip")
    manifest = {
        "version": VERSION,
        "description": SUMMARY,
        "homepage": REPOSITORY,
        "license": LICENSE.replace(" OR ", "|"),
        "architecture": {
            "64bit": {"url": f"{DOWNLOADS}/{windows.name}", "hash": sha256(windows), "extract_dir": folder},
        },
        "bin": "lispbox.exe",
        "checkver": "github",
        "autoupdate": {
            "architecture": {
                "64bit": {
                    "url": f"{REPOSITORY}/releases/download/v$version/{windows.name.replace(VERSION, '$version')}",
                    "extract_dir": folder.replace(VERSION, "$version"),
                },
            },
            "hash": {"url": "$baseurl/SHA256SUMS"},
        },
    }
    path = output / "lispbox.json"
    path.write_text(json.dumps(manifest, indent=4) + "\n")
    return path


def server_json(bundles: list[Path], output: Path) -> Path:
    """How MCP clients find and start lispbox: from npm, PyPI, as an image or as a bundle."""

    def variable(name: str, description: str, **more: object) -> dict:
        return {"name": name, "description": description, **more}

    variables = [
        variable(
            "LISPBOX_CONFIG",
            "A file with the servers whose tools programs may call, in the format of MCP clients",
            format="filepath",
        ),
        variable("LISPBOX_GUARDS", "Guards on the arguments of tools with effects", choices=["careful", "strict"]),
        variable("LISPBOX_STORE", "The store in which sessions outlive the process", placeholder="sqlite:sessions.db"),
    ]
    serve = [{"type": "positional", "value": "serve"}]
    stdio = {"transport": {"type": "stdio"}, "environmentVariables": variables}
    packages = [
        {
            "registryType": "npm",
            "registryBaseUrl": "https://registry.npmjs.org",
            "identifier": "lispbox",
            "version": VERSION,
            "runtimeHint": "npx",
            "packageArguments": serve,
            **stdio,
        },
        {
            "registryType": "pypi",
            "registryBaseUrl": "https://pypi.org",
            "identifier": "lispbox",
            "version": VERSION,
            "runtimeHint": "uvx",
            "packageArguments": serve,
            **stdio,
        },
        {
            "registryType": "oci",
            "identifier": f"{IMAGE}:{VERSION}",
            "runtimeHint": "docker",
            "packageArguments": serve,
            **stdio,
        },
        *[
            {
                "registryType": "mcpb",
                "identifier": f"{DOWNLOADS}/{path.name}",
                "version": VERSION,
                "fileSha256": sha256(path),
                "transport": {"type": "stdio"},
            }
            for path in bundles
        ],
    ]
    document = {
        "$schema": SCHEMA,
        "name": MCP_NAME,
        "title": "lispbox",
        "description": SHORT,
        "version": VERSION,
        "repository": {"url": REPOSITORY, "source": "github"},
        "packages": packages,
    }
    path = output / "server.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path
