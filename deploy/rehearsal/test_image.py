"""The image: what it is made of, and that it serves as it is deployed: another user, nothing that it can write, and a health check.

Called by scripts/test-deploy. PAGEBUCKET is a program that is compiled already: to compile it in the image's first stage takes long,
and only that is left out.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAME = f"pagebucket-rehearsal-{os.getpid()}"
# A start takes long on a slow machine.
PATIENCE = 300


def run(*command: str | Path) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def wait(until: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of the Dockerfile, but with the program in place of what compiles it."""
    context = tmp_path_factory.mktemp("context")
    shutil.copy(os.environ["PAGEBUCKET"], context / "pagebucket")
    text = (ROOT / "Dockerfile").read_text()
    begin, end = text.index("# Builds the dependencies"), text.index("# The image's files")
    assert text[begin:end].rstrip().endswith("/pagebucket"), "the program is where it is copied from"
    strip = "RUN strip /pagebucket"
    (context / "Dockerfile").write_text(f"{text[:begin]}COPY pagebucket /pagebucket\n{strip}\n{text[end:]}")
    base = run(ROOT / "scripts/local-base-images").split("\n")[-2].split()
    run("docker", "build", "--network", "host", "--tag", NAME, *base, context)
    yield NAME
    run("docker", "image", "rm", "--force", NAME)


@pytest.fixture(scope="module")
def mongod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a member of a replica set that is not initiated."""
    data, port = tmp_path_factory.mktemp("data"), free_port()
    options = ["--dbpath", data, "--port", str(port), "--replSet", "rs0", "--bind_ip", "127.0.0.1", "--wiredTigerCacheSizeGB", "0.25"]
    process = subprocess.Popen([os.environ["MONGOD"], *options], stdout=subprocess.DEVNULL)
    wait(lambda: not socket.socket().connect_ex(("127.0.0.1", port)))
    yield port
    process.terminate()
    process.wait()


def test_cargo_finds_the_manifests_and_sources_of_all_crates(tmp_path: Path) -> None:
    """Before and after the sources are copied. Only that it compiles them is left out."""
    text = (ROOT / "Dockerfile").read_text()
    step = "cargo metadata --locked --format-version 1 > /metadata && rm -r api"
    stage = re.sub(r"cargo build .*\\\n && .*", step, text[: text.index("# The image's files")])
    assert stage.count(step) == 2
    (tmp_path / "Dockerfile").write_text(stage)
    base = run(ROOT / "scripts/local-base-images").split("\n")[-2].split()
    tag = f"{NAME}-metadata"
    run("docker", "build", "--network", "host", "--tag", tag, "--file", tmp_path / "Dockerfile", *base, ROOT)
    run("docker", "image", "rm", "--force", tag)


def inspect(name: str) -> dict[str, Any]:
    [only] = json.loads(run("docker", "inspect", name))
    return only


def test_it_is_small_and_says_what_it_is(image: str) -> None:
    found = inspect(image)
    assert found["Size"] < 60_000_000
    config = found["Config"]
    assert config["User"] == "65532:65532"
    assert config["Healthcheck"]["Test"] == ["CMD", "pagebucket", "healthcheck"]
    assert config["Labels"]["org.opencontainers.image.title"] == "pagebucket"
    version = run("docker", "run", "--rm", image, "--version")
    assert version == f"pagebucket {config['Labels']['org.opencontainers.image.version']}\n"


def test_it_has_the_program_and_its_libraries_alone(image: str, tmp_path: Path) -> None:
    run("docker", "create", "--name", f"{NAME}-files", image)
    try:
        run("docker", "export", "--output", tmp_path / "files.tar", f"{NAME}-files")
    finally:
        run("docker", "rm", f"{NAME}-files")
    names = run("tar", "--list", "--file", tmp_path / "files.tar").split()
    # The engine adds empty files and directories of its own.
    ours = [
        name for name in names if not name.endswith("/") and not re.match(r"etc/(hosts|hostname|mtab|resolv\.conf)$|dev/|\.dockerenv", name)
    ]
    libraries = [name for name in ours if re.match(r"(usr/)?lib(64)?/", name)]
    assert sorted({*ours} - {*libraries}) == ["etc/nsswitch.conf", "etc/passwd", "usr/local/bin/pagebucket"]
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "--dynamic", os.environ["PAGEBUCKET"]))
    assert {"libc.so.6", *needed} <= {Path(name).name for name in libraries}


def test_it_serves_as_any_user_and_writes_nothing(image: str, mongod: int) -> None:
    name, port = f"{NAME}-serves", free_port()
    uri = f"MONGODB_URI=mongodb://localhost:{mongod}/?directConnection=true"
    hard = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--network", "host"]
    run("docker", "run", "--rm", *hard, "--env", uri, image, "migrate", "--initiate")
    settings = ["--env", uri, "--env", f"PAGEBUCKET_LISTEN=127.0.0.1:{port}"]
    run("docker", "run", "--detach", "--name", name, *hard, *settings, image)
    try:
        wait(lambda: inspect(name)["State"]["Health"]["Status"] == "healthy")
        address = f"http://127.0.0.1:{port}/v1/customers/7/trades"
        item = json.dumps({"type": "buy", "ticker": "MDB", "qty": 1}).encode()
        with urllib.request.urlopen(urllib.request.Request(address, item, {"content-type": "application/json"})) as appended:
            assert appended.status == 201
        with urllib.request.urlopen(address) as listed:
            assert [each["qty"] for each in json.load(listed)["items"]] == [1]
        status = Path(f"/proc/{inspect(name)['State']['Pid']}/status").read_text()
        assert re.search(r"^Uid:\s65532\s65532\s65532\s65532$", status, re.MULTILINE)
        assert re.search(r"^CapEff:\s0+$", status, re.MULTILINE)
        # Mount points of the engine.
        assert {line for line in run("docker", "diff", name).splitlines() if not re.match(r"[AC] /(etc|dev|proc|sys)\b", line)} == set()
        run("docker", "stop", "--time", "60", name)
        assert inspect(name)["State"]["ExitCode"] == 0
    finally:
        print(subprocess.run(["docker", "logs", name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout)
        run("docker", "rm", "--force", name)


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_the_first_steps_find_a_compiler_for_each_processor(architecture: str, tmp_path: Path) -> None:
    """To compile it all for both takes half an hour. That a small program is compiled for another processor is tried here."""
    text = (ROOT / "Dockerfile").read_text()
    begin, end = text.index("# Builds the dependencies"), text.index("# The image's files")
    crate = (
        'printf "[package]\\nname = \\"pagebucket\\"\\nversion = \\"0.1.0\\"\\n" > Cargo.toml; mkdir src; echo "fn main() {}" > src/main.rs'
    )
    build = f"RUN {crate}; cargo build --release && cp target/*-linux-gnu/release/pagebucket /pagebucket"
    (tmp_path / "Dockerfile").write_text(f"{text[:begin]}{build}\n{text[end:]}")
    base = run(ROOT / "scripts/local-base-images").split("\n")[-2].split()
    tag = f"{NAME}-{architecture}"
    run("docker", "build", "--network", "host", "--tag", tag, "--build-arg", f"TARGETARCH={architecture}", *base, tmp_path)
    container = run("docker", "create", tag).strip()
    try:
        run("docker", "export", "--output", tmp_path / "files.tar", container)
    finally:
        run("docker", "rm", container)
        run("docker", "image", "rm", "--force", tag)
    run("tar", "--extract", "--directory", tmp_path, "--file", tmp_path / "files.tar", "usr/local/bin", "lib")
    machine = {"amd64": 62, "arm64": 183}[architecture]
    binaries = [tmp_path / "usr/local/bin/pagebucket", *(tmp_path / "lib").glob("*.so*")]
    assert len(binaries) > 2
    assert {int.from_bytes(binary.read_bytes()[18:20], "little") for binary in binaries} == {machine}
