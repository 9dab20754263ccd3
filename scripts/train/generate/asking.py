"""Questions about parts of the corpus's stories, and their summaries in sentences of the text. What is learned is to
find and copy words that were never seen together, not the stories."""

import re

from . import extract, texts
from .grammar import asked, capital
from .tales import corpus, with_other_names, with_other_nouns

NAME = r"\b([A-Z][a-z]{2,})"
# a pattern to find in a sentence, a question about it, the answer; {0} and {1} are the pattern's groups
PATTERNS = [
    (
        rf"^{NAME} (?:went|ran|walked|came) to (the [a-z]+)\b",
        ["Where did {0} go?", "To which spot did {0} go?", "Where does {0} go?"],
        ["{0} went to {1}.", "To {1}."],
    ),
    (
        rf"{NAME} found (an? (?:[a-z]+ )?[a-z]+)(?=[.,]| in | on | under | near | and )",
        ["What did {0} find?", "What does {0} find?"],
        ["{0} found {1}.", "{1}."],
    ),
    (rf"{NAME} saw (an? (?:[a-z]+ )?[a-z]+)(?=[.,]| in | on | under | near | and )", ["What did {0} see?", "What does {0} see?"], ["{0} saw {1}.", "{1}."]),
    (rf"{NAME} had (an? (?:[a-z]+ )?[a-z]+)(?=[.,]| named | that )", ["What did {0} have?", "What does {0} have?"], ["{0} had {1}."]),
    (rf"{NAME} wanted to ([a-z]+(?: [a-z']+)*)(?=[.,])", ["What did {0} want to do?", "What does {0} want?", "What was {0}'s wish?"], ["{0} wanted to {1}."]),
    (rf"{NAME} (?:loved|liked) to ([a-z]+(?: [a-z']+)*)(?=[.,])", ["What did {0} love to do?", "What does {0} like?"], ["{0} liked to {1}."]),
    (
        rf"{NAME} (?:was|felt) (?:very |so )?(sad|happy|scared|angry|excited|proud|tired|hungry|surprised|worried|curious|lonely|cold|sorry|brave|lost)\b",
        ["How did {0} feel?", "How was {0}?", "How does {0} feel?"],
        ["{0} was {1}.", "{1}."],
    ),
    (rf"{NAME} was ([a-z]+) because ([a-z][a-z ,']+)\.", ["Why was {0} {1}?"], ["{0} was {1} because {2}.", "Because {2}."]),
    (rf'"([^"]{{4,60}}?)[,!?.]" (?:said|asked|cried|shouted|replied) {NAME}', ['Who says "{0}"?', 'Who said "{0}"?'], ["{1} says that.", "{1}."]),
    (rf'{NAME} (?:said|asked|replied|shouted), "([^"]{{4,60}}?)[!?.]"', ["What does {0} say?", "What did {0} say?"], ['{0} says: "{1}"', '"{1}"']),
    (
        rf"\ban? (?:[a-z]+ )?(dog|cat|girl|boy|bird|rabbit|bear|fox|frog|mouse|man|woman|fish|duck|pig|cow|bunny|puppy|kitten|bug|squirrel|turtle|lion|monkey|owl) (?:named|called) {NAME}",
        ["What is the {0} called?", "What is the name of the {0}?"],
        ["The {0} is called {1}.", "{1}."],
    ),
    (
        rf"\b(an? (?:[a-z]+ )?(?:dog|cat|girl|boy|bird|rabbit|bear|fox|frog|mouse|man|woman|fish|duck|pig|cow|bunny|puppy|kitten|bug|squirrel|turtle|lion|monkey|owl)) (?:named|called) {NAME}",
        ["Who is {1}?", "What is {1}?"],
        ["{1} is {0}."],
    ),
]
COMPILED = [(re.compile(pattern), questions, answers) for pattern, questions, answers in PATTERNS]
UNSAID = [
    "How old is {0}?",
    "What is {0}'s job?",
    "What colour are {0}'s shoes?",
    "Where was {0} born?",
    "What does {0} eat for breakfast?",
    "How tall is {0}?",
]
# Words with a capital letter that are no names: they begin sentences.
NO_NAMES = extract.STOP | {
    "Every",
    "Everyone",
    "Mommy",
    "Daddy",
    "Mum",
    "Some",
    "All",
    "Both",
    "People",
    "Today",
    "Please",
    "Thank",
    "Maybe",
    "Look",
    "Wow",
    "Now",
    "How",
    "Instead",
    "Everybody",
    "Nobody",
    "Inside",
    "Outside",
    "Together",
    "Just",
    "Why",
    "Who",
    "Where",
    "Here",
    "Can",
    "Do",
    "Not",
}
DEED = re.compile(r"\b(wanted|found|saw|lost|went|made|had|was|could|decided|bought|took|heard|met|tried|loved|lived|wished|forgot|broke|fell)\b")
MAX_TRIES = 8


def part(rng, most):
    """Some sentences of a story that follow one another, with other names and nouns."""
    sentences = extract.sentences(rng.choice(corpus()))
    count = min(len(sentences), rng.randrange(3, most + 1))
    first = rng.randrange(len(sentences) - count + 1) if rng.random() < 0.6 else 0
    text = with_other_nouns(rng, with_other_names(rng, " ".join(sentences[first : first + count]), 0.5))
    return extract.sentences(text)


def question(rng):
    """Questions about a part of a story."""
    for _ in range(MAX_TRIES):
        sentences = part(rng, 10)
        found = []
        for sentence in sentences:
            for pattern, questions, answers in COMPILED:
                match = pattern.search(sentence)
                if match and not NO_NAMES & set(match.groups()):
                    found.append((rng.choice(questions).format(*match.groups()), capital(rng.choice(answers).format(*match.groups()))))
        # A question with two answers has none.
        found = [pair for pair in found if sum(other[0] == pair[0] for other in found) == 1]
        if not found:
            continue
        chosen = rng.sample(found, min(len(found), rng.choice([1, 1, 2, 3])))
        if rng.random() < 0.03:
            name = re.search(NAME, " ".join(sentences)).group(1)
            if name not in NO_NAMES:
                chosen[-1] = (rng.choice(UNSAID).format(name), rng.choice(["The text does not say that.", "The text does not say it."]))
        messages = asked(rng.choice(texts.BEFORE).format(t=" ".join(sentences), q=chosen[0][0]), chosen[0][1])
        return messages + [message for pair in chosen[1:] for message in asked(*pair)]
    return texts.reading(rng)


def summary(rng):
    """A part of a story, and its first deed and its end as the summary."""
    for _ in range(MAX_TRIES):
        sentences = part(rng, 8)
        text = " ".join(sentences)
        names = [name for name in re.findall(NAME, text) if name not in NO_NAMES]
        if not names:
            continue
        hero = max(names, key=names.count)
        plain = [one for one in sentences if '"' not in one and 4 <= len(one.split()) <= 22]
        deeds = [one for one in plain if DEED.search(one) and (hero in one or re.match(r"(He|She|One)\b", one))]
        if not deeds or len(plain) < 2 or plain[-1] == deeds[0]:
            continue
        if any(hero in one and re.match(r"(He|She)\b", one) for one in (deeds[0], plain[-1])):
            continue  # The pronoun is somebody else.
        begin, end = (extract.fix(one.removeprefix("Once upon a time, "), hero, text) for one in (deeds[0], plain[-1]))
        # One that begins with another pronoun cannot be understood alone.
        # Nor can what says only who somebody is, or how.
        if (
            re.search(r"\b(it|them|that|this)\b|There was|[Ll]iked to|[Ll]oved to|was an? |was (very|so)\b|were (very|so)\b|[Ff]elt", begin + end)
            or re.match(r"(It|They|This|That|But|And|So|His|Her|Then)\b", begin)
            or re.match(r"(It|This|That|But|And|So)\b", end)
            or begin == end
        ):
            continue
        return texts.to_sum_up(rng, text, f"{begin} {end}")
    return texts.summary(rng)


def sentence(rng):
    """A sentence of a text to be found: the first, the last, or the one with a word."""
    sentences = part(rng, 7)
    text = " ".join(sentences)
    kind = rng.randrange(4)
    if kind == 0:
        return asked(
            f"{rng.choice(['What is the first sentence of this text?', 'Write the first sentence of this text again.', 'Repeat the first sentence.'])}\n\n{text}",
            sentences[0],
        )
    if kind == 1:
        return asked(f"{text}\n\n{rng.choice(['What is the last sentence?', 'Repeat the last sentence.', 'Write the last sentence again.'])}", sentences[-1])
    said = [re.findall(r"[a-z]{4,}", one.lower()) for one in sentences]
    every = [word for one in said for word in set(one)]
    once = [(word, n) for n, one in enumerate(said) for word in set(one) if every.count(word) == 1]
    if not once:
        return sentence(rng)
    word, n = rng.choice(sorted(once))
    if kind == 2:
        return asked(
            f"{text}\n\n{rng.choice(['Which sentence has the word {}?', 'Find the sentence with the word {}.', 'Where does the word {} occur?']).format(word)}",
            sentences[n],
        )
    gap = re.sub(rf"(?i)\b{word}\b", "___", sentences[n])
    return asked(f"{rng.choice(['Which word is missing?', 'Fill in the gap.', 'What is the missing word?'])}\n\n{text}\n\n{gap}", word)
