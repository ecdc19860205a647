"""What checkov says of the manifests and the Dockerfile. It is not in `make test-clients`, because it installs a hundred packages.

Called by scripts/test-deploy.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What it is right about in general, and not here.
ACCEPTED = {
    "kubernetes": {
        "CKV_K8S_43": "the digest of an image is that of the reader's registry",
        "CKV_K8S_35": "commands by kubectl exec need the connection string, too, and read it from the environment",
    },
    "dockerfile": {"CKV_DOCKER_7": "the base image is an argument, whose default has a version"},
}


def failed(framework: str, file: Path) -> set[str]:
    program = Path(sys.executable).parent / "checkov"
    command = [program, "--framework", framework, "--file", file, "--output", "json", "--skip-download"]
    checked = subprocess.run(command, env=os.environ | {"BC_SKIP_MAPPING": "TRUE"}, capture_output=True, text=True, check=False)
    results = json.loads(checked.stdout)
    assert results["summary"]["passed"] > 50, checked.stderr
    return {check["check_id"] for check in results["results"]["failed_checks"]}


def test_the_manifests(tmp_path: Path) -> None:
    if not shutil.which("kubectl"):
        pytest.skip("there is no kubectl")
    made = subprocess.run(["kubectl", "kustomize", ROOT / "deploy/kubernetes"], capture_output=True, text=True, check=True).stdout
    file = tmp_path / "manifests.yaml"
    file.write_text(made)
    assert failed("kubernetes", file) == ACCEPTED["kubernetes"].keys()
    file.write_text(made.replace("readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"))
    assert failed("kubernetes", file) - ACCEPTED["kubernetes"].keys() == {"CKV_K8S_22"}


def test_the_dockerfile(tmp_path: Path) -> None:
    assert failed("dockerfile", ROOT / "Dockerfile") == ACCEPTED["dockerfile"].keys()
    file = tmp_path / "Dockerfile"
    file.write_text((ROOT / "Dockerfile").read_text().replace("USER 65532:65532", "USER root"))
    assert failed("dockerfile", file) - ACCEPTED["dockerfile"].keys() == {"CKV_DOCKER_8"}
