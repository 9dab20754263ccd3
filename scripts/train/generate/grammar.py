"""Templates: `[a|b]` is one of its choices, also empty or nested, and `{slot}` is a value."""

import re

SLOT = re.compile(r"\{(\w+)\}")


def fill(rng, template, slots=()):
    while "[" in template:
        end = template.index("]")
        start = template.rindex("[", 0, end)
        template = template[:start] + rng.choice(template[start + 1 : end].split("|")) + template[end + 1 :]
    text = SLOT.sub(lambda match: str(slots[match.group(1)]), template)
    text = re.sub(r"\b([Aa]) (?=[aeio]|u(?!ni)|hon|hour)", r"\1n ", text)
    return re.sub(r"  +", " ", text).replace(" .", ".").replace(" ,", ",").strip()


def an(words):
    """The words with `a` or `an` before them."""
    vowel = words[0] in "aeiouAEIOU" and not words.startswith("uni") or words.startswith(("honest", "hour"))
    return f"{'an' if vowel else 'a'} {words}"


def capital(text):
    return text[:1].upper() + text[1:]


def listed(words, last="and"):
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def rows(table):
    """The rows of a table in a text: a line each, with ` | ` between its cells."""
    return [tuple(line.split(" | ")) for line in table.strip().splitlines()]


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def asked(question, answer):
    """A conversation of one question."""
    return [user(question), assistant(answer)]
