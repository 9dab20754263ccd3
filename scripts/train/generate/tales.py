"""Stories on request, and their summaries: of plots whose summary is known, and of the corpus."""

import gzip
import json
import re
from functools import cache
from pathlib import Path

from . import extract, passages, plots, requests, words
from .grammar import asked, fill

CORPUS = Path(__file__).parent.parent / "corpus" / "tiny-stories.jsonl.gz"
REAL_GIRLS = "Lily Sue Lucy Mia Sara Anna Amy Emma Jane Sally Molly Daisy Mary Kitty Ella Jenny Sarah Tina Lola Bella Emily Annie Jill Ann Julie Kate Katie Lisa Mandy".split()
REAL_BOYS = "Tom Tim Ben Max Timmy Jack Sam Bob Billy Joe John Tommy Jim Johnny Bobby Jimmy Mike Leo Fred Charlie Peter Danny Jake Pete Dan".split()
KNOWN = set(words.GIRLS + words.BOYS + words.MORE_NAMES + words.MORE_BOYS + words.PET_NAMES)


@cache
def corpus():
    """The stories of the corpus."""
    with gzip.open(CORPUS, "rt") as file:
        return [json.loads(line)["text"] for line in file]


def with_other_names(rng, text, invent):
    """The same story with other names, so that they are not learned by heart."""
    said = set(re.findall(r"\b[A-Z][a-z]+\b", text))
    table = {}
    for pool in (REAL_GIRLS, REAL_BOYS):
        for name in pool:
            if name in said and rng.random() < 0.75:
                other = words.any_name(rng, pool is REAL_GIRLS, invent)
                if other not in said and other not in table.values():
                    table[name] = other
    if not table:
        return text
    return re.sub(r"\b(" + "|".join(table) + r")\b", lambda match: table[match.group(0)], text)


def real(rng):
    """A story of the corpus: as it is, on request, or summed up."""
    r = rng.random()
    text = with_other_names(rng, rng.choice(corpus()), 0.4 if r >= 0.75 else 0.0)
    summary = extract.extractive(text)
    request = requests.story_request(rng, requests.real_topics(text, extract.hero(text)), summary)
    if r < 0.2:
        return text
    if r < 0.75 or not summary:
        return asked(request, text)
    if r < 0.9:
        return asked(requests.tldr_request(rng, text), summary)
    return asked(request, text) + asked(rng.choice(requests.TLDR_FOLLOW_UP), summary)


def story(rng):
    """A story on request, often summed up after it. Odd names are only where the request has them."""
    tale = plots.make_story(rng, (0.3, 0.0))
    hero = tale["facts"]["A"]
    request = requests.story_request(rng, tale["topics"], tale["summary"], tale["clause"], None if hero in KNOWN else hero)
    messages = asked(request, tale["story"])
    if rng.random() < 0.3:
        messages += asked(rng.choice(requests.TLDR_FOLLOW_UP), tale["summary"])
    return messages


def summed_up(rng):
    """A story that the user gives. Its names have to be copied."""
    tale = plots.make_story(rng, (0.6, 0.6))
    return asked(requests.tldr_request(rng, tale["story"]), tale["summary"])


def shortened(rng):
    """A short text to sum up: the sentences of a story that its summary needs, and some others."""
    tale = plots.make_story(rng, (0.6, 0.6))
    sentences = extract.sentences(tale["story"])
    said = set(re.findall(r"\w+", tale["summary"].lower()))
    score = [len(said & set(re.findall(r"\w+", one.lower()))) for one in sentences]
    kept = sorted(range(len(sentences)), key=lambda n: (-score[n], rng.random()))[: rng.choice([3, 4, 5, 6])]
    text = " ".join(sentences[n] for n in sorted(kept))
    if not all(key in text for key in tale["keys"]):
        return summed_up(rng)
    return asked(requests.tldr_request(rng, text), tale["summary"])


def questions(rng):
    """A story and questions about who and where."""
    tale = plots.make_story(rng, (0.5, 0.5))
    facts, text = tale["facts"], tale["story"]
    found = [(rng.choice(["Who is the story about?", "Who is this story about?", "What is the hero called?"]), f"The story is about {facts['A']}.")]
    if f"{facts['B']}, {facts['Bdesc']}" in text or f"{facts['B']} was {facts['Bdesc']}" in text:
        found.append((f"Who is {facts['B']}?", f"{facts['B']} is {facts['Bdesc']}."))
    found.append((rng.choice(["What happens in the story?", "What is the story about?"]), tale["summary"]))
    chosen = rng.sample(found, rng.choice([1, 1, 2]) if len(found) > 1 else 1)
    messages = asked(f"{text}\n\n{chosen[0][0]}", chosen[0][1])
    for question, answer in chosen[1:]:
        messages += asked(question, answer)
    return messages


def of_wish(rng):
    """A story of somebody who wanted something, on request."""
    tale = passages.tale(rng)
    messages = asked(fill(rng, rng.choice(requests.STORY_REQUESTS).format(t=rng.choice(tale["topics"]))), tale["text"])
    if rng.random() < 0.3:
        messages += asked(rng.choice(requests.TLDR_FOLLOW_UP), rng.choice(tale["summaries"]))
    return messages
