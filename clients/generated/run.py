"""Generates clients from the OpenAPI documents, compiles them, and runs them against the service. Prints what each can do.

Called by scripts/test-clients. PAGEBUCKET and MONGOD are the programs, NODE_MODULES is what package-lock.json names, and this
Python has what requirements.txt names. JARS is what scripts/go-and-java prints; without it, clients in Go and Java are left
out. DOCUMENTS, a directory, replaces the golden documents. Arguments: only these clients.
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
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = HERE / "build"
DOCUMENT = BUILD / "openapi.json"
DOCUMENT_3_0 = BUILD / "openapi-3.0.json"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "clients"
STEPS = ("compiles", "appends", "repeats", "batches", "walks", "problems")
# Only a failure waits for it.
PATIENCE = 600
JARS = os.environ.get("JARS")
ISSUER, AUDIENCE = "https://issuer.example", "https://api.example"

ENV = os.environ | {
    "PATH": os.pathsep.join([f"{HERE}/node_modules/.bin", str(Path(sys.executable).parent), os.environ["PATH"]]),
    "CARGO_TARGET_DIR": str(TARGET),
    "MYPY_CACHE_DIR": str(BUILD / "mypy"),
    "OPENAPI": str(DOCUMENT),
    # Without modules: what a client needs is generated, or comes with Go.
    "GO111MODULE": "off",
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
    # What openapi-generator is to make, if it makes the client: all of its clients are made by one run.
    settings: dict[str, object] = field(default_factory=dict)


def typescript(name: str, adapter: str, packages: list[str], generate: list[list[str]], settings: dict[str, object] | None = None) -> Client:
    bundle = f"build/{name}.mjs"
    return Client(
        name,
        packages,
        generate,
        [
            ["tsc", "-p", f"build/{name}/tsconfig.json"],
            ["esbuild", f"typescript/{adapter}.ts", "--bundle", "--platform=node", "--format=esm", "--log-level=warning", f"--outfile={bundle}"],
        ],
        ["node", bundle],
        settings=settings or {},
    )


def orval(project: str, packages: list[str]) -> Client:
    kind = "react-query" if project == "reactQuery" else project
    return typescript(f"orval-{kind}", f"orval-{kind}", ["orval", *packages], [["orval", "--project", project]])


def openapi_generator(generator: str, output: str, **options: object) -> dict[str, object]:
    return {"generatorName": generator, "inputSpec": str(DOCUMENT), "outputDir": str(BUILD / output), **options}


def rust(name: str, package: str, packages: list[str], settings: dict[str, object]) -> Client:
    build = ["cargo", "build", "--quiet", "--locked", "--manifest-path", "rust/Cargo.toml", "--package", package]
    return Client(name, packages, [], [build], [str(TARGET / "debug" / package)], settings=settings)


def java(library: str, sources: list[str], jars: list[str], **options: object) -> Client:
    name = f"openapi-generator-java-{library}"
    classes = f"build/{name}/classes"
    jars = [*jars, f"{JARS}/geronimo-annotation-1.3-spec.jar"]
    find = f"find build/{name}/src/main/java java/Scenario.java java/{library} {' '.join(sources)} -name '*.java'"
    return Client(
        name,
        ["openapi-generator-cli"],
        [],
        [["sh", "-c", f"javac -nowarn -encoding UTF-8 -d {classes} -cp {':'.join(jars)} $({find})"]],
        # First the classes: one of them stands in for one of OkHttp.
        ["java", "-cp", ":".join([classes, *jars]), "Scenario"],
        settings=openapi_generator("java", name, library=library, **options),
    )


def generator_jar() -> str:
    """The jar of openapi-generator: it holds Jackson, which its clients for Java need."""
    generator = find_spec("openapi_generator_cli")
    assert generator and generator.origin
    return str(Path(generator.origin).parent / "openapi-generator.jar")


OTHERS = [
    typescript(
        "openapi-typescript", "openapi-fetch", ["openapi-typescript", "openapi-fetch"],
        [["openapi-typescript", str(DOCUMENT), "--output", "build/openapi-typescript/schema.ts"]],
    ),
    typescript("hey-api", "hey-api", ["@hey-api/openapi-ts"], [["openapi-ts", "--input", str(DOCUMENT), "--output", "build/hey-api"]]),
    orval("fetch", []),
    orval("reactQuery", ["@tanstack/react-query"]),
    orval("zod", ["zod"]),
    typescript(
        "openapi-generator-typescript-fetch", "openapi-generator", ["openapi-generator-cli"], [],
        openapi_generator("typescript-fetch", "openapi-generator-typescript-fetch"),
    ),
    Client(
        "openapi-generator-python",
        ["openapi-generator-cli"],
        [],
        [
            # Its code has not all types. It brings the settings that it satisfies.
            ["mypy", "--config-file", "build/openapi-generator-python/pyproject.toml", "build/openapi-generator-python/openapi_client"],
            ["mypy", "--strict", "--follow-imports=silent", "python/openapi_generator.py"],
        ],
        [sys.executable, "python/openapi_generator.py"],
        {"MYPYPATH": "build/openapi-generator-python", "PYTHONPATH": "build/openapi-generator-python"},
        openapi_generator("python", "openapi-generator-python"),
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
GO_AND_JAVA = [
    Client(
        "openapi-generator-go",
        ["openapi-generator-cli"],
        [],
        [["go", "build", "-o", "build/openapi-generator-go/client", "./go"]],
        ["build/openapi-generator-go/client"],
        {"GOPATH": str(BUILD / "openapi-generator-go")},
        openapi_generator("go", "openapi-generator-go/src/openapi"),
    ),
    java("okhttp-gson", ["java/stand-ins"], [f"{JARS}/{jar}.jar" for jar in ("okhttp", "okio", "gson", "jsr305")]),
    java("native", [], [generator_jar()], additionalProperties={"openApiNullable": False}),
]
RUST = [
    rust("openapi-generator-rust", "with-openapi-generator", ["openapi-generator-cli"], openapi_generator("rust", "openapi-generator-rust")),
    # It compiles when the other has been made, which is in the same workspace of cargo.
    rust("progenitor", "with-progenitor", ["progenitor"], {}),
]
CLIENTS = [*OTHERS, *GO_AND_JAVA, *RUST]

# Clients that are made and not compiled: of each the file with its functions, and how the two begin that append: one takes a
# trade, the other a list of them.
SIGNATURES = {
    "csharp": (
        "src/Org.OpenAPITools/Api/TradesApi.cs",
        r"Task<\w+> AppendTradesAsync\(long customerId, TradeInput tradeInput,",
        r"Task<\w+> AppendTradeBatchAsync\(long customerId, List<TradeInput> tradeInput,",
    ),
    "dart": (
        "lib/api/trades_api.dart",
        r"> appendTrades\(int customerId, TradeInput tradeInput,",
        r"> appendTradeBatch\(int customerId, List<TradeInput> tradeInput,",
    ),
    "kotlin": (
        "src/main/kotlin/org/openapitools/client/apis/TradesApi.kt",
        r"fun appendTrades\(customerId: kotlin.Long, tradeInput: TradeInput,",
        r"fun appendTradeBatch\(customerId: kotlin.Long, tradeInput: kotlin.collections.List<TradeInput>,",
    ),
    # Its types are in comments.
    "php": (
        "lib/Api/TradesApi.php",
        r"@param +\\OpenAPI\\Client\\Model\\TradeInput +\$trade_input (?:(?!\*/)[\s\S])*\*/\s+public function appendTrades\(",
        r"@param +\\OpenAPI\\Client\\Model\\TradeInput\[\] +\$trade_input (?:(?!\*/)[\s\S])*\*/\s+public function appendTradeBatch\(",
    ),
    "swift6": (
        "Sources/OpenAPIClient/APIs/TradesAPI.swift",
        r"func appendTrades\(customerId: Int64, tradeInput: TradeInput,",
        r"func appendTradeBatch\(customerId: Int64, tradeInput: \[TradeInput\],",
    ),
}


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


def generate(settings: list[dict[str, object]]) -> None:
    """Runs openapi-generator once, because most of its time is the start of its Java."""
    files = []
    for number, one in enumerate(settings):
        files.append(str(BUILD / f"settings-{number}.json"))
        Path(files[-1]).write_text(json.dumps(one))
    if files:
        execute(["openapi-generator-cli", "batch", "--threads", "2", "--fail-fast", *files], {})


def check(client: Client, service: str, generated: Future[None]) -> tuple[set[str], str]:
    """The steps that the client can do, and why not the others."""
    done: set[str] = set()
    try:
        if client.settings:
            generated.result()
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


def has_signatures(language: str, generated: Future[None]) -> str:
    """Why the generated client cannot append a trade, or a list of trades, by their type; empty if it can."""
    path, *signatures = SIGNATURES[language]
    try:
        generated.result()
        functions = (BUILD / f"signatures-{language}" / path).read_text()
    except (Failed, OSError) as error:
        return str(error)
    missing = [signature for signature in signatures if not re.search(signature, functions)]
    return "\n".join(f"{path} has no {signature}" for signature in missing)


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
    wanted = [*CLIENTS] if JARS else [client for client in CLIENTS if client not in GO_AND_JAVA]
    clients = [client for client in wanted if client.name in sys.argv[1:] or not sys.argv[1:]]
    languages = [language for language in SIGNATURES if language in sys.argv[1:] or not sys.argv[1:]]
    prepare()
    settings = [client.settings for client in clients if client.settings]
    settings += [openapi_generator(language, f"signatures-{language}") for language in languages]
    for name in [client.name for client in clients] + [f"signatures-{language}" for language in languages]:
        shutil.rmtree(BUILD / name, ignore_errors=True)
    found = versions()
    readme = (HERE / "README.md").read_text()
    outdated = [name for client in clients for name in client.packages if f"{name} {found[name]}" not in readme]
    with tempfile.TemporaryDirectory() as data:
        service, address = start_service(data)
        try:
            # cargo compiles one client at a time, with both cores if it has them, beside everything else.
            with ThreadPoolExecutor() as pool:
                generated = pool.submit(generate, settings)
                lanes = [[client for client in clients if (client in RUST) == rust] for rust in (False, True)]
                done = pool.map(lambda lane: [(client, *check(client, address, generated)) for client in lane], lanes)
                results = [result for lane in done for result in lane]
                signatures = {language: has_signatures(language, generated) for language in languages}
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait()
    for client, _, failure in results:
        if failure:
            print(f"\n{client.name}:\n{failure}")
    print("\n" + "client".ljust(38) + "".join(step.ljust(10) for step in STEPS).rstrip())
    for client, done, _ in results:
        print(client.name.ljust(38) + "".join(("yes" if step in done else "NO").ljust(10) for step in STEPS).rstrip())
    if signatures:
        print("\n" + "generated, not compiled".ljust(38) + "one or many trades by their type")
    for language, failure in signatures.items():
        print(language.ljust(38) + (f"NO\n{failure}" if failure else "yes"))
    if not JARS:
        print("Go and Java, or their libraries, are missing: their clients were left out.")
    for name in dict.fromkeys(outdated):
        print(f"README.md does not name {name} {found[name]}")
    failed = any(signatures.values()) or any(done != set(STEPS) for _, done, _ in results)
    return 1 if outdated or failed else 0


if __name__ == "__main__":
    sys.exit(main())
