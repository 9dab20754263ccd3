"""How people ask for a story and for a summary."""

import random
import re

STORY_REQUESTS = """Tell me a story about {t}.|Tell me a story about {t}|tell me a story about {t}|Write a story about {t}.|Write a short story about {t}.|write a story about {t}
Can you tell me a story about {t}?|Please tell me a story about {t}.|Please write a story about {t}.|I want a story about {t}.|I want to hear a story about {t}.|Make up a story about {t}.
A story about {t}, please.|A story about {t}|story about {t}|Story about {t}, please!|Give me a story about {t}.|Give me a short story about {t}.|Tell me a tiny story about {t}.|Write a tiny story about {t}.
Could you write a little story about {t}?|Can you write a short story with {t}?|Tell me a bedtime story about {t}.|I would like a bedtime story about {t}.|Do you know a story about {t}?|Invent a story with {t} in it.
Tell me something about {t}.|Write me a story about {t}!|Hi! Can you tell me a story about {t}?|Hello, please tell me a story about {t}.|My kid wants a story about {t}.|Write a children's story about {t}.|Tell us a story about {t}.""".replace(
    "\n", "|"
).split("|")
SUMMARY_REQUESTS = """Write a story with this summary: {s}|Write a story like this: {s}|Tell me this story: {s}|Write the story of this: {s}|Make a story out of this: {s}|Tell me a story. {s}|Turn this into a story: {s}|{s} Tell me the whole story.""".split(
    "|"
)
PLAIN_REQUESTS = """Tell me a story.|Tell me a story|tell me a story|Tell me a short story.|Write a story.|Write a short story.|I want a story.|Can you tell me a story?|Please tell me a story.|A story, please.|Tell me a bedtime story.
Make up a story.|Give me a story.|Once upon a time...|Another story, please.|Tell me another story.|Tell me another one.|One more story, please!|Story please|Write something.|Surprise me with a story.""".replace(
    "\n", "|"
).split("|")
# `text` is called a story where it is one.
TLDR_BEFORE = """TL;DR:|TL;DR:|TL;DR:|TL;DR of this text:|TL;DR this:|tldr:|TLDR:|Summarize this:|Summarize this:|Summarize this:|Summarise this:|Summarize this text:|Please summarize this text:|Summarize the following text in one sentence:|Summarize this in one sentence:
Sum this up:|Sum this up in one sentence:|Sum this up in one sentence:|Sum up this text:|Sum this up in one or two sentences:|Please sum this up:|Can you sum this up?|Give me a TL;DR of this text:|What is this about?|What is this about?|What is this about?|What is this text about?|What is the following about?
What is it about?|Give a short summary:|A short summary, please:|Summary of this text, please:|Can you summarize this for me?|Write a summary of this text:|Write a one-sentence summary:|Make this short:|Shorten this:|In short:|In one sentence:|The main point in one sentence:|What is the main point?|What happens here?|Tell me briefly what this says:|Say this in one sentence:|Summarize the text in one or two sentences:""".replace(
    "\n", "|"
).split("|")
TLDR_AFTER = """TL;DR|TL;DR|TL;DR|TL;DR?|TL;DR:|tl;dr|tldr|TLDR please|Summarize this text.|Summarize this.|Summarize.|Please summarize this.|What is this about?|What is this about?|What is the text about?|Sum this up in one sentence.|Sum it up in one sentence.|Sum this up.|Give me a short summary.
Give me the TL;DR.|Summary?|Summary, please.|Summary:|In one sentence, please.|What is the main point?|In short?|Make it short.|Shorten this.|Can you sum this up?|Summarize it in one or two sentences.|What happened?|So what is it about?|Too long. What does it say?""".replace(
    "\n", "|"
).split("|")
TLDR_FOLLOW_UP = """Now sum it up.|Sum it up.|Sum that up in one sentence.|Now in one sentence.|And in short?|TL;DR|TL;DR?|TL;DR please|tl;dr|tldr|tldr?|Summarize that story.|Summarize it.|Summarize the story, please.|Can you sum that up?|Give me the TL;DR.|Sum it up in one sentence.|What was that about?|What was the story about?|Give me a short summary.|Make it short.|Too long. Give me the short version.|Now summarize it.|Summary, please.""".split(
    "|"
)

# Words of a real story that a request may name.
NOUNS = set(
    """dog cat bird bunny rabbit bear frog fish mouse duck pig cow horse lion tiger monkey elephant fox owl squirrel turtle bee butterfly ant spider snake whale shark dolphin penguin dinosaur dragon unicorn fairy witch
princess prince king queen pirate robot monster ghost wizard kitten puppy lamb sheep goat chicken hen deer wolf crab snail worm zebra giraffe kangaroo
car truck train boat ship plane bike bus ball doll kite toy box book hat shoe dress coat shirt cake cookie pie apple banana orange lemon carrot tomato pumpkin soup pizza sandwich candy ice cream honey bread egg milk
tree flower garden forest park beach sea ocean river lake pond island mountain hill cave farm barn house castle tower bridge school store shop zoo library playground garden kitchen
sun moon star rain snow wind storm rainbow cloud fire rock stone shell leaf stick seed treasure map key door window mirror lamp clock bell drum guitar piano song dance game puzzle swing slide sled
mom dad grandma grandpa sister brother baby friend teacher doctor farmer policeman fireman chef nurse neighbor birthday party picnic race magic wish secret surprise letter present gift picture paint crayon blanket pillow bed balloon bubble""".split()
)
PLACES = set("sun moon park forest garden beach sea ocean river lake pond mountain farm barn castle school store zoo library playground kitchen island".split())
MASS = set("rain snow wind fire magic milk bread honey candy soup paint mom dad grandma grandpa ice cream".split())


def real_topics(text: str, name: str | None) -> list[str]:
    words = re.findall(r"[a-z]+", text.lower())
    count = {}
    for w in words:
        w = w[:-1] if w.endswith("s") and w[:-1] in NOUNS else w
        if w in NOUNS:
            count[w] = count.get(w, 0) + 1
    good = sorted((w for w in count if count[w] >= 2 or w in text[:250].lower()), key=lambda w: -count[w])[:6]
    out = []
    for w in good:
        if w in PLACES:
            out.append("the " + w)
        elif w in MASS:
            out.append(w)
        else:
            out.append(("an " if w[0] in "aeiou" else "a ") + w)
    if name:
        out.insert(0, name)
    return out


def join_topics(topics: list[str]) -> str:
    return topics[0] if len(topics) == 1 else ", ".join(topics[:-1]) + " and " + topics[-1]


def story_request(rng: random.Random, topics: list[str], summary: str | None = None, clause: str | None = None, must: str | None = None) -> str:
    r = rng.random()
    if summary and r < 0.12:
        return rng.choice(SUMMARY_REQUESTS).format(s=summary)
    if clause and r < 0.3 and (not must or must in clause):
        return rng.choice(STORY_REQUESTS).format(t=clause)
    if must:  # the hero has an odd name: the request has to give it
        first = rng.choice([t for t in topics if must in t] or [must])
        rest = [t for t in topics if must not in t]
        return rng.choice(STORY_REQUESTS).format(t=join_topics([first] + rng.sample(rest, min(len(rest), rng.choice((0, 1, 1, 2))))))
    if not topics or rng.random() < 0.08:
        return rng.choice(PLAIN_REQUESTS)
    k = min(len(topics), rng.choice((1, 1, 1, 2, 2, 2, 3)))
    return rng.choice(STORY_REQUESTS).format(t=join_topics(rng.sample(topics, k)))


def tldr_request(rng: random.Random, text: str, name: str = "story") -> str:
    """A request to sum up a text; `name` is what the request calls it."""
    if rng.random() < 0.55:
        return rng.choice(TLDR_BEFORE).replace("text", name) + rng.choice(("\n\n", "\n", " ", " ")) + text
    return text + rng.choice(("\n\n", "\n\n", "\n", " ")) + rng.choice(TLDR_AFTER).replace("text", name)
