"""Write python/selvedge/_generated.py from schema/scenario.schema.json: one class for each table of a scenario.

Run by `cargo xtask python`; `--check` only compares.
"""

from __future__ import annotations

import argparse
import json
import keyword
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "schema" / "scenario.schema.json"
TARGET = ROOT / "python" / "selvedge" / "_generated.py"

Json = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    check = parser.parse_args().check
    text = Generator(json.loads(SCHEMA.read_text())).module()
    if not check:
        TARGET.write_text(text)
    elif not TARGET.exists() or TARGET.read_text() != text:
        print(f"{TARGET.relative_to(ROOT)} is out of date: run `cargo xtask python` and commit it", file=sys.stderr)
        return 1
    return 0


def python_name(key: str) -> str:
    """Return a key of a scenario as a name in Python."""
    name = key.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def camel(key: str) -> str:
    """Return a key as the name of a class."""
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[-_]", key))


class Generator:
    """Names, positions and types of everything in the schema."""

    def __init__(self, schema: Json) -> None:
        """Find the position of each table, breadth first from the root."""
        self.schema = schema
        self.defs: Json = schema["$defs"]
        self.paths: dict[str, str] = {}
        self.tags: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        open_: list[tuple[str, str, str, Json]] = [("", "", "", schema)]
        while open_:
            path, tag, key, node = open_.pop(0)
            if (ref := node.get("$ref")) is not None:
                name = ref.rsplit("/", 1)[1]
                target = self.defs[name]
                if self.is_class(target):
                    if name in self.paths:
                        continue
                    self.paths[name], self.keys[name] = path, key
                    if tag:
                        self.tags[name] = tag
                open_.append((path, tag, key, target))
                continue
            for branch in branches_of(node):
                open_.append((path, tag, key, branch))
            is_kinds = self.is_tagged(node)
            for inner, child in node.get("properties", {}).items():
                below = f"{path}.{inner}" if path else inner
                open_.append((below, inner if is_kinds or node is self.defs["WorkloadConfig"] else "", inner, child))
            if isinstance(items := node.get("items"), dict):
                open_.append((path, tag, key, items))
        self.names = self.class_names()

    def is_class(self, node: Json) -> bool:
        """Return whether a definition is a table with keys of its own."""
        return node.get("type") == "object" and bool(node.get("properties"))

    @staticmethod
    def is_tagged(node: Json) -> bool:
        """Return whether this is one kind of several: a table with exactly one key, which is required."""
        keys = node.get("properties", {})
        return len(keys) == 1 and node.get("required") == list(keys) and node.get("additionalProperties") is False

    def resolved(self, node: Json) -> Json:
        """Follow references."""
        while "$ref" in node:
            node = self.defs[node["$ref"].rsplit("/", 1)[1]]
        return node

    def class_names(self) -> dict[str, str]:
        """Return a name for each class: that of the schema, without "Config"; or that of its key."""
        names: dict[str, str] = {}
        taken = {"Study", "Result", "Session", "Table"}
        for name in self.paths:
            short = re.sub(r"Config$", "", name)
            if not short or re.search(r"\d$", name):
                short = camel(self.keys[name])
            longer = "".join(camel(step) for step in self.paths[name].split(".")[-2:])
            best = next(one for one in [short, longer, name] if one not in taken)
            taken.add(best)
            names[name] = best
        return names

    def type_of(self, node: Json) -> str:
        """Return the type of a value in Python."""
        types = sorted(set(self.types(node)) - {"None"})
        if "Any" in types or not types:
            return "Any"
        literals = [one for one in types if one.startswith("Literal[")]
        if "str" in types:
            types = [one for one in types if one not in literals]
        return " | ".join(types)

    def types(self, node: Json) -> list[str]:
        if (ref := node.get("$ref")) is not None:
            name = ref.rsplit("/", 1)[1]
            if name in self.names:
                return [f'"{self.names[name]}"', "Mapping[str, Any]"]
            return self.types(self.defs[name])
        branches = branches_of(node)
        if branches:
            return [one for branch in branches for one in self.types(branch)]
        if self.is_tagged(node):
            return [*self.types(next(iter(node["properties"].values()))), "Mapping[str, Any]"]
        if "enum" in node or "const" in node:
            values = node.get("enum", [node.get("const")])
            if all(isinstance(value, str) for value in values):
                return [f"Literal[{', '.join(json.dumps(value) for value in values)}]"]
        kinds = node.get("type", [])
        found = []
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            if kind == "array":
                items = node.get("items")
                found.append(f"Sequence[{self.type_of(items) if isinstance(items, dict) else 'Any'}]")
            elif kind == "object":
                found.append("Mapping[str, Any]")
            else:
                found.append(SCALARS[kind])
        return found or ["Any"]

    def form(self, node: Json) -> str:
        """Return how a value is written: "kind" where the class chooses the key, "kinds" for lists of them."""
        node = self.resolved(node)
        if node is self.defs["WorkloadConfig"]:
            return "kinds"
        if node is self.defs["Sizes"]:
            return "sizes"
        branches = [self.resolved(branch) for branch in branches_of(node)]
        if branches and any(self.is_tagged(branch) for branch in branches):
            return "kind"
        if len(branches) == 1:
            return self.form(branches[0])
        return ""

    def class_text(self, name: str, node: Json, path: str, tag: str) -> str:
        """Return the text of one class."""
        keys = node["properties"]
        required = [key for key in node.get("required", []) if key in keys]
        optional = [key for key in keys if key not in required]
        about = node.get("description", "").strip() or f"Table `{path}`."
        lines = [f"class {name}(Part):", *indented(docstring(about, keys), 4), ""]
        lines += [f"    _path = {path!r}", f"    _tag = {tag!r}", "    _keys: ClassVar[dict[str, tuple[str, str]]] = {"]
        lines += [f"        {python_name(key)!r}: ({key!r}, {self.form(child)!r})," for key, child in keys.items()]
        lines += ["    }", "", "    def __init__(", "        self,"]
        of = {key: self.value_type(keys[key]) for key in keys}
        if path == "":
            # A study without a title is called one.
            required, optional = [key for key in required if key != "title"], ["title", *optional]
        for key in required:
            lines.append(f"        {python_name(key)}: {of[key]},")
        if optional:
            lines.append("        *,")
        for key in optional:
            optional_type = of[key] if of[key] == "Any" else f"{of[key]} | None"
            lines.append(f"        {python_name(key)}: {optional_type} = None,")
        lines += ["    ) -> None:", '        """Take the values of the keys; absent ones have their defaults."""']
        lines.append("        super().__init__(")
        lines += [f"            {python_name(key)}={python_name(key)}," for key in [*required, *optional]]
        lines += ["        )", ""]
        return "\n".join(lines) + "\n"

    def value_type(self, node: Json) -> str:
        if self.form(node) == "kinds":
            kinds = [self.resolved(child) for child in self.defs["WorkloadConfig"]["properties"].values()]
            names = sorted({one for kind in kinds for one in self.types(kind) if one.startswith('"')})
            return f"{' | '.join(names)} | Mapping[str, Any] | Sequence[{' | '.join(names)}]"
        return self.type_of(node)

    def module(self) -> str:
        """Return the text of the module."""
        classes = sorted((self.names[name], name) for name in self.names if name != "WorkloadConfig")
        texts = []
        for own, name in classes:
            texts.append(self.class_text(own, self.defs[name], self.paths[name], self.tags.get(name, "")))
        root = dict(self.schema)
        texts.append(self.class_text("StudyKeys", root, "", ""))
        exported = ", ".join(json.dumps(own) for own, _ in classes)
        return HEAD.replace("EXPORTED", exported) + "\n\n" + "\n\n".join(texts).rstrip() + "\n"


HEAD = '''"""Tables of scenarios as classes. Written by python/generate.py from the schema; do not edit."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from ._part import Part

__all__ = [EXPORTED]'''


SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def branches_of(node: Json) -> list[Json]:
    """Return the alternatives of a value."""
    return [*node.get("anyOf", []), *node.get("oneOf", []), *node.get("allOf", [])]


def docstring(about: str, keys: Json) -> list[str]:
    """Return the lines of a docstring: what the table is, and its keys."""
    clean = about.replace("\\", "\\\\").replace('"""', "'''")
    first, _, rest = clean.partition("\n\n")
    first = " ".join(first.split())
    lines = ['"""' + (first if first.endswith((".", "!", "?")) else first + ".")]
    if rest:
        lines += ["", *rest.splitlines()]
    lines += ["", "Args:"]
    for key, child in keys.items():
        text = " ".join(str(child.get("description", "")).replace("\\", "\\\\").replace('"""', "'''").split())
        lines += textwrap.wrap(f"{python_name(key)}: {text}", 110, initial_indent="    ", subsequent_indent="        ")
    return [*lines, '"""']


def indented(lines: list[str], by: int) -> list[str]:
    return [" " * by + line if line else "" for line in lines]


if __name__ == "__main__":
    sys.exit(main())
