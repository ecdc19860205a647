"""What `make dist` has made, installed and used as its users do.

Called by scripts/test-dist. DIST is the directory, VERSION the version, SYSTEMD_IMAGE an image of Debian 12 with systemd and a
mongod, MONGOD the path of a mongod of this machine.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import socket
import struct
import subprocess
import tarfile
import time
import tomllib
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIST = Path(os.environ["DIST"])
VERSION = os.environ["VERSION"]
X86_64, ARM64 = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
TRIPLES = {X86_64: "amd64", ARM64: "arm64"}
ITEM = '{"type":"buy","ticker":"AMD","qty":448}'
DEADLINE = 120


def run(*command: str | Path, **more: Any) -> str:
    """What the command prints. One that fails fails the test, with all that it said."""
    done = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, **more)
    assert done.returncode == 0, f"{shlex.join(map(str, command))}: {done.stdout}"
    return done.stdout


def name(triple: str) -> str:
    return f"pagebucket-{VERSION}-{triple}"


def package(triple: str) -> Path:
    return DIST / f"pagebucket_{VERSION}-1_{TRIPLES[triple]}.deb"


def unpack(triple: str, to: Path) -> Path:
    """The directory of the archive."""
    with tarfile.open(DIST / f"{name(triple)}.tar.gz") as archive:
        archive.extractall(to, filter="data")
    return to / name(triple)


def section(program: bytes, wanted: bytes) -> bytes:
    """A section of an ELF file of 64 bits."""
    (at,) = struct.unpack_from("<Q", program, 0x28)
    size, number, of_names = struct.unpack_from("<HHH", program, 0x3A)
    headers = [struct.unpack_from("<II4Q", program, at + size * n) for n in range(number)]
    names = program[headers[of_names][4] :]
    ((begin, length),) = [(begin, length) for name, _, _, _, begin, length in headers if names[name:].startswith(wanted + b"\0")]
    return program[begin : begin + length]


def test_the_sums_are_of_all_files() -> None:
    sums = dict(reversed(line.split("  ")) for line in (DIST / "SHA256SUMS").read_text().splitlines())
    assert sums == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in DIST.iterdir() if path.name != "SHA256SUMS"}


@pytest.mark.parametrize("triple", TRIPLES)
def test_an_archive_has_a_small_program_for_glibc_2_31(triple: str, tmp_path: Path) -> None:
    files = unpack(triple, tmp_path)
    names = {"LICENSE-APACHE", "LICENSE-MIT", "README.md", "licences-of-crates.txt", "completions", "man", "default"}
    names |= {"pagebucket", "pagebucket.service", "pagebucket.toml"}
    assert {path.name for path in files.iterdir()} == names
    program = (files / "pagebucket").read_bytes()
    machine = {X86_64: 62, ARM64: 183}[triple]
    assert (program[:4], int.from_bytes(program[18:20], "little")) == (b"\x7fELF", machine)
    versions = {tuple(map(int, found)) for found in re.findall(rb"GLIBC_(\d+)\.(\d+)", program)}
    assert versions and max(versions) <= (2, 31)
    assert len(program) < 24_000_000  # with the settings of `release` it has 46 MB


@pytest.mark.parametrize("triple", TRIPLES)
def test_the_list_of_crates_is_that_in_the_program(triple: str, tmp_path: Path) -> None:
    crates = json.loads(zlib.decompress(section((unpack(triple, tmp_path) / "pagebucket").read_bytes(), b".dep-v0")))["packages"]
    inside = {(crate["name"], crate["version"]) for crate in crates if crate.get("kind", "runtime") == "runtime" and not crate.get("root")}
    listed = json.loads((DIST / f"{name(triple)}.cdx.json").read_text())
    assert listed["bomFormat"] == "CycloneDX"
    assert len(inside) > 200
    assert inside - {(part["name"], part["version"]) for part in listed["components"]} == set()


def test_cargo_binstall_finds_the_program_in_the_archives() -> None:
    binstall = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["metadata"]["binstall"]
    for triple in TRIPLES:
        values = {"repo": "https://host/pagebucket", "name": "pagebucket", "bin": "pagebucket", "binary-ext": ""}
        values |= {"version": VERSION, "target": triple}
        address, inside = (binstall[key].replace("{ ", "{").replace(" }", "}").format_map(values) for key in ("pkg-url", "bin-dir"))
        with tarfile.open(DIST / address.rpartition("/")[2]) as archive:
            assert archive.getmember(inside).isfile()


def test_the_archive_runs_on_a_root_with_nothing_but_the_c_library(tmp_path: Path) -> None:
    files = unpack(X86_64, tmp_path)
    for library in re.findall(r"(/\S+) \(0x", run("ldd", files / "pagebucket")):
        copy = tmp_path / library.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, copy)
    shutil.copy(ROOT / "examples/histories/messages.json", tmp_path)
    program = ("chroot", tmp_path, f"/{files.name}/pagebucket")
    assert run(*program, "--version") == f"pagebucket {VERSION}\n"
    assert "messages" in run(*program, "histories", "check", "/messages.json")


def test_completions_are_scripts(tmp_path: Path) -> None:
    completions = unpack(X86_64, tmp_path) / "completions"
    assert sorted(path.name for path in completions.iterdir()) == ["_pagebucket", "pagebucket", "pagebucket.fish"]
    run("bash", "-n", completions / "pagebucket")


@pytest.mark.parametrize("triple", TRIPLES)
def test_lintian_finds_no_error(triple: str) -> None:
    print(run("lintian", "--allow-root", "--fail-on", "error", package(triple)))


def test_the_unit_is_valid_and_hardened(tmp_path: Path) -> None:
    unit = unpack(X86_64, tmp_path) / "pagebucket.service"
    run("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
    unit.write_text(unit.read_text().replace("ExecStart=/usr/bin/pagebucket ", f"ExecStart={unit.parent}/pagebucket "))
    assert run("systemd-analyze", "verify", "--man=no", unit) == ""


def test_the_program_for_arm64_serves_in_an_emulator(tmp_path: Path) -> None:
    program = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", unpack(ARM64, tmp_path) / "pagebucket"]
    assert run(*program, "--version") == f"pagebucket {VERSION}\n"
    assert "messages" in run(*program, "histories", "check", ROOT / "examples/histories/messages.json")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    server = subprocess.Popen([*program, "serve", "--listen", address, "--data-dir", tmp_path / "data"])
    try:
        wait_until(lambda: answers(f"http://{address}/readyz"))
        appended = urllib.request.Request(f"http://{address}/v1/customers/7/trades", ITEM.encode(), {"Content-Type": "application/json"})
        assert json.load(urllib.request.urlopen(appended, timeout=30))["totalItems"] == 1
        # Of Swagger UI it has what its page loads.
        for name in ("swagger-ui.css", "swagger-ui-bundle.js"):
            assert len(urllib.request.urlopen(f"http://{address}/docs/{name}", timeout=30).read()) > 100_000
    finally:
        server.terminate()
        server.wait(DEADLINE)


def answers(address: str) -> bool:
    try:
        return urllib.request.urlopen(address, timeout=5).status == 200
    except OSError:
        return False


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Machine:
    """A Debian 12 with nothing but its base, systemd, and a mongod in /opt/mongod."""

    def __init__(self) -> None:
        # What systemd needs in a container: it mounts its own control groups, and confines its services.
        may = ["--cap-add=SYS_ADMIN", "--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined", "--cgroupns=private"]
        places = [f"--tmpfs={place}" for place in ("/run", "/tmp", "/sys/fs/cgroup")]
        label = f"--label=pagebucket.test-run={os.getpid()}"
        self.id = run(
            "docker", "run", "--detach", "--rm", "--env=container=docker", label, *may, *places, os.environ["SYSTEMD_IMAGE"]
        ).strip()
        wait_until(lambda: self.sh("systemctl is-system-running || true") == "running\n")
        # A container may have no user namespaces.
        changed = "/etc/systemd/system/pagebucket.service.d"
        self.sh(rf"mkdir {changed} && printf '[Service]\nPrivateUsers=no\n' >{changed}/test.conf")

    def sh(self, script: str) -> str:
        return run("docker", "exec", self.id, "bash", "-euc", script)

    def install(self, path: Path) -> None:
        run("docker", "cp", path, f"{self.id}:/root/pagebucket.deb")
        self.sh("dpkg --force-confold -i /root/pagebucket.deb")

    def files(self) -> list[str]:
        """Those of the package, of its settings and of its data, one of each kind."""
        settings = "/etc/default/pagebucket /etc/pagebucket/pagebucket.toml /etc/systemd/system/multi-user.target.wants/pagebucket.service"
        return self.sh(f"ls /usr/bin/pagebucket {settings} /var/lib/pagebucket/password 2>/dev/null || true").split()

    def started(self) -> str:
        """The time at which the service was started, if it runs."""
        return self.sh("systemctl show --property=ActiveState,ExecMainStartTimestampMonotonic pagebucket")

    def wait_until_ready(self) -> None:
        wait_until(lambda: self.request("GET", "/readyz")[0] == 200)

    def request(self, method: str, path: str, body: str = "") -> tuple[int, str]:
        """The status and the body; (0, "") if no server listens. The base has neither curl nor Python."""
        fields = ("Host: localhost", "Connection: close", "Content-Type: application/json", f"Content-Length: {len(body)}")
        head = r"\r\n".join((f"{method} {path} HTTP/1.1", *fields, "", ""))
        answer = self.sh(f"(exec 3<>/dev/tcp/127.0.0.1/8080 && printf '{head}%s' {shlex.quote(body)} >&3 && cat <&3) 2>/dev/null || true")
        head, _, body = answer.partition("\n\n")
        return (int(head.split()[1]), body) if head else (0, "")

    def append(self) -> int:
        """The number of items after it."""
        status, body = self.request("POST", "/v1/customers/7/trades", ITEM)
        assert status == 201, body
        return int(re.search(r'"totalItems":(\d+)', body)[1])  # type: ignore[index]


@pytest.fixture
def machine() -> Iterator[Machine]:
    machine = Machine()
    yield machine
    run("docker", "rm", "--force", "--volumes", machine.id)


def before(tmp_path: Path) -> Path:
    """A package of the version before: PREVIOUS_DEB, or this one under a lower number, as long as nothing is released."""
    if path := os.environ.get("PREVIOUS_DEB"):
        return Path(path)
    tree = tmp_path / "before"
    run("dpkg-deb", "--raw-extract", package(X86_64), tree)
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*$", "Version: 0.0.1-1", control.read_text()))
    run("dpkg-deb", "--build", "-Znone", tree, tmp_path / "before.deb")
    return tmp_path / "before.deb"


def test_the_package_serves_is_upgraded_and_goes_without_a_loss(machine: Machine, tmp_path: Path) -> None:
    machine.install(before(tmp_path))
    assert machine.sh("systemctl is-enabled pagebucket || true; systemctl is-active pagebucket || true") == "disabled\ninactive\n"
    assert machine.sh("stat -c '%a %U' /etc/default/pagebucket") == "600 root\n"
    machine.sh("echo MONGOD=/opt/mongod/mongod >>/etc/default/pagebucket; echo 'max-requests = 77' >>/etc/pagebucket/pagebucket.toml")
    machine.sh("systemctl enable --now pagebucket")
    machine.wait_until_ready()
    assert (machine.append(), machine.append()) == (1, 2)

    first = machine.started()
    machine.install(package(X86_64))
    assert machine.sh("dpkg-query -W -f '${Version}' pagebucket") == f"{VERSION}-1"
    assert "max-requests = 77" in machine.sh("cat /etc/pagebucket/pagebucket.toml")
    machine.wait_until_ready()
    assert "ActiveState=active" in first and "ActiveState=active" in machine.started() != first
    assert machine.append() == 3
    assert machine.request("GET", "/v1/customers/7/trades?page=1")[1].count('"qty":448') == 3

    machine.sh("dpkg --remove pagebucket")
    assert machine.sh("cat /proc/[0-9]*/comm | grep -xE 'pagebucket|mongod' || true") == ""
    assert machine.files() == [
        "/etc/default/pagebucket",
        "/etc/pagebucket/pagebucket.toml",
        "/etc/systemd/system/multi-user.target.wants/pagebucket.service",
        "/var/lib/pagebucket/password",
    ]
    machine.install(package(X86_64))
    machine.sh("systemctl start pagebucket")
    machine.wait_until_ready()
    assert machine.append() == 4

    assert "/var/lib/pagebucket" in machine.sh("dpkg --purge pagebucket")
    assert machine.files() == ["/var/lib/pagebucket/password"]


def test_the_first_item_is_appended_soon_after_the_installation(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    machine.install(package(X86_64))
    installed = time.monotonic()
    machine.sh("echo MONGOD=/opt/mongod/mongod >>/etc/default/pagebucket; systemctl start pagebucket")
    machine.wait_until_ready()
    assert machine.append() == 1
    with capsys.disabled():
        taken = f"{time.monotonic() - began:.1f} s, of which {installed - began:.1f} s are the installation"
        print(f"\nfrom `dpkg -i` to the first appended item: {taken}")


def test_the_crates_that_are_public_can_be_published() -> None:
    metadata = json.loads(run("cargo", "metadata", "--no-deps", "--format-version=1", "--offline", cwd=ROOT))
    public = sorted(crate["name"] for crate in metadata["packages"] if crate["publish"] is None or crate["publish"])
    assert public == ["pagebucket-engine", "pagebucket-model"]
    # scripts/packages compiles them from what is in them.
    run("cargo", "publish", "--dry-run", "--no-verify", "--locked", *(f"--package={crate}" for crate in public), cwd=ROOT)
