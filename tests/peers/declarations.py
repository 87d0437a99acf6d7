"""Measures the rules for declarations of tools on published servers: how many tools read like instructions to them,
and how many are declared differently at the next start of the same version.

    declarations.py install FOLDER           installs the servers from npm and PyPI, each in a folder of its own
    declarations.py measure FOLDER LISPBOX   lists their tools twice through `lispbox config check`

The servers are started without valid credentials, which none of them needs to list its tools.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

# Name, package, command, arguments, variables. `{}` is a folder for the server's files.
NPM = [
    ("filesystem", "@modelcontextprotocol/server-filesystem", "mcp-server-filesystem", ["{}"], {}),
    ("memory", "@modelcontextprotocol/server-memory", "mcp-server-memory", [], {}),
    ("everything", "@modelcontextprotocol/server-everything", "mcp-server-everything", [], {}),
    ("thinking", "@modelcontextprotocol/server-sequential-thinking", "mcp-server-sequential-thinking", [], {}),
    ("postgres", "@modelcontextprotocol/server-postgres", "mcp-server-postgres", ["postgresql://a@127.0.0.1:9/a"], {}),
    ("github", "@modelcontextprotocol/server-github", "mcp-server-github", [], {"GITHUB_PERSONAL_ACCESS_TOKEN": "x"}),
    ("gitlab", "@modelcontextprotocol/server-gitlab", "mcp-server-gitlab", [], {"GITLAB_PERSONAL_ACCESS_TOKEN": "x"}),
    ("slack", "@modelcontextprotocol/server-slack", "mcp-server-slack", [],
     {"SLACK_BOT_TOKEN": "xoxb-x", "SLACK_TEAM_ID": "T1"}),
    ("maps", "@modelcontextprotocol/server-google-maps", "mcp-server-google-maps", [], {"GOOGLE_MAPS_API_KEY": "x"}),
    ("brave", "@modelcontextprotocol/server-brave-search", "mcp-server-brave-search", [], {"BRAVE_API_KEY": "x"}),
    ("desktop", "@wonderwhy-er/desktop-commander", "desktop-commander", [], {}),
    ("obsidian", "mcp-obsidian", "mcp-obsidian", ["{}"], {}),
    ("calc", "@coo-quack/calc-mcp", "calc-mcp", [], {}),
    ("git-ts", "@cyanheads/git-mcp-server", "git-mcp-server", [], {}),
    ("shrimp", "mcp-shrimp-task-manager", "mcp-shrimp-task-manager", [], {"DATA_DIR": "{}", "ENABLE_GUI": "false"}),
    ("howtocook", "howtocook-mcp", "howtocook-mcp", [], {}),
    ("ripgrep", "mcp-ripgrep", "mcp-ripgrep", [], {}),
    ("drawio", "drawio-mcp-server", "drawio-mcp-server", [], {}),
    ("fastfs", "fast-filesystem-mcp", "fast-filesystem-mcp", ["--allow", "{}"], {}),
    ("coderunner", "mcp-server-code-runner", "mcp-server-code-runner", [], {}),
    ("playwright", "@playwright/mcp", "playwright-mcp", ["--headless", "--caps", "vision,pdf"], {}),
    ("devtools", "chrome-devtools-mcp", "chrome-devtools-mcp", ["--headless", "--isolated"], {}),
    ("mongodb", "mongodb-mcp-server", "mongodb-mcp-server", [], {"MDB_MCP_TELEMETRY": "disabled"}),
    ("n8n", "n8n-mcp", "n8n-mcp", [], {"MCP_MODE": "stdio", "DISABLE_CONSOLE_OUTPUT": "true"}),
    ("eslint", "@eslint/mcp", "mcp", [], {}),
    ("ms365", "@softeria/ms-365-mcp-server", "ms-365-mcp-server", [], {}),
    ("context7", "@upstash/context7-mcp", "context7-mcp", [], {}),
    ("tavily", "tavily-mcp", "tavily-mcp", [], {"TAVILY_API_KEY": "x"}),
    ("exa", "exa-mcp-server", "exa-mcp-server", [], {"EXA_API_KEY": "x"}),
    ("firecrawl", "firecrawl-mcp", "firecrawl-mcp", [], {"FIRECRAWL_API_KEY": "x"}),
    ("notion", "@notionhq/notion-mcp-server", "notion-mcp-server", [], {"NOTION_TOKEN": "x"}),
]
PYPI = [
    ("git", ["mcp-server-git"], "mcp-server-git", [], {}),
    ("time", ["mcp-server-time"], "mcp-server-time", [], {}),
    ("fetch", ["mcp-server-fetch"], "mcp-server-fetch", [], {}),
    ("sqlite", ["mcp-server-sqlite", "mcp==1.6.0", "pydantic<2.11"], "mcp-server-sqlite", ["--db-path", "{}/a.db"], {}),
    ("duckdb", ["mcp-server-duckdb", "mcp==1.2.0", "pydantic<2.11"], "mcp-server-duckdb", ["--db-path", "{}/a.duckdb"], {}),
    ("excel", ["excel-mcp-server"], "excel-mcp-server", ["stdio"], {}),
    ("word", ["office-word-mcp-server"], "word_mcp_server", [], {}),
    ("textedit", ["mcp-text-editor", "mcp<2"], "mcp-text-editor", [], {}),
    ("codeindex", ["code-index-mcp"], "code-index-mcp", [], {}),
    ("cli", ["cli-mcp-server", "mcp<2"], "cli-mcp-server", [], {"ALLOWED_DIR": "{}"}),
    ("calculator", ["mcp-server-calculator"], "mcp-server-calculator", [], {}),
    ("jcodemunch", ["jcodemunch-mcp"], "jcodemunch-mcp", [], {}),
    ("pdftools", ["pdf-tools-mcp", "mcp<2"], "pdf-tools-mcp", ["--workspace_path", "{}"], {}),
    ("alchemy", ["mcp-alchemy"], "mcp-alchemy", [], {"DB_URL": "sqlite:///{}/a.db"}),
]


def install(folder):
    variables = {**os.environ, "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1", "PUPPETEER_SKIP_DOWNLOAD": "1"}
    for name, package, *_ in NPM:
        prefix = os.path.join(folder, "npm", name)
        os.makedirs(prefix, exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", prefix, package], env=variables)
    for name, packages, *_ in PYPI:
        venv = os.path.join(folder, "py", name)
        subprocess.run([sys.executable, "-m", "venv", venv])
        subprocess.run([os.path.join(venv, "bin", "pip"), "install", "--quiet", *packages])


def servers(folder, data):
    for kind, table in (("npm", NPM), ("py", PYPI)):
        for name, _, command, arguments, variables in table:
            place = "node_modules/.bin" if kind == "npm" else "bin"
            command = os.path.join(folder, kind, name, place, command)
            if os.path.exists(command):
                filled = {key: value.replace("{}", data) for key, value in variables.items()}
                arguments = [argument.replace("{}", data) for argument in arguments]
                yield name, {"command": command, "args": arguments, "env": filled, "start_timeout_seconds": 90}
            else:
                print(f"{name}: not installed")


def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts(item)


def measure(folder, lispbox):
    data = tempfile.mkdtemp()
    configuration = os.path.join(data, "servers.json")
    with open(configuration, "w") as file:
        json.dump({"mcpServers": dict(servers(os.path.abspath(folder), data))}, file)
    variables = {**os.environ, "LISPBOX_CACHE": "off", "LISPBOX_PINS": os.path.join(data, "pins")}
    for _ in range(2):
        checked = subprocess.run([lispbox, "config", "check", "--config", configuration], env=variables, text=True,
                                 capture_output=True)
    print("\n".join(line for line in checked.stdout.splitlines() if "instructions" in line or "changed" in line
                    or line.startswith("broken")))
    records = [json.load(open(file)) for file in glob.glob(os.path.join(data, "pins", "*.json"))]
    pins = [pin for record in records for pin in record["tools"].values()]
    suspicious = [pin for pin in pins if pin["suspicions"]["names"] or pin["suspicions"]["texts"]]
    changed = [pin for pin in pins if "change" in pin]
    count = sum(1 for pin in pins for _ in texts(pin["declaration"]))
    print(f"{len(records)} servers, {len(pins)} tools, {count} texts: {len(suspicious)} suspicious, "
          f"{len(changed)} declared differently at the second start")
    shutil.rmtree(data)


if __name__ == "__main__":
    install(sys.argv[2]) if sys.argv[1] == "install" else measure(sys.argv[2], sys.argv[3])
