"""Writes documents to learn from: questions, texts, summaries, stories, records and conversations. `document` gives
the same one for the same random numbers.

All of it is this project's own, but for the stories in corpus/."""

import json
from functools import cache
from pathlib import Path

from . import asking, facts, records, tales, talk, texts

# The prompts by which models are judged: none of them is learned.
PROMPTS = Path(__file__).parents[3] / "models" / "prompts.json"

# What is written, and its share of the documents. The corpus is small: a billion tokens have each of its stories some
# twenty times.
KINDS = [
    (facts.question, 19),
    (facts.several, 5),
    (texts.reading, 9),
    (texts.summary, 11),
    (texts.told, 2),
    (asking.question, 7),
    (asking.summary, 6),
    (asking.sentence, 3),
    (records.record, 6),
    (records.choice, 3),
    (records.call, 3),
    (talk.talk, 6),
    (tales.story, 8),
    (tales.of_wish, 6),
    (tales.summed_up, 4),
    (tales.shortened, 4),
    (tales.questions, 2),
    (tales.real, 2),
]
SYSTEM = ["You are a helpful assistant.", "You are a helpful AI assistant.", "You are a kind storyteller."]


@cache
def judged():
    prompts = [row["prompt"] for row in json.loads(PROMPTS.read_text())]
    # Of a conversation, what it begins with: its last question says nothing alone.
    return {prompt if isinstance(prompt, str) else prompt[0]["content"] for prompt in prompts}


def document(rng):
    """A text, or the messages of a conversation."""
    while True:
        (kind,) = rng.choices([kind for kind, _ in KINDS], [share for _, share in KINDS])
        made = kind(rng)
        if isinstance(made, str):
            return made
        if any(message["content"] in judged() for message in made):
            continue
        if made[0]["role"] == "user" and rng.random() < 0.03:
            return [{"role": "system", "content": rng.choice(SYSTEM)}, *made]
        return made
