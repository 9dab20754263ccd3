"""Writes documents to learn from: questions, texts, summaries, stories, records and conversations. `document` gives
the same one for the same random numbers.

All of it is this project's own, but for the stories in corpus/."""

import json
import re
from functools import cache
from pathlib import Path

from . import asking, copying, facts, heroes, language, records, tales, talk, texts

# The prompts by which models are judged: none of them is learned.
PROMPTS = Path(__file__).parents[3] / "models" / "prompts.json"

# The kinds of documents, and the share of each. Stories of the corpus are rare: there are few, and the model would
# learn them by heart.
KINDS = [
    (language.instruction, 14),
    (facts.question, 10),
    (facts.several, 4),
    (texts.reading, 16),
    (texts.summary, 20),
    (texts.told, 1),
    (copying.task, 16),
    (asking.question, 3),
    (asking.summary, 2),
    (records.record, 5),
    (records.choice, 3),
    (records.call, 2),
    (talk.talk, 6),
    (heroes.story, 6),
    (tales.story, 1.5),
    (tales.of_wish, 0.5),
    (tales.summed_up, 2),
    (tales.shortened, 2),
    (tales.questions, 1),
    (tales.real, 0.4),
]
SYSTEM = ["You are a helpful assistant.", "You are a helpful AI assistant.", "You are a kind storyteller."]


@cache
def judged():
    prompts = [row["prompt"] for row in json.loads(PROMPTS.read_text())]
    # Of a conversation, what it begins with: its last question says nothing alone.
    return {prompt if isinstance(prompt, str) else prompt[0]["content"] for prompt in prompts}


def plain(text):
    return re.sub(r"[^a-z0-9 ]", "", text.lower()).strip()


@cache
def left_out():
    """What no message may be, and the longer subjects of judged stories, which none may ask for."""
    prompts = {plain(prompt) for prompt in judged()}
    subjects = [prompt.split(" about ", 1)[1].removesuffix(" please") for prompt in prompts if "story" in prompt and " about " in prompt]
    return prompts, re.compile(rf"\b({'|'.join(sorted(one for one in subjects if len(one.split()) > 3))})\b")


def is_judged(message):
    text = plain(message)
    prompts, subjects = left_out()
    return text in prompts or len(text) < 200 and bool(subjects.search(text))


def document(rng):
    """A text, or the messages of a conversation."""
    while True:
        (kind,) = rng.choices([kind for kind, _ in KINDS], [share for _, share in KINDS])
        made = kind(rng)
        if isinstance(made, str):
            return made
        if any(is_judged(message["content"]) for message in made):
            continue
        if made[0]["role"] == "user" and rng.random() < 0.03:
            return [{"role": "system", "content": rng.choice(SYSTEM)}, *made]
        return made
