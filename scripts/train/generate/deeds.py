"""Texts of deeds and facts whose words are drawn from a wide vocabulary, with questions about each of them. An answer
can only be found in the text."""

from . import lexicon
from .grammar import an, capital, listed

LIES = ["grey", "red", "blue", "green", "yellow", "white", "black", "brown"]
BE_SHORT = 0.45


class Person:
    """Somebody, or an animal, and how a text speaks of them."""

    def __init__(self, rng, taken=()):
        girl = rng.random() < 0.5
        self.name = lexicon.name(rng, girl)
        while self.name in taken:
            self.name = lexicon.name(rng, girl)
        self.he, self.him, self.his = ("she", "her", "her") if girl else ("he", "him", "his")
        self.kind = None
        r = rng.random()
        if r < 0.12:
            self.name = f"{rng.choice(['Mrs.', 'Aunt', 'Grandma', 'Miss', 'Dr.'] if girl else ['Mr.', 'Uncle', 'Grandpa', 'Captain', 'Old'])} {self.name}"
        elif r < 0.2:
            self.name = f"{self.name} {lexicon.family(rng)}"
        elif r < 0.5:
            self.kind = f"the {rng.choice(lexicon.ANIMALS + lexicon.BEINGS + lexicon.PEOPLE)}"
        self.first = f"{self.name} {self.kind}" if self.kind else self.name
        # a name that ends in a kind has a comma before more
        self.owner = f"{self.name}'s"


def answer(rng, short, whole):
    return capital(f"{short}.") if rng.random() < BE_SHORT else capital(f"{whole}.")


def asked_for(what):
    """The word that asks for it."""
    return "Whom" if what[0].isupper() or what.startswith("the ") else "What"


def deed(rng, who, other):
    """What somebody did once: (sentence, questions). `{W}` is the word for the one who did it."""
    base, past, kinds = rng.choice(lexicon.VERBS)
    what = lexicon.object_of(rng, kinds, other.name if rng.random() < 0.6 else None)
    spot = rng.choice(lexicon.SPOTS) if rng.random() < 0.5 else ""
    when = rng.choice(lexicon.TIMES) if rng.random() < 0.45 else ""
    why = ""
    if rng.random() < 0.22:
        why = rng.choice(lexicon.REASONS)
        why = why.replace("{he}", who.he).replace("{him}", who.him).replace("{B}", other.name)
        if other.name in what and other.name in why:
            why = ""
    short = f"{past} {what}"
    full = " ".join(x for x in (short, spot) if x)
    sentence = f"{{W}} {full}{' because ' + why if why else ''}"
    if when:
        sentence = f"{when}, {sentence}" if rng.random() < 0.5 else f"{{W}} {full} {when}{' because ' + why if why else ''}"
    a, w = who.name, rng.choice([who.name, who.name, who.he])
    questions = [
        (f"Who {short}?", answer(rng, a, f"{a} {short}")),
        (f"{asked_for(what)} did {w} {base}?", answer(rng, what, f"{a} {short}")),
    ]
    if spot:
        questions.append((f"Where did {w} {base} {what}?", answer(rng, spot, f"{a} {short} {spot}")))
        questions.append((f"What happened {spot}?", capital(f"{a} {short} {spot}.")))
    if when:
        questions.append((f"When did {w} {base} {what}?", answer(rng, when, f"{a} {short} {when}")))
        questions.append((f"What did {w} do {when}?", capital(f"{a} {short} {when}.")))
    if why:
        questions += [(f"Why did {w} {base} {what}?", answer(rng, f"because {why}", f"{a} {short} because {why}"))] * 2
    head, _, tail = what.partition(" ")
    if head in lexicon.NUMBERS:
        questions += [(f"How many {tail} did {w} {base}?", answer(rng, head, f"{a} {short}"))] * 2
    if rng.random() < 0.5:
        questions.append((f"Did {w} {base} {what}?", capital(f"yes, {a} {short}.")))
    else:
        false = lexicon.object_of(rng, kinds)
        questions.append((f"Did {w} {base} {false}?", capital(f"no, {a} {short}.")))
    return sentence, questions


def habit(rng, who, other):
    """What somebody does again and again."""
    base, past, kinds = rng.choice(lexicon.VERBS)
    while base in ("lose", "break", "drop", "inherit", "forget", "spill"):
        base, past, kinds = rng.choice(lexicon.VERBS)
    what = lexicon.object_of(rng, kinds, other.name if rng.random() < 0.6 else None)
    often = rng.choice(lexicon.OFTEN)
    spot = f" {rng.choice(lexicon.SPOTS)}" if rng.random() < 0.5 else ""
    does = f"{lexicon.third(base)} {what}"
    a, w = who.name, rng.choice([who.name, who.he])
    sentence = f"{often}, {{W}} {does}{spot}" if rng.random() < 0.5 else f"{{W}} {does}{spot} {often}"
    questions = [
        (f"What does {w} do {often}?", capital(f"{a} {does}{spot}.")),
        (f"When does {w} {base} {what}?", answer(rng, often, f"{a} {does} {often}")),
        (f"Who {does}?", answer(rng, a, f"{a} {does}")),
        (f"{asked_for(what)} does {w} {base}?", answer(rng, what, f"{a} {does}")),
    ]
    if spot:
        questions.append((f"Where does {w} {base} {what}?", answer(rng, spot.strip(), f"{a} {does}{spot}")))
    return sentence, questions


def state(rng, who, other):
    """How somebody is, what somebody has."""
    a, his, w = who.name, who.his, rng.choice([who.name, who.he])
    kind = rng.randrange(11)
    if kind == 0:
        count = rng.choice(["two", "two", "two", "three"])
        animal = rng.choice(lexicon.ANIMALS + ["brother", "sister", "child", "boat"])
        many = {"child": "children"}.get(animal, lexicon.plural(animal))
        names = [
            lexicon.odd_name(rng) if rng.random() < 0.4 else capital(rng.choice(lexicon.FOODS + lexicon.THINGS + lexicon.GIRLS))
            for _ in range(3 if count == "three" else 2)
        ]
        called = rng.choice([f", {listed(names)}", f" called {listed(names)}", f" named {listed(names)}"])
        return f"{{W}} has {count} {many}{called}", [
            (f"How many {many} does {w} have?", answer(rng, count, f"{a} has {count} {many}")),
            (
                rng.choice([f"What are the {many} called?", f"What are the names of the {many}?", f"What are {his} {many} called?"]),
                answer(rng, listed(names), f"they are called {listed(names)}"),
            ),
            (f"What does {w} have?", capital(f"{a} has {count} {many}.")),
        ]
    if kind in (1, 2):
        owned, look = rng.choice(["house", "door", "roof", "fence", *lexicon.THINGS]), rng.choice(lexicon.COLOURS)
        false = rng.choice([one for one in LIES if one != look])
        said = rng.choice([f"{{S}} {owned} is {look}", f"{{W}} has {an(look)} {owned}"])
        of = rng.choice([f"{who.owner} {owned}", f"{his} {owned}", f"the {owned}"])
        return said, [
            (f"What {rng.choice(['colour', 'color'])} is {of}?", answer(rng, look, f"{his} {owned} is {look}")),
            (f"Is {of} {false}?", rng.choice([f"No, it is {look}.", f"No, {his} {owned} is {look}."])),
            (f"Is {of} {false}?", rng.choice([f"No, it is {look}.", f"No, {his} {owned} is {look}."])),
            (f"Is {of} {look}?", rng.choice([f"Yes, it is {look}.", f"Yes, {his} {owned} is {look}."])),
        ]
    if kind == 3:
        job = rng.choice(lexicon.JOBS)
        return f"{{W}} works as {an(job)}", [
            (rng.choice([f"What is {who.owner} job?", f"What does {w} do for a living?", f"What does {w} work as?"]), answer(rng, an(job), f"{a} is {an(job)}"))
        ]
    if kind in (4, 5):
        home = rng.choice(
            [
                f"in {an(rng.choice(lexicon.LOOKS[:22]))} {rng.choice(['house', 'cottage', 'hut', 'tower', 'mill', 'cabin', 'boat', 'caravan'])} {rng.choice(lexicon.SPOTS[36:])}",
                f"in {lexicon.town(rng)}",
                f"with {his} {rng.choice(lexicon.NEIGHBOURS)} in {lexicon.town(rng)}",
                f"in {an(rng.choice(lexicon.LOOKS[:22]))} {rng.choice(['house', 'cottage', 'hut', 'tower', 'mill', 'flat'])} near the {rng.choice(lexicon.BUILT)}",
            ]
        )
        return f"{{W}} lives {home}", [
            (f"Where does {w} live?", answer(rng, home, f"{a} lives {home}")),
            (f"Where is {who.owner} home?", answer(rng, home, f"{a} lives {home}")),
            (f"Who lives {home}?", answer(rng, a, f"{a} lives {home}")),
        ]
    if kind == 6:
        age = rng.randrange(3, 99)
        return f"{{W}} is {age} years old", [(f"How old is {w}?", answer(rng, str(age), f"{a} is {age} years old"))]
    if kind == 7:
        liked, not_liked = rng.sample(lexicon.FOODS, 2)
        return f"{{W}} likes {liked}, but not {not_liked}", [
            (f"What does {w} like?", answer(rng, liked, f"{a} likes {liked}")),
            (f"What does {w} not like?", answer(rng, not_liked, f"{a} does not like {not_liked}")),
            (f"Does {w} like {liked}?", f"Yes, {a} likes {liked}."),
            (f"Does {w} like {not_liked}?", f"No, {a} does not like {not_liked}."),
        ]
    if kind == 8:
        feared = rng.choice([lexicon.plural(rng.choice(lexicon.ANIMALS)), f"the {rng.choice(lexicon.BUILT)}", f"the {rng.choice(lexicon.JOBS)}"])
        return f"{{W}} is afraid of {feared}", [(f"What is {w} afraid of?", answer(rng, feared, f"{a} is afraid of {feared}"))]
    if kind == 9:
        wish = (
            f"{rng.choice(['see', 'have', 'own', 'find', 'draw'])} {an(lexicon.thing(rng))}"
            if rng.random() < 0.6
            else f"visit the {rng.choice(lexicon.BUILT)} of {lexicon.town(rng)}"
        )
        but = rng.choice(["has no money", "has no time", "is too young", "never leaves the house", "is too shy", "always sleeps too long", "has a broken leg"])
        return f"{{W}} wants to {wish}, but {who.he} {but}", [
            (f"What does {w} want?", answer(rng, f"to {wish}", f"{a} wants to {wish}")),
            (f"What does {w} want to do?", f"{a} wants to {wish}."),
            (f"Why can {w} not {wish}?", capital(f"because {who.he} {but}.")),
        ]
    mood = rng.choice(lexicon.MOODS)
    why = rng.choice(lexicon.REASONS).replace("{he}", who.he).replace("{him}", who.him).replace("{B}", other.name)
    return f"{{W}} was {mood} because {why}", [
        (f"How did {w} feel?", answer(rng, mood, f"{a} was {mood}")),
        (f"Why was {w} {mood}?", answer(rng, f"because {why}", f"{a} was {mood} because {why}")),
        (f"Who was {mood}?", answer(rng, a, f"{a} was {mood}")),
    ]


def told(rng, count, people=None):
    """A text of so many sentences about one or two: (sentences, for each of them its questions, people)."""
    one = people[0] if people else Person(rng)
    other = people[1] if people else Person(rng, (one.name,))
    two = rng.random() < 0.35
    is_past = rng.random() < 0.5
    sentences, questions, last, seen = [], [], None, set()
    for n in range(count):
        who, by = (other, one) if two and n and rng.random() < 0.45 else (one, other)
        make = rng.choices([deed, habit, state], [7, 0, 1] if is_past else [0, 3, 5])[0]
        sentence, asks = make(rng, who, by)
        first = who not in seen
        if first:
            word, owner = who.first, f"{who.first}'s"
        elif last is who and rng.random() < 0.7:
            word, owner = who.he, who.his
        else:
            word, owner = who.name, who.owner
        seen.add(who)
        last = who
        sentences.append(capital(sentence.replace("{W}", word).replace("{S}", owner)) + ".")
        # A pronoun in a question can only be the one whom the text is about.
        questions.append([pair for pair in asks if not two or not any(f" {w} " in f" {pair[0]} " for w in (who.he, who.him, who.his))])
    return sentences, questions, (one, other, two)


def passage(rng):
    """{"text", "sentences", "questions"}, with questions that have one answer."""
    count = rng.choice([2, 3, 3, 4, 4, 5, 6])
    sentences, questions, (one, _, two) = told(rng, count)
    pairs = [pair for asks in questions for pair in asks]
    # A question that could be about two sentences has no one answer.
    plain = [question.replace(f" {one.name} ", f" {one.he} ") for question, _ in pairs]
    kept = [pair for pair, question in zip(pairs, plain) if plain.count(question) == 1 or pair[0].startswith(("Is ", "How many"))]
    if not two:
        about = f"{one.name}, {one.kind}" if one.kind and rng.random() < 0.5 else one.name
        kept.append(
            (
                rng.choice(["Who is this about?", "Who is the text about?", "Who is the story about?", "Whom is this text about?"]),
                answer(rng, about, f"it is about {about}"),
            )
        )
        if one.kind:
            kept.append((f"Who is {one.name}?", capital(f"{one.name} is {one.kind}.")))
    if not kept:
        return passage(rng)
    if rng.random() < 0.35:
        at = rng.randrange(len(sentences) + 1)
        sentences = sentences[:at] + [lexicon.scenery(rng)] + sentences[at:]
    return {"text": " ".join(sentences), "sentences": sentences, "questions": kept}
