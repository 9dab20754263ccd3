"""Packs the tests of draft 2020-12, a group to a line.

    pip download --no-binary :all: --no-deps jsonschema
    tar xzf jsonschema-*.tar.gz
    python3 pack.py jsonschema-*/json

Each group keeps its schema and its documents as they are. It gets the name of its file, and loses
the comments.
"""

import json
import sys
from pathlib import Path

suite = Path(sys.argv[1])
here = Path(__file__).parent
folder = suite / "tests" / "draft2020-12"
lines = []
for path in sorted(folder.rglob("*.json")):
    name = path.relative_to(folder).with_suffix("").as_posix()
    for group in json.loads(path.read_text()):
        tests = [[test["description"], test["valid"], test["data"]] for test in group["tests"]]
        packed = [name, group["description"], group["schema"], tests]
        lines.append(json.dumps(packed, ensure_ascii=False, separators=(",", ":")))
(here / "draft2020-12.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
(here / "LICENSE").write_text((suite / "LICENSE").read_text())
