"""The manifests and the Dockerfile: they are valid, agree with each other, and the program takes what they set.

Called by scripts/test-clients. PAGEBUCKET is the program. kubectl is used where it is installed.
"""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "deploy/kubernetes"
DOCKERFILE = (ROOT / "Dockerfile").read_text()
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())
SETTINGS = re.findall(r"^\| `--.*?` \| `(\w+)` \|", (ROOT / "docs/reference/settings.md").read_text(), re.MULTILINE)
OPENAPI = json.loads((ROOT / "openapi/openapi.json").read_text())
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
# The oldest Kubernetes that has all members of the manifests, and the newest one that is known.
VERSIONS = ["1.27", "1.37"]
# The server's own time for running requests, after its delay.
DRAIN = 40

Manifests = dict[str, Any]


def manifests() -> Manifests:
    """Each manifest, by its kind."""
    documents = [yaml.safe_load((MANIFESTS / file).read_text()) for file in KUSTOMIZATION["resources"]]
    return {document["kind"]: document for document in documents}


def generated() -> dict[str, list[str]]:
    """The files of each ConfigMap and Secret."""
    generators = KUSTOMIZATION["configMapGenerator"] + KUSTOMIZATION["secretGenerator"]
    return {generator["name"]: generator.get("files", []) + generator.get("envs", []) for generator in generators}


def container(documents: Manifests) -> dict[str, Any]:
    only: dict[str, Any]
    [only] = documents["Deployment"]["spec"]["template"]["spec"]["containers"]
    return only


def variables(documents: Manifests) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in container(documents)["env"]}


def in_image(instruction: str) -> str:
    return re.search(rf"^{instruction} (.*)$", DOCKERFILE, re.MULTILINE)[1]  # type: ignore[index]


def faults(documents: Manifests) -> list[str]:  # noqa: PLR0912 a fault is a branch
    """What contradicts the program, the image, or another manifest."""
    pod, main, env = documents["Deployment"]["spec"]["template"]["spec"], container(documents), variables(documents)
    found = [f"{name} is no setting" for name in env if name not in SETTINGS]
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        probe = main[name]["httpGet"]
        if probe["path"] not in OPENAPI["paths"]:
            found.append(f"{name} asks for {probe['path']}")
        if probe["port"] not in {port["name"] for port in main["ports"]}:
            found.append(f"{name} asks a port {probe['port']}")
        if {"name": "Host", "value": "localhost"} not in probe["httpHeaders"]:
            found.append(f"{name} names a host that --allowed-hosts refuses")
    if main["readinessProbe"]["httpGet"]["path"] != "/readyz" or main["livenessProbe"]["httpGet"]["path"] != "/livez":
        found.append("a database that is away would restart the pods")
    drain = re.fullmatch(r"(\d+)s", env["PAGEBUCKET_DRAIN_DELAY"])
    if not drain or pod["terminationGracePeriodSeconds"] <= int(drain[1]) + DRAIN:
        found.append("a pod is killed before it has drained")
    listens = env["PAGEBUCKET_LISTEN"].rpartition(":")[2]
    if {listens} != {str(port["containerPort"]) for port in main["ports"]} | {in_image("EXPOSE")}:
        found.append(f"the server listens on {listens}")
    user = pod["securityContext"]
    if in_image("USER") != f"{user['runAsUser']}:{user['runAsGroup']}":
        found.append("the user is not that of the image")
    if not main["securityContext"]["readOnlyRootFilesystem"] or user["runAsNonRoot"] is not True:
        found.append("the pod may change the image's files, or be root")
    if main["image"] != f"pagebucket:{VERSION}" or f'image.version="{VERSION}"' not in DOCKERFILE:
        found.append(f"the image is not of version {VERSION}")
    labels = documents["Deployment"]["spec"]["template"]["metadata"]["labels"]
    service, policy = documents["Service"]["spec"], documents["NetworkPolicy"]["spec"]
    selectors = [selected["matchLabels"] for selected in (documents["Deployment"]["spec"]["selector"], policy["podSelector"])]
    selectors += [service["selector"], documents["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]]
    found += [f"{selector} selects no pod" for selector in selectors if not selector or not selector.items() <= labels.items()]
    named = [service["ports"][0]["targetPort"], policy["ingress"][0]["ports"][0]["port"]]
    found += [f"no port is named {name}" for name in named if name not in {port["name"] for port in main["ports"]}]
    volumes = {volume["name"]: volume["configMap"]["name"] for volume in pod["volumes"]}
    used = [*volumes.values(), *(source["secretRef"]["name"] for source in main["envFrom"])]
    if sorted(used) != sorted(generated()):
        found.append(f"{used} are not what is generated")
    mounted = {mount["mountPath"] for mount in main["volumeMounts"] if mount["name"] in volumes}
    if env["PAGEBUCKET_HISTORIES"] not in mounted:
        found.append("the definitions are elsewhere")
    budget = documents["PodDisruptionBudget"]["spec"]["maxUnavailable"]
    if documents["Deployment"]["spec"]["replicas"] <= budget:
        found.append("no pod is left while a node is drained")
    return found


def test_they_agree() -> None:
    assert faults(manifests()) == []


def change(*path: Any, value: Any) -> Callable[[Manifests], None]:
    def change(documents: Manifests) -> None:
        inner: Any = documents
        for key in path[:-1]:
            inner = inner[key]
        assert inner[path[-1]] != value
        inner[path[-1]] = value

    return change


POD = ("Deployment", "spec", "template", "spec")
MAIN = (*POD, "containers", 0)


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        (change(*MAIN, "env", 1, "name", value="PAGEBUCKET_AUTHENTICATION"), "is no setting"),
        (change(*MAIN, "readinessProbe", "httpGet", "path", value="/ready"), "asks for /ready"),
        (change(*MAIN, "livenessProbe", "httpGet", value={"path": "/readyz", "port": "http", "httpHeaders": []}), "would restart"),
        (change(*MAIN, "readinessProbe", "httpGet", "port", value="web"), "a port web"),
        (change(*MAIN, "startupProbe", "httpGet", "httpHeaders", value=[]), "names a host"),
        (change(*POD, "terminationGracePeriodSeconds", value=50), "killed"),
        (change(*MAIN, "ports", 0, "containerPort", value=80), "listens on"),
        (change(*POD, "securityContext", "runAsUser", value=1000), "the user"),
        (change(*MAIN, "securityContext", "readOnlyRootFilesystem", value=False), "may change"),
        (change(*MAIN, "image", value="pagebucket"), "not of version"),
        (change("Service", "spec", "selector", value={"app.kubernetes.io/name": "other"}), "selects no pod"),
        (change("NetworkPolicy", "spec", "ingress", 0, "ports", 0, "port", value="web"), "no port"),
        (change(*POD, "volumes", 0, "configMap", "name", value="definitions"), "generated"),
        (change(*MAIN, "volumeMounts", 0, "mountPath", value="/histories"), "elsewhere"),
        (change("PodDisruptionBudget", "spec", "maxUnavailable", value=2), "no pod is left"),
    ],
)
def test_what_does_not_agree_is_found(changed: Callable[[Manifests], None], fault: str) -> None:
    documents = copy.deepcopy(manifests())
    changed(documents)
    assert fault in " ".join(faults(documents))


@pytest.mark.parametrize("version", VERSIONS)
def test_each_manifest_is_valid(version: str) -> None:
    for document in manifests().values():
        kubernetes_validate.validate(document, version, strict=True)
    wrong = manifests()["Deployment"]
    wrong["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, version, strict=True)


def test_every_file_is_used() -> None:
    used = {"kustomization.yaml", *KUSTOMIZATION["resources"], *(file for files in generated().values() for file in files)}
    assert used == {str(file.relative_to(MANIFESTS)) for file in MANIFESTS.rglob("*") if file.is_file()}


def test_the_program_takes_what_they_set(tmp_path: Path) -> None:
    program = os.environ.get("PAGEBUCKET")
    if not program:
        assert not os.environ.get("CI"), "PAGEBUCKET names no program"
        pytest.skip("PAGEBUCKET names no program")
    # A ConfigMap is a directory of links to links, so that all files change at once.
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..data").symlink_to("..2026")
    for file in generated()["histories"]:
        shutil.copy(MANIFESTS / file, tmp_path / "..data")
        (tmp_path / Path(file).name).symlink_to(Path("..data", Path(file).name))
    env = variables(manifests()) | {"PAGEBUCKET_HISTORIES": str(tmp_path)}
    secret = dict(line.split("=", 1) for line in (MANIFESTS / "mongodb.env").read_text().splitlines() if not line.startswith("#"))
    assert secret.keys() == {"MONGODB_URI"}
    check = subprocess.run([program, "serve", "--print-config"], env=env | secret, capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stderr
    in_force = tomllib.loads(check.stdout)
    assert in_force["drain-delay"] == env["PAGEBUCKET_DRAIN_DELAY"]
    document = subprocess.run([program, "openapi"], env=env, capture_output=True, text=True, check=True)
    assert "/v1/rooms/{roomId}/messages" in json.loads(document.stdout)["paths"]


def test_the_definition_is_that_of_the_example() -> None:
    ours, example = (
        json.loads((directory / "messages.json").read_text()) for directory in (MANIFESTS / "histories", ROOT / "examples/histories")
    )
    assert (MANIFESTS / "histories" / ours.pop("$schema")).resolve() == (ROOT / "examples/histories" / example.pop("$schema")).resolve()
    assert ours == example


def test_kustomize_makes_them() -> None:
    if not shutil.which("kubectl"):
        pytest.skip("there is no kubectl")
    rendered = subprocess.run(["kubectl", "kustomize", MANIFESTS], capture_output=True, text=True, check=True)
    documents = list(yaml.safe_load_all(rendered.stdout))
    for document in documents:
        kubernetes_validate.validate(document, VERSIONS[-1], strict=True)
        assert (document["metadata"].get("namespace") or document["metadata"]["name"]) == "pagebucket"
    by_kind = {document["kind"]: document for document in documents}
    pod = by_kind["Deployment"]["spec"]["template"]["spec"]
    assert pod["volumes"][0]["configMap"]["name"] == by_kind["ConfigMap"]["metadata"]["name"] != "histories"
    assert pod["containers"][0]["envFrom"][0]["secretRef"]["name"] == by_kind["Secret"]["metadata"]["name"] != "mongodb"


def test_hadolint_has_nothing_to_say() -> None:
    linted = subprocess.run([Path(sys.executable).parent / "hadolint", ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (linted.returncode, linted.stdout) == (0, ""), linted.stderr
