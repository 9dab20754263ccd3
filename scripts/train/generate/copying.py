"""Tasks that are done by copying: from a text, a list or a sentence that was never seen before."""

import re
from functools import cache

from . import deeds, lexicon
from .grammar import an, asked, capital, listed
from .tales import corpus

MIN_TIMES = 3


@cache
def vocabulary():
    """Words of the corpus, and the nouns and looks of the lexicon."""
    count = {}
    for text in corpus():
        for word in re.findall(r"\b[a-z]{3,}\b", text):
            count[word] = count.get(word, 0) + 1
    nouns = {
        *lexicon.ANIMALS,
        *lexicon.BEINGS,
        *lexicon.PEOPLE,
        *lexicon.THINGS,
        *lexicon.FOODS,
        *lexicon.BUILT,
        *lexicon.NATURE,
        *lexicon.LOOKS,
        *lexicon.MOODS,
    }
    return sorted({word for word, times in count.items() if times >= MIN_TIMES} | nouns)


@cache
def sentences():
    """The short sentences of the corpus."""
    found = {one for text in corpus() for one in re.findall(r"(?<=[.!?] )[A-Z][^.!?\"\n]{12,90}[.!]", text)}
    return sorted(found)


def word(rng):
    return lexicon.syllables(rng) if rng.random() < 0.2 else rng.choice(vocabulary())


def sentence(rng):
    """One that nobody has seen."""
    r = rng.random()
    if r < 0.3:
        # A sentence of the corpus in which some words are others.
        return re.sub(r"\b[a-z]{4,}\b", lambda match: rng.choice(vocabulary()) if rng.random() < 0.3 else match.group(0), rng.choice(sentences()))
    if r < 0.45:
        return capital(" ".join(word(rng) for _ in range(rng.randrange(3, 11)))) + "."
    return deeds.told(rng, 1)[0][0]


SAY = [
    "Repeat this: {s}",
    "Repeat this sentence: {s}",
    "Repeat after me: {s}",
    "Copy this sentence: {s}",
    "Copy this text:\n{s}",
    "Write this again: {s}",
    "Say this: {s}",
    "Please repeat exactly: {s}",
    'Say "{s}"',
    "Write down what I say: {s}",
    "{s}\n\nRepeat this.",
    "{s}\n\nCopy the text.",
]


def repeat(rng):
    text = " ".join(sentence(rng) for _ in range(rng.choice([1, 1, 1, 2, 3])))
    if rng.random() < 0.3:
        text = " ".join(word(rng) for _ in range(rng.choice([1, 1, 2, 3, 5, 8])))
        if " " not in text:
            return asked(
                rng.choice(["Repeat the word {}.", "Repeat this word: {}", "Say the word {}.", "Write the word {}.", "Copy this word: {}", "Say {}."]).format(
                    text
                ),
                text,
            )
    if rng.random() < 0.1:
        return asked(rng.choice([f"Write this in capital letters: {text}", f"{text}\n\nIn capital letters, please."]), text.upper())
    return asked(rng.choice(SAY).format(s=text), text)


def of_list(rng):
    """A list and what is asked of it: an item, its order, how many, in which form."""
    words = list(dict.fromkeys(word(rng) if rng.random() < 0.6 else lexicon.odd_name(rng) for _ in range(rng.randrange(3, 9))))
    kind = rng.randrange(7)
    joined = ", ".join(words)
    n = rng.randrange(len(words))
    nth = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"][n]
    if kind == 0:
        return asked(
            rng.choice([f"What is the {nth} word? {joined}", f"{joined}\n\nWhich word is the {nth}?", f"Say the {nth} of these words: {joined}"]), words[n]
        )
    if kind == 1:
        return asked(rng.choice([f"What is the last word? {joined}", f"{joined}\n\nRepeat the last one."]), words[-1])
    if kind == 2:
        return asked(
            rng.choice([f"Write these words as a list: {joined}", f"Make a list of this: {listed(words)}", f"{joined}\n\nOne word a line, please."]),
            "\n".join(f"- {one}" for one in words),
        )
    if kind == 3:
        lines = "\n".join(f"- {one}" for one in words)
        return asked(rng.choice([f"Write this list in one line:\n{lines}", f"{lines}\n\nWrite this with commas."]), joined)
    if kind == 4:
        return asked(
            rng.choice([f"Write these words in reverse order: {joined}", f"{joined}\n\nBackwards, please, the last word first."]), ", ".join(words[::-1])
        )
    if kind == 5 and len(words) > 2 and n + 1 < len(words):
        return asked(rng.choice([f"Which word comes after {words[n]}? {joined}", f"{joined}\n\nWhat follows {words[n]}?"]), words[n + 1])
    left = [one for one in words if one != words[n]]
    return asked(rng.choice([f"Take {words[n]} out of this list: {joined}", f"{joined}\n\nLeave out {words[n]}."]), ", ".join(left))


def pairs(rng):
    """What belongs to whom: looked up in lines or in sentences."""
    names = list(dict.fromkeys(lexicon.odd_name(rng) if rng.random() < 0.5 else rng.choice(lexicon.GIRLS + lexicon.BOYS) for _ in range(rng.randrange(2, 7))))
    kind = rng.randrange(5)
    if kind == 0:
        values = [lexicon.thing(rng) for _ in names]
        lines = [f"{one} has {an(value)}" for one, value in zip(names, values)]
        ask, reply, back = "What does {n} have?", "{n} has {v}.", "Who has {v}?"
        values = [an(value) for value in values]
    elif kind == 1:
        values = [lexicon.town(rng) for _ in names]
        lines = [f"{one} lives in {value}" for one, value in zip(names, values)]
        ask, reply, back = "Where does {n} live?", "{n} lives in {v}.", "Who lives in {v}?"
    elif kind == 2:
        values = [rng.choice(lexicon.JOBS) for _ in names]
        lines = [f"{one} is {an(value)}" for one, value in zip(names, values)]
        values = [an(value) for value in values]
        ask, reply, back = "What is {n}?", "{n} is {v}.", "Who is {v}?"
    elif kind == 3:
        values = [rng.choice(lexicon.FOODS) for _ in names]
        verb = rng.choice(["ordered", "brought", "ate", "wanted"])
        lines = [f"{one} {verb} {value}" for one, value in zip(names, values)]
        base = {"ordered": "order", "brought": "bring", "ate": "eat", "wanted": "want"}[verb]
        ask, reply, back = f"What did {{n}} {base}?", f"{{n}} {verb} {{v}}.", f"Who {verb} {{v}}?"
    else:
        values = [f"{rng.randrange(10, 9999)}" for _ in names]
        lines = [f"{one}: {value}" for one, value in zip(names, values)]
        ask, reply, back = "What is the number of {n}?", "{v}.", "Whose number is {v}?"
    if len(set(values)) < len(values):
        return pairs(rng)
    text = rng.choice(["\n".join(lines), ". ".join(lines) + ".", capital(listed(lines)) + "."])
    if rng.random() < 0.12:
        return asked(
            rng.choice([f"Who is named in this text? {text}", f"{text}\n\nList the names.", f"{text}\n\nWhich names are in the text?"]), listed(names) + "."
        )
    messages = []
    for n in rng.sample(range(len(names)), min(len(names), rng.choice([1, 1, 2, 3]))):
        forward = rng.random() < 0.6
        messages += (
            asked(ask.format(n=names[n]), capital(reply.format(n=names[n], v=values[n]))) if forward else asked(back.format(v=values[n]), f"{names[n]}.")
        )
    messages[0]["content"] = f"{text}\n\n{messages[0]['content']}"
    return messages


def of_text(rng):
    """A sentence of a text is to be found, or a list made from it, or a name replaced."""
    sentences_, _, (one, other, two) = deeds.told(rng, rng.randrange(3, 7))
    text = " ".join(sentences_)
    kind = rng.randrange(6)
    if kind == 0:
        n = rng.choice([0, len(sentences_) - 1])
        place = "first" if n == 0 else "last"
        return asked(
            rng.choice(
                [f"{text}\n\nRepeat the {place} sentence.", f"What is the {place} sentence of this text?\n\n{text}", f"Write only the {place} sentence: {text}"]
            ),
            sentences_[n],
        )
    if kind in (1, 2):
        said = [set(re.findall(r"\b[a-z]{4,}\b", x)) for x in sentences_]
        once = sorted((w, n) for n, words in enumerate(said) for w in words if sum(w in x for x in said) == 1)
        if not once:
            return of_text(rng)
        w, n = rng.choice(once)
        if kind == 1:
            return asked(
                f"{text}\n\n{rng.choice(['Which sentence has the word {}?', 'Find the sentence with {}.', 'Which sentence speaks of {}?', 'Repeat the sentence with the word {}.']).format(w)}",
                sentences_[n],
            )
        gap = re.sub(rf"(?i)\b{w}\b", "___", sentences_[n], count=1)
        return asked(f"{rng.choice(['Which word is missing?', 'Fill in the gap.', 'What is the missing word?'])}\n\n{text}\n\n{gap}", w)
    if kind == 3:
        new = lexicon.odd_name(rng)
        return asked(
            f"{rng.choice(['Change the name {} to {}', 'Write {} as {} in this text', 'Replace {} with {}', 'Rename {} to {}']).format(one.name, new)}: {text}",
            text.replace(one.name, new),
        )
    if kind == 4:
        return asked(
            f"{text}\n\n{rng.choice(['Make a list of the sentences.', 'One sentence a line, please.', 'Write it as a list.'])}",
            "\n".join(f"- {x}" for x in sentences_),
        )
    items = [an(lexicon.thing(rng)) if rng.random() < 0.5 else rng.choice(lexicon.FOODS) for _ in range(rng.randrange(2, 6))]
    verb, base = rng.choice([("bought", "buy"), ("packed", "pack"), ("found", "find"), ("sold", "sell"), ("brought", "bring"), ("carried", "carry")])
    told = f"{one.name} {verb} {listed(items)} {rng.choice(lexicon.SPOTS)}."
    at = rng.randrange(len(sentences_))
    whole = " ".join([*sentences_[:at], told, *sentences_[at:]])
    return asked(
        f"{whole}\n\n{rng.choice([f'List the things that {one.name} {verb}.', f'Make a list of all that {one.name} {verb}.', f'What did {one.name} {base}? Write a list.'])}",
        "\n".join(f"- {item}" for item in items) if rng.random() < 0.6 else capital(listed(items)) + ".",
    )


KINDS = [(repeat, 3), (of_list, 2), (pairs, 3), (of_text, 3)]


def task(rng):
    (kind,) = rng.choices([kind for kind, _ in KINDS], [share for _, share in KINDS])
    return kind(rng)
