"""docs/how-to/deploy.md, block by block, on three machines (deploy/rehearsal/machines), as it is printed.

Called by scripts/test-deploy. PAGEBUCKET is the program in the package; DEB names a package instead.
"""

import http.client
import json
import os
import random
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/how-to/deploy.md").read_text()
MACHINES = ROOT / "deploy/rehearsal/machines"
# Of a block. A package is installed, a set elects a primary, an image is unpacked.
PATIENCE = 300


def blocks() -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def without_room(block: str) -> str:
    """The block, where no file may have more than 64 KiB, and whatever fails in it."""
    return f"(trap '' XFSZ; ulimit -f 64\n{block}) || true"


def in_new_shell(block: str) -> str:
    """The block, where nothing has read the file of variables."""
    return f"unset MONGODB_URI\n{block}"


EACH = "for machine in one two; do ssh $machine '{}'; done"
ALLOW_ERASE = EACH.format("echo allow-erase = true >> /etc/pagebucket/pagebucket.toml && systemctl restart pagebucket")
READY = "until curl -fsS http://one:8080/readyz && curl -fsS http://two:8080/readyz; do sleep 1; done"


class Shell:
    """The reader's shell on `one`: what a block sets, the next ones know. It ends with the first command that fails."""

    def __init__(self, log: Path) -> None:
        self.log = log
        with log.open("w") as said:
            command = [MACHINES, "shell", "bash", "-e", "-o", "pipefail"]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT, text=True)
        self.blocks = 0

    def run(self, block: str) -> str:
        """What it prints."""
        self.blocks += 1
        before, end = len(self.log.read_text()), f"end of block {self.blocks}"
        self.put("block.sh", block)
        assert self.process.stdin
        self.process.stdin.write(f". ./block.sh < /dev/null\necho {end}\n")
        self.process.stdin.flush()
        deadline = time.monotonic() + PATIENCE
        while f"{end}\n" not in (said := self.log.read_text()[before:]):
            assert self.process.poll() is None and time.monotonic() < deadline, f"{block}\n{said}"
            time.sleep(0.05)
        return said.removesuffix(f"{end}\n")

    def put(self, name: str, content: str | bytes) -> None:
        """A file in the reader's directory."""
        content = content.encode() if isinstance(content, str) else content
        subprocess.run([MACHINES, "shell", "sh", "-c", f"cat > {name}"], input=content, check=True)


def package(directory: Path) -> Path:
    """DEB, or a package of the program as scripts/dist makes it, without pages of man and completions."""
    if given := os.environ.get("DEB"):
        return Path(given)
    tree, packaging = directory / "tree", ROOT / "packaging"
    for source, target, mode in [
        (os.environ["PAGEBUCKET"], "usr/bin/pagebucket", 0o755),
        (packaging / "pagebucket.service", "lib/systemd/system/pagebucket.service", 0o644),
        (packaging / "pagebucket.toml", "etc/pagebucket/pagebucket.toml", 0o644),
        (packaging / "default", "etc/default/pagebucket", 0o600),
        *((packaging / "deb" / script, f"DEBIAN/{script}", 0o755) for script in ("postinst", "prerm", "postrm")),
    ]:
        (tree / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, tree / target)
        (tree / target).chmod(mode)
    (tree / "DEBIAN/conffiles").write_text("/etc/default/pagebucket\n/etc/pagebucket/pagebucket.toml\n")
    fields = {"Package": "pagebucket", "Version": "0-1", "Architecture": "amd64", "Maintainer": "nobody", "Description": "rehearsal"}
    (tree / "DEBIAN/control").write_text("".join(f"{name}: {value}\n" for name, value in fields.items()))
    file = directory / "pagebucket.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", tree, file], check=True, stdout=subprocess.DEVNULL)
    return file


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """Three machines."""
    subprocess.run([MACHINES, "up", package(tmp_path)], check=True)
    shell = Shell(tmp_path / "log")
    try:
        yield shell
    finally:
        print(shell.log.read_text())
        shell.process.kill()
        if not os.environ.get("KEEP"):
            subprocess.run([MACHINES, "down"], check=True)


class Client:
    """One connection, by HTTP/1.1. Nothing is sent twice."""

    def __init__(self, key: str, authorities: ssl.SSLContext) -> None:
        self.key, self.authorities = key, authorities
        self.connection: http.client.HTTPSConnection | None = None

    def ask(self, method: str, path: str, item: Any = None, key: str | None = None) -> tuple[int, Any]:
        if self.connection is None:
            self.connection = http.client.HTTPSConnection("api.example")
            plain = socket.create_connection(("10.87.0.13", 443), timeout=PATIENCE)
            self.connection.sock = self.authorities.wrap_socket(plain, server_hostname="api.example")
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        if key:
            headers["idempotency-key"] = key
        self.connection.request(method, path, json.dumps(item) if item else None, headers)
        answer = self.connection.getresponse()
        body = json.loads(answer.read())
        self.limit = answer.headers["ratelimit-policy"]
        if answer.will_close:  # nginx ends a connection after 1,000 requests
            self.connection.close()
            self.connection = None
        return answer.status, body


def load(clients: list[Client], work: Callable[[], object]) -> int:
    """Appends and reads by each client until the work is done, and the number of requests. None may fail."""
    over, failures, requests, first = threading.Event(), list[str](), [0], random.randrange(1000, 10**9)

    def one(owner: int, client: Client) -> None:
        path, stored = f"/v1/customers/{owner}/trades", 0
        try:
            while not over.is_set() or not stored:
                stored += 1
                status, answer = client.ask("POST", path, {"type": "buy", "ticker": "MDB", "qty": stored}, f"{owner}-{stored}")
                assert status == 201, answer
                status, answer = client.ask("GET", f"{path}?limit=1&order=desc")
                assert (status, [item["seq"] for item in answer["items"]]) == (200, [stored]), answer
                requests[0] += 2
                # Less than the rate limit of the page.
                over.wait(0.05)
        except Exception as error:
            failures.append(f"{owner}, item {stored}: {error!r}")

    threads = [threading.Thread(target=one, args=(first + number, client)) for number, client in enumerate(clients)]
    for thread in threads:
        thread.start()
    try:
        work()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not failures, failures
    return requests[0]


def test_each_block_works_as_it_is_printed(shell: Shell) -> None:
    replica_set, user, instances, keys, conf, nginx, prometheus, back_up, restore, upgrade = blocks()
    shell.run(replica_set)
    members = shell.run(user)
    assert [members.count(state) for state in ("PRIMARY", "SECONDARY")] == [1, 2], members
    passwords = shell.run("cat *.password")
    shell.run(user)
    assert shell.run("cat *.password") == passwords, "they are those of the users"
    for block in (instances, keys, conf):
        shell.run(block)
    assert shell.run(nginx).endswith(" over HTTP/2\n")
    shell.run(prometheus)

    key = shell.run("echo $KEY").strip()
    authorities = ssl.create_default_context(cadata=shell.run("cat fullchain.pem"))
    clients = [Client(key, authorities) for _ in range(4)]
    path = "/v1/customers/7/trades"
    assert clients[0].ask("GET", path)[1]["items"][0]["qty"] == 419
    assert clients[0].limit == '"reads";q=1000;w=10'
    assert Client("pb_wrong", authorities).ask("GET", path)[0] == 401

    shell.run(f"{ALLOW_ERASE}\n{READY}")
    shell.run("ADMIN=$(pagebucket keys create --name admin --scope read,append,admin)")
    admin = shell.run("echo $ADMIN").strip()
    item, erased = {"type": "buy", "ticker": "MDB", "qty": 2}, "/v1/customers/9/trades"
    assert Client(admin, authorities).ask("POST", erased, item)[0] == 201
    shell.run(back_up)
    made = shell.run("sha256sum backup.tar")
    shell.run(without_room(back_up))
    assert shell.run("sha256sum backup.tar") == made, "the last good one stays"
    again = "for _ in {1..60}; do ssh three systemctl is-active mongod && break; sleep 1; done"
    assert shell.run(again).split()[-1] == "active", "mongod was left stopped"

    assert Client(key, authorities).ask("POST", path, item)[0] == 201
    assert Client(admin, authorities).ask("DELETE", "/v1/customers/9")[0] == 200
    shell.run(in_new_shell(restore))
    status, answer = Client(key, authorities).ask("GET", path)
    assert (status, [item["qty"] for item in answer["items"]]) == (200, [419])
    assert Client(admin, authorities).ask("GET", erased)[0] == 410, "who was erased since the backup stays erased"
    assert shell.run("ls") == shell.run("ls --ignore=data"), "no command has made a database of its own"

    asked = load([Client(key, authorities) for _ in range(4)], lambda: shell.run(in_new_shell(upgrade)))
    assert asked > 40
    ask = "dpkg-deb --field upgrade.deb Version; for machine in one two; do ssh $machine dpkg-query --show pagebucket | cut -f 2; done"
    new, *versions = shell.run(ask).split()
    assert versions == [new, new]
    assert shell.run(EACH.format("tail -n 1 /etc/pagebucket/pagebucket.toml")) == "allow-erase = true\n" * 2
