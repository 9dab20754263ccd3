"""Courses of events: what somebody wanted, what came in between, how it ended. The structure is plain, and the deeds are
drawn at random, so that a summary can only be made of the words of the text."""

from . import lexicon
from .deeds import Person
from .grammar import an, capital, fill

OBSTACLES = (
    "it began to rain|the door was locked|the bus did not come|{he} had no money|{he} had no time|{he} fell ill|it was too late|it was too dark|the way was too long|{B} did not allow it|{B} was against it|{B} had done it already|nobody would help|"
    "the wind was too strong|the snow was too deep|everything was sold out|the shop was closed|{he} had lost the key|{he} was too tired|{he} was too shy|it was forbidden|{his} hands were too cold|the bridge was blocked|the lights went out|"
    "there was no room|a dog barked at {him}|the boat had left|{he} had a broken arm|the others laughed at {him}|the rope broke|it was much too expensive|{B} needed {his} help"
).split("|")
NOT_WANTED = ("lose", "break", "drop", "forget", "spill", "inherit", "hear", "miss", "burn", "steal")


class Deed:
    """Something that can be done: `base` (buy a lamp), `past` (bought a lamp), `does` (buys a lamp)."""

    def __init__(self, rng, wanted=False, kind=None):
        base, past, kinds = rng.choice(lexicon.VERBS)
        while wanted and base in NOT_WANTED or kind and kind not in kinds:
            base, past, kinds = rng.choice(lexicon.VERBS)
        self.what = lexicon.object_of(rng, kind or kinds)
        self.base, self.past, self.does = (f"{verb} {self.what}" for verb in (base, past, lexicon.third(base)))


def between(rng):
    """Sentences that a summary leaves out."""
    r = rng.random()
    if r < 0.4:
        return ""
    if r < 0.85:
        return lexicon.scenery(rng)
    return f"{lexicon.name(rng, True)} {Deed(rng).past} {rng.choice(lexicon.SPOTS)}. {lexicon.scenery(rng)}"


def wanted(rng, s, a, b):
    goal, deed, end = Deed(rng, True), Deed(rng, True), Deed(rng)
    s["why"] = fill(rng, rng.choice(OBSTACLES), {"he": a.he, "him": a.him, "his": a.his, "B": b.name})
    so = rng.choice(
        [
            f"So {a.he} {deed.past}",
            f"Then {a.name} {deed.past} instead",
            f"Therefore {a.he} {deed.past} {s['spot']}",
            f"But {b.name} had an idea, and {a.he} {deed.past}",
        ]
    )
    begin = rng.choice(
        [
            f"{a.first} wanted to {goal.base}",
            f"For a long time {a.first} had wanted to {goal.base}",
            f"{a.first} had planned to {goal.base} {s['when']}",
            f"It was the dream of {a.first} to {goal.base}",
        ]
    )
    text = f"{begin}. {between(rng)} [But|However,|Unfortunately,|Yet] {s['why']}. {between(rng)} {so}. [{b.name} {end.past}.||]"
    return (
        text,
        [f"{a.name} wanted to {goal.base}, but {s['why']}, so {a.he} {deed.past}.", f"{a.name} wanted to {goal.base}, but {s['why']}. So {a.he} {deed.past}."],
        [
            (f"What did {a.name} want to do?", f"{a.name} wanted to {goal.base}."),
            (f"Why could {a.name} not {goal.base}?", f"Because {s['why']}."),
            (f"What did {a.he} do in the end?", f"{a.name} {deed.past}."),
        ],
    )


def search(rng, s, a, b):
    thing = lexicon.thing(rng)
    text = f"{a.first} [looked for|searched for|could not find] {a.his} {thing}. {capital(a.he)} [looked everywhere, even {s['spot']}|asked the {s['job']}|turned the whole house upside down]. {between(rng)} [At last|In the end|After {s['n']} hours] {b.first} found it {s['spot2']}."
    return (
        text,
        [
            f"{a.name} looked for {a.his} {thing}, and {b.name} found it {s['spot2']}.",
            f"{a.name} could not find {a.his} {thing}. {b.name} found it {s['spot2']}.",
        ],
        [
            (f"Who found the {thing}?", f"{b.name}."),
            (f"Where was the {thing}?", f"It was {s['spot2']}."),
            (f"What did {a.name} look for?", f"{a.name} looked for {a.his} {thing}."),
        ],
    )


def exchange(rng, s, a, b):
    gift, thanks = (
        an(lexicon.thing(rng)),
        rng.choice([an(lexicon.thing(rng)), rng.choice(lexicon.FOODS), f"{s['n']} {lexicon.plural(rng.choice(lexicon.ANIMALS))}"]),
    )
    text = f"{a.first} gave {b.first} {gift} {s['when']}. {between(rng)} {b.name} [was very happy about it|had needed it for a long time|could hardly believe it]. As thanks {b.he} [gave|brought|sent] {a.him} {thanks}."
    return (
        text,
        [f"{a.name} gave {b.name} {gift} and got {thanks} as thanks.", f"{a.name} gave {b.name} {gift}. As thanks {b.name} gave {a.him} {thanks}."],
        [
            (f"What did {a.name} give to {b.name}?", capital(f"{gift}.")),
            (f"What did {b.name} give to {a.name}?", capital(f"{thanks}.")),
            (f"When did {a.name} give {b.name} {gift}?", capital(f"{s['when']}.")),
        ],
    )


def blamed(rng, s, a, b):
    deed = Deed(rng, kind=rng.choice(["thing", "food", "animal"]))
    text = f"Everybody [thought|believed|said] that {a.first} {deed.past} {s['when']}. {between(rng)} {a.name} [only shook {a.his} head|did not know what to say|was sad]. {between(rng)} [But the truth was that|Then it turned out that|At last the {s['job']} found out that] {b.first} {deed.past}."
    return (
        text,
        [f"Everybody thought that {a.name} {deed.past}, but it was {b.name}.", f"It was {b.name} who {deed.past}, not {a.name}."],
        [
            (f"Who {deed.past}?", f"{b.name}."),
            ("What did everybody think?", f"Everybody thought that {a.name} {deed.past}."),
        ],
    )


def changed(rng, s, a, b):
    old, new = Deed(rng, True), Deed(rng, True)
    text = f"[Every day|Every evening|Every Sunday] {a.first} {old.does} {s['spot']}. {between(rng)} [Then one day|But last week|In {s['month']}] {s['why']}. {between(rng)} [Since then|Now|From that day on] {a.he} {new.does}."
    return (
        text,
        [f"{a.name} used to {old.base}, but now {a.he} {new.does}.", f"{a.name} no longer {old.does}: now {a.he} {new.does}."],
        [
            (f"What does {a.name} do now?", f"{a.name} {new.does}."),
            (f"What did {a.name} do before?", f"{a.name} used to {old.base}."),
            (f"Where did {a.name} {old.base}?", capital(f"{s['spot']}.")),
        ],
    )


def three(rng, s, a, b):
    one, two, last = Deed(rng), Deed(rng), Deed(rng)
    text = f"[First|In the morning|At first] {a.first} {one.past} {s['spot']}. {between(rng)} [Then|At noon|After that] {a.he} {two.past}. {between(rng)} [In the evening|At last|In the end] {a.he} {last.past}[, because {s['why']}|]."
    return (
        text,
        [f"{a.name} {one.past}, {two.past} and {last.past}.", f"{a.name} {one.past}. In the end {a.he} {last.past}."],
        [
            (f"What did {a.name} do first?", f"{a.name} {one.past}."),
            (f"What did {a.name} do in the end?", f"{a.name} {last.past}."),
            (f"Where was it that {a.name} {one.past}?", capital(f"{s['spot']}.")),
        ],
    )


def rivals(rng, s, a, b):
    thing = an(lexicon.thing(rng))
    text = f"{a.first} and {b.first} both wanted {thing} that they had seen {s['spot']}. {between(rng)} [They argued for {s['n']} days.|Neither of them would give in.|They did not speak to each other any more.] [In the end|At last] the {s['job']} gave it to {b.name}, because {s['why']}."
    return (
        text,
        [
            f"{a.name} and {b.name} both wanted {thing}, and the {s['job']} gave it to {b.name}.",
            f"{a.name} and {b.name} argued about {thing}. In the end {b.name} got it.",
        ],
        [
            (f"What did {a.name} and {b.name} want?", f"They wanted {thing}."),
            ("Who got it?", f"{b.name}."),
            (f"Why did the {s['job']} give it to {b.name}?", f"Because {s['why']}."),
        ],
    )


def forgotten(rng, s, a, b):
    deed = Deed(rng, True, rng.choice(["thing", "food", "animal"]))
    text = f"{a.first} had asked {b.first} to {deed.base}. {between(rng)} {b.name} forgot it because {s['why']}. {between(rng)} [So|In the end|When {a.name} came home,] {a.name} {deed.past} {a.him}self[, and {b.name} said sorry|]."
    return (
        text.replace(f"When {a.name} came home, {a.name}", f"When {a.name} came home, {a.he}"),
        [f"{b.name} forgot to {deed.base}, so {a.name} did it {a.him}self.", f"{a.name} had asked {b.name} to {deed.base}, but {b.name} forgot it."],
        [
            (f"What had {a.name} asked {b.name} to do?", f"{a.name} had asked {b.name} to {deed.base}."),
            (f"Why did {b.name} forget it?", f"Because {s['why']}."),
            (f"Who {deed.past}?", f"{a.name}."),
        ],
    )


def notice(rng, s, a, b):
    what = rng.choice(["course", "meeting", "concert", "exhibition", "market", "class", "party", "tour", "lecture", "sale"])
    topic = rng.choice([lexicon.plural(rng.choice(lexicon.THINGS + lexicon.ANIMALS)), rng.choice(lexicon.FOODS)])
    text = f"[Dear friends, the|Dear all, the|Please note that the|Hello! The] {what} about {topic} [takes place|will be] {s['spot']} on {s['day']} at {s['n']} o'clock, [and it is led by|with] {b.first}. {capital(rng.choice(['please bring', 'everybody needs', 'do not forget']))} {an(lexicon.thing(rng))}. [Those who want to come can call {a.name}.|There will be {rng.choice(lexicon.FOODS)} for everybody.|]"
    return (
        text,
        [
            f"The {what} about {topic} takes place {s['spot']} on {s['day']} at {s['n']} o'clock.",
            f"On {s['day']} at {s['n']} o'clock there is a {what} about {topic} {s['spot']}.".replace(" a exh", " an exh"),
        ],
        [
            (f"When is the {what}?", f"On {s['day']} at {s['n']} o'clock."),
            (f"Where is the {what}?", capital(f"{s['spot']}.")),
            (f"What is the {what} about?", f"It is about {topic}."),
            (f"Who leads the {what}?", f"{b.name}."),
        ],
    )


def danger(rng, s, a, b):
    trouble = rng.choice(
        [
            "fell into the river",
            "was stuck in the mud",
            "could not get down from the roof",
            "was locked up in the cellar",
            "lost the way in the fog",
            "slipped into a deep hole",
            "got caught in a fence",
            "was chased by a bull",
        ]
    )
    helper = an(lexicon.thing(rng))
    others = rng.choice(
        [f"Nobody heard {a.him} shout.", f"The {s['job']} ran away.", "The others only stood and looked.", f"{lexicon.name(rng, True)} called for help.", ""]
    )
    text = f"{capital(s['when'])}, {a.first} {trouble}. {others} {between(rng)} [Then|At last|In the end] {b.first} [saw it|came by] and saved {a.him} with {helper}. {between(rng)}"
    return (
        text,
        [f"{a.name} {trouble}, and {b.name} saved {a.him} with {helper}.", f"{b.name} saved {a.name}, who {trouble}, with {helper}."],
        [
            (f"What happened to {a.name}?", f"{a.name} {trouble}."),
            (f"Who saved {a.name}?", f"{b.name}."),
            (f"With what did {b.name} save {a.him}?", f"With {helper}."),
            ("When did it happen?", capital(f"{s['when']}.")),
        ],
    )


COURSES = [wanted, wanted, search, exchange, blamed, changed, three, rivals, forgotten, notice, danger]


def passage(rng):
    a = Person(rng)
    b = Person(rng, (a.name,))
    spots = rng.sample(lexicon.SPOTS, 2)
    why = rng.choice(lexicon.REASONS).replace("{he}", a.he).replace("{him}", a.him).replace("{B}", b.name)
    s = {
        "why": why,
        "spot": spots[0],
        "spot2": spots[1],
        "when": rng.choice(lexicon.TIMES),
        "n": rng.choice("three four five six seven eight nine ten eleven".split()),
        "day": rng.choice("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()),
        "month": rng.choice("January March April May June August October November".split()),
        "job": rng.choice(lexicon.JOBS),
    }
    text, summaries, questions = rng.choice(COURSES)(rng, s, a, b)
    questions.append((rng.choice(["What is this about?", "What is the text about?", "What happened?"]), summaries[0]))
    return {"text": capital(fill(rng, text)), "summaries": [capital(one) for one in summaries], "questions": [(q, capital(reply)) for q, reply in questions]}
