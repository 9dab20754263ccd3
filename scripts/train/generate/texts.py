"""What is asked about a text: its facts, and a summary."""

import re

from . import courses, deeds, events, heroes, passages, requests, scenes
from .grammar import asked

# The kinds of passages, and how often one is asked about and summed up.
KINDS = [
    (deeds.passage, {"facts": 20, "summary": 0}),
    (scenes.narrative, {"facts": 9, "summary": 0}),
    (scenes.scene, {"facts": 3, "summary": 22}),
    (courses.passage, {"facts": 6, "summary": 18}),
    (heroes.passage, {"facts": 1, "summary": 2}),
    (passages.wanted, {"facts": 6, "summary": 7}),
    (passages.notice, {"facts": 4, "summary": 4}),
    (passages.portrait, {"facts": 6, "summary": 2}),
    (passages.mail, {"facts": 4, "summary": 2}),
    (events.event, {"facts": 2, "summary": 8}),
]
BEFORE = [
    "Read this text and answer the question.\n\n{t}\n\n{q}",
    "{t}\n\n{q}",
    "{t}\n\n{q}",
    "{t}\n\n{q}",
    "{t}\n{q}",
    "{t} {q}",
    "{q}\n\n{t}",
    "Text: {t}\n\nQuestion: {q}",
    "{q} {t}",
]


def passage(rng, about):
    """A passage to ask `facts` about, or for a `summary`."""
    (kind,) = rng.choices([kind for kind, _ in KINDS], [shares[about] for _, shares in KINDS])
    return kind(rng)


def reading(rng):
    """Questions about a text."""
    one = passage(rng, "facts")
    first, *more = rng.sample(one["questions"], min(len(one["questions"]), rng.choice([1, 1, 2, 3, 4, 5])))
    messages = asked(rng.choice(BEFORE).format(t=one["text"], q=first[0]), first[1])
    for question, answer in more:
        messages += asked(question, answer)
    if one.get("summaries") and rng.random() < 0.15:
        messages += asked(rng.choice(requests.TLDR_FOLLOW_UP).replace("story", "text"), rng.choice(one["summaries"]))
    return messages


# What `model.summarize` of the package asks for, by its type and length.
PACKAGE = [
    "TL;DR of this text, one sentence:",
    "TL;DR of this text, one sentence:",
    "TL;DR of this text, one sentence:",
    "TL;DR of this text, three sentences:",
    "TL;DR of this text, five sentences:",
    "A teaser of this text, one sentence:",
]
# What answers a question and is no sentence, or says nothing new.
NO_POINT = re.compile(
    r"It is about|On|In|At|To|By|Under|Behind|Near|Next|Beside|Between|Above|Outside|Inside|Along|Across|Opposite|With|Because|Before|After|During"
)
PACKAGE_LONGER = ["TL;DR of this text, three sentences:", "TL;DR of this text, five sentences:"]


def summary(rng):
    """A text to sum up: one passage, or two of them."""
    one = passage(rng, "summary")
    text, said = one["text"], rng.choice(one["summaries"])
    r = rng.random()
    if r < 0.06:
        other = passage(rng, "summary")
        joint = rng.choice(["\n\n", " "])
        text, said = f"{text}{joint}{other['text']}", f"{said} {rng.choice(other['summaries'])}"
    if r > 0.9:
        # The points of a text are its sentences without what is not needed.
        points = [answer for _, answer in one["questions"] if len(answer.split()) > 3 and not NO_POINT.match(answer) and answer not in one["summaries"]][:3]
        if len(points) == 3:
            wish = rng.choice(['The key points of this text, three lines that begin with "- ":', "List the key points:", "Key points of this text:"])
            return asked(f"{wish}\n\n{text}", "\n".join(f"- {point}" for point in points))
    messages = to_sum_up(rng, text, said)
    if rng.random() < 0.2:
        messages += asked(*rng.choice(one["questions"]))
    return messages


def to_sum_up(rng, text, said):
    """A request for a summary, in the words of people or of the package."""
    if rng.random() < 0.15:
        return asked(f"{rng.choice(PACKAGE_LONGER if re.search(r'[.!?] [A-Z]', said) else PACKAGE)}\n\n{text}", said)
    return asked(requests.tldr_request(rng, text, rng.choice(["text", "text", "text", "story"])), said)


def told(rng):
    """A text that the assistant tells, and its summary."""
    one = passages.wanted(rng)
    messages = asked(
        rng.choice(
            [
                "Tell me what happened.",
                "Tell me something.",
                "Write a short text.",
                "Write a few sentences about somebody.",
                "Tell me a short story.",
                "Make up something short.",
            ]
        ),
        one["text"],
    )
    if rng.random() < 0.5:
        messages += asked(rng.choice(requests.TLDR_FOLLOW_UP), rng.choice(one["summaries"]))
    return messages
