#!/usr/bin/env python3
"""Renders the templates in `templates` with Python's jinja2, set up as transformers does for chats.

Writes `templates.json`. Needs jinja2.
"""
import json
import os

from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = os.path.dirname(os.path.abspath(__file__))


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def raise_exception(why):
    raise TemplateError(why)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    env.filters["tojson"] = to_json
    env.globals["raise_exception"] = raise_exception
    return env


def says(role, content, **more):
    return {"role": role, "content": content, **more}


def user(content):
    return says("user", content)


def assistant(content, **more):
    return says("assistant", content, **more)


CALL = {"type": "function", "function": {"name": "look", "arguments": {"z": "ü\"\n", "a": [1, 2.5, None, True, {}]}}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CHATS = [
    [user("Hello")],
    [says("system", " Be terse.\n"), user("Hi"), assistant("Hello!"), user(" how\tare you?\n\n")],
    [user("q1"), assistant("<t>\nwhy\n</t>\n\nbecause"), user("q2")],
    [user("q1"), assistant("<t>\nwhy\n</t>\n\nbecause</t>twice")],
    [user("q"), assistant("a", thought="\nb\n"), user("<tool>7</tool>"), assistant("c", thought=None)],
    [user("Zürich 日本 🙂 ½ \u00a0x\u2028"), assistant("<s>|</s>"), user("{{ no }} {% no %}")],
    [user("stop"), user("skip")],
    [user("skip"), user("a"), user("stop"), user("b")],
]
STRINGS = ["a b", "", " Abra cadabra ", "aaa", "12", "ÄÖ ß it's o'NEIL", "x\ny\r\nz\n", "\u00a0\u2003tabs\t\x1c"]
CASES = {
    "plain": [(chat, gen, {}) for chat in CHATS for gen in (True, False)],
    "backwards": [
        (chat, True, more) for chat in CHATS for more in ({}, {"enable_thinking": False})
    ] + [(CHATS[3], False, {"enable_thinking": True})],
    "tools": [
        ([user("x"), assistant("", tool_calls=[CALL, {"name": "f", "arguments": "{}"}]), user("")], True, {"tools": [TOOL, CALL]}),
        ([user("x")], True, {}),
        ([user("x")], True, {"tools": []}),
    ],
    "strings": [([user(text)], True, {}) for text in STRINGS],
    "control": [(chat, True, {}) for chat in CHATS] + [([assistant("no")], True, {})],
    "trimming": [(CHATS[1], True, {})],
}


def main():
    env = environment()
    cases = []
    for name, inputs in CASES.items():
        with open(os.path.join(HERE, "templates", name + ".jinja"), encoding="utf-8") as file:
            template = env.from_string(file.read())
        for messages, generation, more in inputs:
            variables = {"bos_token": "<b>", "eos_token": "<e>"}
            case = {
                "template": name,
                "messages": messages,
                "add_generation_prompt": generation,
                "variables": variables,
                "arguments": more,
            }
            try:
                case["expected"] = template.render(
                    messages=messages, add_generation_prompt=generation, **variables, **more
                )
            except TemplateError as error:
                case["raises"] = str(error)
            cases.append(case)
    with open(os.path.join(HERE, "templates.json"), "w", encoding="utf-8") as file:
        lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
        file.write("[\n" + lines + "\n]\n")
    print(len(cases), "cases")


main()
