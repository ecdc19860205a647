"""Writes what is generated of the client: `types.py` from openapi/openapi.json, and `_sync.py` from `_async.py`.

`generate.py --check` compares, and writes nothing. `make test-clients` does that. Needs what requirements.txt names.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "src/pagebucket"
BIN = Path(sys.executable).parent
# What the client gives and takes, and what each of them needs.
WANTED = ["Trade", "TradeInput", "TradeListing", "TradePage", "AppendedTrades", "UploadedTrades", "UploadSummary", "Problem"]
# Of any history, as trades have it: without the owner, and with the type of its items.
OF_ANY_HISTORY = {"TradeListing": "Listing", "TradePage": "Page", "AppendedTrades": "Appended", "UploadedTrades": "Uploaded"}
OTHER_NAMES = {"ProblemError": "Fault"}
STANDARD = {"page", "after", "before", "offset", "limit", "from", "to", "asOf", "order", "wait"}
# What Python cannot name, or spells otherwise. `SPELLED` in _rules.py is the way back.
SPELLED = {"from": "from_", "asOf": "as_of"}
HEAD = '''"""What the service says and takes. Generated from openapi/openapi.json by generate.py."""

from __future__ import annotations

from typing import Generic, Literal, NotRequired, TypeAlias, TypedDict, TypeVar

#: A stored item of a history, and an item to append.
Item = TypeVar("Item")
NewItem = TypeVar("NewItem")
'''

TO_SYNC = [
    (r"\bAsync(Client|History|Iterator)\b", r"\1"),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit)__", r"__\1__"),
    (r"\ba(close|read|iter_bytes)\b", r"\1"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\banyio\.sleep\b", "time.sleep"),
    (r"^import anyio\n", ""),
    (r"^(from collections.abc import.*) Awaitable,", r"\1"),
    (r"`_sync.py` is made of this file: see `generate.py`", "Generated from `_async.py` by `generate.py`"),
]


def sync() -> str:
    """The client without `async` and `await`."""
    text = (SOURCE / "_async.py").read_text()
    for pattern, replacement in TO_SYNC:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return formatted("_sync.py", text)


def needed(schemas: dict[str, Any], names: list[str]) -> set[str]:
    """The names of these schemas, and of all that they refer to."""
    found: set[str] = set()
    while names:
        name = names.pop()
        if name not in found:
            found.add(name)
            names += re.findall(r'#/components/schemas/(\w+)"', json.dumps(schemas[name]))
    return found


def types() -> str:
    """The types of answers and of parameters."""
    document = json.loads((HERE / "../../openapi/openapi.json").read_text())
    schemas = document["components"]["schemas"]
    for name in OF_ANY_HISTORY:
        del schemas[name]["properties"]["customerId"]
        schemas[name]["required"].remove("customerId")
    parameters = [it for it in document["paths"]["/v1/customers/{customerId}/trades"]["get"]["parameters"] if it["name"] in STANDARD]
    kept = {name: schemas[name] for name in sorted(needed(schemas, [*WANTED]))}
    kept["ListParameters"] = {
        "type": "object",
        "description": "The parameters of listings.",
        "properties": {SPELLED.get(it["name"], it["name"]): it["schema"] | {"description": it["description"]} for it in parameters},
    }
    text = json.dumps({"openapi": "3.1.0", "info": document["info"], "paths": {}, "components": {"schemas": kept}})
    for name, other in (OF_ANY_HISTORY | OTHER_NAMES).items():
        text = re.sub(rf'"(#/components/schemas/)?{name}"', rf'"\g<1>{other}"', text)
    with tempfile.TemporaryDirectory() as directory:
        source, written = Path(directory, "openapi.json"), Path(directory, "types.py")
        source.write_text(text)
        options: list[str | Path] = [
            "--input-file-type",
            "openapi",
            "--output-model-type",
            "typing.TypedDict",
            "--target-python-version",
            "3.11",
        ]
        options += ["--enum-field-as-literal", "all", "--use-schema-description", "--use-field-description", "--disable-timestamp"]
        options += ["--use-standard-collections", "--use-union-operator", "--formatters", "ruff-format", "ruff-check"]
        subprocess.run([BIN / "datamodel-codegen", *options, "--input", source, "--output", written], check=True)
        text = written.read_text()
    for name in ("Listing", "Page"):
        text = re.sub(rf"class {name}\(TypedDict\)", f"class {name}(TypedDict, Generic[Item])", text)
    text = text.replace("items: list[Trade]", "items: list[Item]")
    # Python 3.11 cannot say that a dictionary has no other members.
    text = text.replace(", closed=True", "")
    _, classes = text.split("from typing_extensions import TypedDict\n")
    return formatted("types.py", HEAD + classes)


def formatted(name: str, text: str) -> str:
    """As ruff wants it."""
    for command in (["check", "--fix", "--exit-zero"], ["format"]):
        ruff: list[str | Path] = [BIN / "ruff", *command, "--quiet", "--stdin-filename", SOURCE / name, "-"]
        text = subprocess.run(ruff, cwd=HERE, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout
    return text


def main() -> int:
    """Writes the files, or compares them."""
    outdated = []
    for name, text in {"_sync.py": sync(), "types.py": types()}.items():
        path = SOURCE / name
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            outdated.append(name)
    if outdated:
        print(f"{', '.join(outdated)}: out of date; run clients/python/generate.py", file=sys.stderr)
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main())
