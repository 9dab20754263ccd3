"""Stories on request, and their summaries: of plots whose summary is known, and of the corpus."""

import gzip
import json
import re
from functools import cache
from pathlib import Path

from . import extract, lexicon, passages, plots, requests, words
from .grammar import an, asked, fill

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


# Nouns of one word that others of their kind may stand for.
ALIKE = {}
for pool in (lexicon.ANIMALS, lexicon.THINGS, lexicon.SNACKS):
    single = [one for one in pool if " " not in one]
    ALIKE.update(dict.fromkeys(single, single))
for verb in "saw fly swallow ring stamp brush comb drum fan hook hammer lock pin pump rake record sail sign stick seal duck bear dress fish bat frame rattle shovel knot swing boot coat mask table".split():
    ALIKE.pop(verb, None)  # It may be no noun.
ALIKE_WORD = re.compile(r"\b(a |an |A |An )?(" + "|".join(sorted(ALIKE, key=len, reverse=True)) + r")(s?)\b")


def with_other_nouns(rng, text):
    """The same text about other animals and things: it cannot be told by heart."""
    table = {}

    def other(match):
        article, noun, s = match.group(1) or "", match.group(2), match.group(3)
        if noun not in table:
            table[noun] = rng.choice(ALIKE[noun]) if rng.random() < 0.8 else noun
        new = lexicon.plural(table[noun]) if s else table[noun]
        if not article:
            return new
        with_article = an(new)
        return with_article if article[0] == "a" else with_article[0].upper() + with_article[1:]

    return ALIKE_WORD.sub(other, text)


def real(rng):
    """A story of the corpus, as it is or for a request that names what it is about."""
    text = rng.choice(corpus())
    topics = requests.real_topics(text, None)[:3]
    if rng.random() < 0.4 or len(topics) < 2:
        return with_other_names(rng, text, 0.4)
    count = rng.randrange(2, len(topics) + 1)
    return asked(rng.choice(requests.STORY_REQUESTS).format(t=requests.join_topics(topics[:count])), with_other_names(rng, text, 0.0))


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
