"""The dashboard and the alerts: what they use exists, what they say is parsed, and each alert fires.

Called by scripts/test-clients. PROMTOOL is Prometheus' program for that.
"""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/prometheus/alerts.yml"
TESTS = ROOT / "deploy/prometheus/alerts.test.yml"
METRICS = (ROOT / "docs/reference/metrics.md").read_text()
ALERTS: list[dict[str, Any]] = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((ROOT / "deploy/grafana/pagebucket.json").read_text())
# What Prometheus itself adds to each series, and what a histogram has.
ADDED = {"instance", "job", "le"}


def expressions() -> list[str]:
    """All of PromQL, with values for the variables of the dashboard."""
    of_dashboard = re.findall(r'"expr": ("(?:[^"\\]|\\.)*")', json.dumps(DASHBOARD))
    texts = [json.loads(text) for text in of_dashboard]
    assert len(texts) > 40
    values = {"$__rate_interval": "5m", "$__range": "3h", "$instance": ".*"}
    for name, value in values.items():
        texts = [text.replace(name, value) for text in texts]
    return texts + [alert["expr"] for alert in ALERTS]


@pytest.fixture
def promtool() -> str:
    """The program."""
    if program := os.environ.get("PROMTOOL"):
        return program
    assert not os.environ.get("CI"), "PROMTOOL names no program"
    pytest.skip("PROMTOOL names no program")


def run(*command: str | Path) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def faults(expression: str) -> list[str]:
    """What an expression uses that no metric has."""
    rows = re.findall(r"^\| `(pagebucket_\w+)` \| (\w+) \| (.*?) ?\| (.*) \|$", METRICS, re.MULTILINE)
    known = {name: (kind, {*re.findall(r"`(\w+)`", labels)}, meaning) for name, kind, labels, meaning in rows}
    found = []
    selectors = re.findall(r"\b((?:pagebucket|process)_\w+|up\b)(?:\{([^}]*)\})?", expression)
    for name, matchers in selectors or [(expression, "")]:
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        if name == "up" or (name.startswith("process_") and f"`{name}`" in METRICS):
            kind, labels, meaning = "gauge", set[str](), ""
        elif base in known and (known[base][0] == "histogram") == (name != base):
            kind, labels, meaning = known[base]
        else:
            found.append(f"{name} is no metric")
            continue
        if kind == "counter" and not re.search(rf"\b(rate|increase)\({name}\b", expression):
            found.append(f"{name} is a counter, whose rate is meant")
        for label, comparison, value in re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', matchers):
            if label not in labels | ADDED:
                found.append(f"{name} has no label {label}")
            # A text that is a part of another one must not do.
            elif label in labels - {"status"} and comparison in ("=", "=~"):
                found += [f"{label} of {name} is never {one}" for one in value.split("|") if f"`{one}`" not in meaning]
    grouped = re.findall(r"\bby \(([^)]*)\)", expression)
    all_labels = {label for name, _ in selectors for label in known.get(re.sub(r"_(bucket|sum|count)$", "", name), ("", {*()}, ""))[1]}
    found += [f"nothing has the label {label}" for by in grouped for label in by.split(", ") if label not in all_labels | ADDED]
    return found


@pytest.mark.parametrize("expression", expressions())
def test_every_metric_and_label_exists(expression: str) -> None:
    assert faults(expression) == []


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("sum(rate(pagebucket_exports[1h])) > 0", "is no metric"),
        ("rate(pagebucket_commit_items[1h])", "is no metric"),
        ("pagebucket_exports_total > 0", "is a counter"),
        ('rate(pagebucket_exports_total{results="failed"}[1h])', "has no label results"),
        ('rate(pagebucket_exports_total{result="fail"}[1h])', "is never fail"),
        ("sum by (route) (rate(pagebucket_exports_total[1h]))", "the label route"),
    ],
)
def test_what_does_not_exist_is_found(expression: str, fault: str) -> None:
    assert fault in " ".join(faults(expression))


def test_every_expression_is_parsed(promtool: str, tmp_path: Path) -> None:
    rules = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(expressions())]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(rules)} rules found" in run(promtool, "check", "rules", file)
    run(promtool, "check", "rules", "--lint-fatal", RULES)
    run(promtool, "check", "config", ROOT / "deploy/prometheus/prometheus.yml")


def test_each_alert_is_silent_and_then_fires(promtool: str) -> None:
    cases = [case for test in yaml.safe_load(TESTS.read_text())["tests"] for case in test["alert_rule_test"]]
    for wanted in (False, True):
        assert {case["alertname"] for case in cases if bool(case["exp_alerts"]) == wanted} == {alert["alert"] for alert in ALERTS}
    run(promtool, "test", "rules", TESTS)


def test_each_alert_has_its_paragraph_and_each_paragraph_its_alert() -> None:
    _, runbook = (ROOT / "deploy/README.md").read_text().split("## What an alert means\n")
    headings = re.findall(r"^### (\w+)\n\n\S", runbook, re.MULTILINE)
    assert headings == [alert["alert"] for alert in ALERTS]
    for alert in ALERTS:
        assert alert["annotations"]["runbook"] == f"deploy/README.md#{alert['alert'].lower()}"
        assert alert["labels"]["severity"] in ("page", "ticket")


def test_the_profile_mounts_what_is_there() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    watching = [service for service in services.values() if service.get("profiles") == ["watch"]]
    mounts = [volume.split(":") for service in watching for volume in service["volumes"] if volume.startswith("./")]
    assert len(watching) == 2
    for source, target, *_ in mounts:
        assert (ROOT / source).exists(), source
        assert target.startswith("/"), target
    targets = [target for _, target, *_ in mounts]
    provided = yaml.safe_load((ROOT / "deploy/grafana/provisioning/dashboards/pagebucket.yml").read_text())
    assert f"{provided['providers'][0]['options']['path']}/pagebucket.json" in targets
