"""Generates clients from the OpenAPI documents, compiles them, and runs them against the service. Prints what each can do.

Called by scripts/test-clients. PAGEBUCKET and MONGOD are the programs, NODE_MODULES is what package-lock.json names, and this
Python has what requirements.txt names. DOCUMENTS, a directory, replaces the golden documents. Arguments: only these clients.
"""

import filecmp
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = HERE / "build"
DOCUMENT = BUILD / "openapi.json"
DOCUMENT_3_0 = BUILD / "openapi-3.0.json"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "clients"
STEPS = ("compiles", "appends", "repeats", "walks", "problems")
# Only a failure waits for it.
PATIENCE = 600
ISSUER, AUDIENCE = "https://issuer.example", "https://api.example"

ENV = os.environ | {
    "PATH": os.pathsep.join([f"{HERE}/node_modules/.bin", str(Path(sys.executable).parent), os.environ["PATH"]]),
    "CARGO_TARGET_DIR": str(TARGET),
    "MYPY_CACHE_DIR": str(BUILD / "mypy"),
    "OPENAPI": str(DOCUMENT),
}


@dataclass
class Client:
    """A generator, and the commands that make its client, compile it and run it."""

    name: str
    packages: list[str]
    generate: list[list[str]]
    compile: list[list[str]]
    run: list[str]
    env: dict[str, str] = field(default_factory=dict)


def typescript(name: str, adapter: str, packages: list[str], generate: list[str]) -> Client:
    bundle = f"build/{name}.mjs"
    return Client(
        name,
        packages,
        [generate],
        [
            ["tsc", "-p", f"build/{name}/tsconfig.json"],
            ["esbuild", f"typescript/{adapter}.ts", "--bundle", "--platform=node", "--format=esm", "--log-level=warning", f"--outfile={bundle}"],
        ],
        ["node", bundle],
    )


def orval(project: str, packages: list[str]) -> Client:
    kind = "react-query" if project == "reactQuery" else project
    return typescript(f"orval-{kind}", f"orval-{kind}", ["orval", *packages], ["orval", "--project", project])


def openapi_generator(generator: str, output: str) -> list[str]:
    return ["openapi-generator-cli", "generate", "-g", generator, "-i", str(DOCUMENT), "-o", f"build/{output}"]


def rust(name: str, package: str, packages: list[str], generate: list[list[str]]) -> Client:
    manifest = ["--manifest-path", "rust/Cargo.toml", "--package", package]
    return Client(name, packages, generate, [["cargo", "build", "--quiet", "--locked", *manifest]], [str(TARGET / "debug" / package)])


OTHERS = [
    typescript(
        "openapi-typescript", "openapi-fetch", ["openapi-typescript", "openapi-fetch"],
        ["openapi-typescript", str(DOCUMENT), "--output", "build/openapi-typescript/schema.ts"],
    ),
    typescript("hey-api", "hey-api", ["@hey-api/openapi-ts"], ["openapi-ts", "--input", str(DOCUMENT), "--output", "build/hey-api"]),
    orval("fetch", []),
    orval("reactQuery", ["@tanstack/react-query"]),
    orval("zod", ["zod"]),
    typescript(
        "openapi-generator-typescript-fetch", "openapi-generator", ["openapi-generator-cli"],
        openapi_generator("typescript-fetch", "openapi-generator-typescript-fetch"),
    ),
    Client(
        "openapi-generator-python",
        ["openapi-generator-cli"],
        [openapi_generator("python", "openapi-generator-python")],
        [
            # Its code has not all types. It brings the settings that it satisfies.
            ["mypy", "--config-file", "build/openapi-generator-python/pyproject.toml", "build/openapi-generator-python/openapi_client"],
            ["mypy", "--strict", "--follow-imports=silent", "python/openapi_generator.py"],
        ],
        [sys.executable, "python/openapi_generator.py"],
        {"MYPYPATH": "build/openapi-generator-python", "PYTHONPATH": "build/openapi-generator-python"},
    ),
    Client(
        "openapi-python-client",
        ["openapi-python-client"],
        # Of 3.0, where a body of lines is a string of bytes. That of 3.1 gives it a line's type, from which it makes wrong code.
        [["openapi-python-client", "generate", "--path", str(DOCUMENT_3_0), "--config", "python/openapi_python_client.yaml",
          "--output-path", "build/openapi-python-client", "--fail-on-warning"]],
        [["mypy", "--strict", "build/openapi-python-client/pagebucket_client", "python/openapi_python_client.py"]],
        [sys.executable, "python/openapi_python_client.py"],
        {"MYPYPATH": "build/openapi-python-client", "PYTHONPATH": "build/openapi-python-client"},
    ),
]  # fmt: skip
RUST = [
    rust("openapi-generator-rust", "with-openapi-generator", ["openapi-generator-cli"], [openapi_generator("rust", "openapi-generator-rust")]),
    rust("progenitor", "with-progenitor", ["progenitor"], []),
]
CLIENTS = [*OTHERS, *RUST]


class Failed(Exception):
    pass


def execute(command: list[str], env: dict[str, str]) -> str:
    try:
        done = subprocess.run(command, cwd=HERE, env=ENV | env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"`{' '.join(command)}` has not ended after {PATIENCE} seconds") from error
    if done.returncode != 0:
        raise Failed(f"`{' '.join(command)}` failed:\n{done.stdout[-6000:]}")
    return done.stdout


def check(client: Client, service: str) -> tuple[set[str], str]:
    """The steps that the client can do, and why not the others."""
    done: set[str] = set()
    shutil.rmtree(BUILD / client.name, ignore_errors=True)
    try:
        for command in client.generate:
            execute(command, client.env)
        if client.run[0] == "node":
            adapter = client.compile[1][1]
            settings = {"extends": "../../typescript/tsconfig.json", "include": [".", f"../../{adapter}"]}
            (BUILD / client.name / "tsconfig.json").write_text(json.dumps(settings))
        for command in client.compile:
            execute(command, client.env)
        done.add("compiles")
        told = execute(client.run, client.env | {"PAGEBUCKET_URL": service, "CUSTOMER": str(1 + CLIENTS.index(client))})
    except Failed as error:
        return done, str(error)
    failures = []
    for line in told.splitlines():
        step, _, failure = line.partition(" ")
        if failure or step not in STEPS:
            failures.append(line)
        else:
            done.add(step)
    return done, "\n".join(failures)


def versions() -> dict[str, str]:
    """Of each package, from the lock files."""
    npm = json.loads((HERE / "package-lock.json").read_text())["packages"]
    found = {path.removeprefix("node_modules/"): package["version"] for path, package in npm.items() if path}
    found |= dict(re.findall(r"^([\w.-]+)==([\w.]+)", (HERE / "requirements.txt").read_text(), re.MULTILINE))
    return found | dict(re.findall(r'^name = "(progenitor)"\nversion = "(.+)"', (HERE / "rust/Cargo.lock").read_text(), re.MULTILINE))


def start_service(data: str) -> tuple[subprocess.Popen[str], str]:
    """It answers only clients that send the token."""
    keys = f"{data}/jwks.json"
    made = subprocess.run(["node", HERE / "token.mjs", keys, ISSUER, AUDIENCE], stdout=subprocess.PIPE, text=True, check=True)
    ENV["TOKEN"] = made.stdout.strip()
    command = [os.environ["PAGEBUCKET"], "serve", "--listen", "127.0.0.1:0", "--data-dir", f"{data}/data",
               "--auth", "jwt", "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE, "--jwks", keys]  # fmt: skip
    env = {name: value for name, value in os.environ.items() if name != "MONGODB_URI"}
    with open(f"{data}/log", "w") as log:
        service = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log, text=True)
    assert service.stdout
    for line in service.stdout:
        if address := re.search(r"listens on (http:\S+)", line):
            return service, address[1]
    sys.exit(f"the service does not start:\n{Path(data, 'log').read_text()}")


def prepare() -> None:
    BUILD.mkdir(exist_ok=True)
    for document in Path(os.environ.get("DOCUMENTS", ROOT / "openapi")).glob("*.json"):
        # progenitor compiles again what has a new date.
        if not (BUILD / document.name).exists() or not filecmp.cmp(document, BUILD / document.name, shallow=False):
            shutil.copyfile(document, BUILD / document.name)
    link = HERE / "node_modules"
    link.unlink(missing_ok=True)
    link.symlink_to(os.environ["NODE_MODULES"])


def main() -> int:
    clients = [client for client in CLIENTS if client.name in sys.argv[1:] or not sys.argv[1:]]
    prepare()
    found = versions()
    readme = (HERE / "README.md").read_text()
    outdated = [name for client in clients for name in client.packages if f"{name} {found[name]}" not in readme]
    with tempfile.TemporaryDirectory() as data:
        service, address = start_service(data)
        try:
            # cargo compiles one client at a time, with both cores if it has them, beside everything else.
            with ThreadPoolExecutor() as pool:
                lanes = [[client for client in clients if (client in RUST) == rust] for rust in (True, False)]
                done = pool.map(lambda lane: [(client, *check(client, address)) for client in lane], lanes)
                results = [result for lane in done for result in lane]
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait()
    for client, _, failure in results:
        if failure:
            print(f"\n{client.name}:\n{failure}")
    print("\n" + "client".ljust(38) + "".join(step.ljust(10) for step in STEPS).rstrip())
    for client, done, _ in results:
        print(client.name.ljust(38) + "".join(("yes" if step in done else "NO").ljust(10) for step in STEPS).rstrip())
    for name in dict.fromkeys(outdated):
        print(f"README.md does not name {name} {found[name]}")
    return 0 if not outdated and all(done == set(STEPS) for _, done, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
