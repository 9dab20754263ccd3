"""Short texts whose summary and whose facts are known: what somebody wanted and how it went, notices, portraits,
letters. A passage is {"text", "summaries", "questions": [(question, answer)]}."""

import re

from . import lexicon
from .grammar import an, capital, fill, rows
from .words import ADJ, BOYS, GIRLS, invented_name

# what somebody wanted | what stood in the way | what was done | how it ended
# {A} is a name, {he} {him} {his} {He} its pronouns, {T} a thing, {B} another name, {R} a relative, {P} a place.
WANTED = rows("""
bake cookies for {R} | there was no [flour|butter|sugar] left | {he} asked {B} next door for some | {R} ate all of them
visit {R} in {P} | the bus did not come | {he} walked the whole way | {he} arrived late but happy
sell {his} old {T} | nobody wanted to buy it | {he} gave it to {B} as a present | {B} was very happy about it
repair the {T} | a small screw was missing | {he} made a new one out of wood | now the {T} works again
learn to play the {I} | {his} fingers were too slow | {he} practised every evening for a year | {he} played at the feast in {P}
paint the {T} blue | it began to rain | {he} carried it into the barn | the paint was dry the next day
catch a fish for dinner | nothing would bite | {he} cooked potatoes instead | nobody complained
see the sea | the way was too long to walk | {B} took {him} along in a cart | {he} stood in the waves until evening
grow the biggest pumpkin of {P} | snails ate the leaves | {he} put sand around the plants | {his} pumpkin won the first prize
write a letter to {B} | {he} had no paper | {he} wrote it on a piece of bark | {B} still has it today
find the lost {T} | it was already dark | {he} took a lantern with {him} | it lay under the stairs
cross the river | the ice was too thin | {he} waited until the boat came | {he} got to the other side dry
buy a new {T} | {he} did not have enough money | {he} worked for {B} the whole summer | in autumn {he} bought it
surprise {R} with breakfast | the milk had gone sour | {he} made pancakes with water | {R} liked them anyway
keep the wild {N} | it did not eat in its cage | {he} opened the door and let it go | it came back every spring
open the old chest | the key was broken | {he} took off the hinges | there were only letters in it
be the first at the top of the hill | {B} had hurt a foot | {he} stayed and helped {B} walk | they were the last but they laughed
read the whole night | {his} lamp went out | {he} sat by the window under the full moon | {he} finished the book
win the race in {P} | {his} [shoe|bicycle|sled] broke | {he} ran the rest barefoot | {he} came in third
build a house for the {N} | the wood was too wet | {he} used stones | the {N} moved in the same day
sing at the wedding | {his} voice was gone | {he} played the {I} instead | everybody danced
take the {T} to the museum | the museum was closed | {he} left it with the guard | today it stands in the first room
cook soup for the whole village | the pot had a hole | {he} borrowed the big pot of {B} | there was enough for all
warn the people of {P} | nobody believed {him} | {he} rang the bell of the church | everybody got away from the water in time
draw a map of {P} | the wind blew away the paper | {he} drew it on the wall of the school | travellers still use it
make peace with {B} | {B} would not open the door | {he} put a {T} on the step and left | the next morning {B} came to thank {him}
hide the {T} from {R} | the {N} dug it up again | {he} told {R} the truth | {R} only laughed
sleep in the tent | a {N} was already in it | {he} slept on the porch | in the morning the {N} was gone
save the young {N} from the well | the rope was too short | {he} tied {his} scarf to it | the {N} ran off without a word
give {B} back the {T} | {B} had moved to {P} | {he} sent it by mail | two weeks later a letter of thanks came
celebrate {his} birthday outside | a storm came up | all went into the barn | it was the best party of the year
photograph a {N} | it was too shy | {he} sat still behind a tree for three hours | the picture hangs in the hall now
climb the tower of {P} | the door was locked | {he} asked the keeper for the key | from above {he} could see the sea
teach the {N} a trick | it always fell asleep | {he} tried it early in the morning | now it can shake hands
knit a scarf for {R} | the cat took the wool | {he} used the string of {his} kite | {R} wears it every day
hear the concert | all the tickets were sold | {he} listened from the roof across the street | {he} heard every note
plant an apple tree | the ground was as hard as stone | {he} watered it for three days | the tree stands there today
make a film about {P} | the camera fell into the water | {he} drew all the pictures by hand | the film won a prize
return the {T} to its owner | there was no name on it | {he} put up a notice at the [bakery|station|school] | the owner came the next day
go home by train | the last train had left | {he} slept at {B}'s house | {he} took the first train in the morning
""")
BEGINS_WITH_TIME = re.compile(r"(now|today|in|from|the next|two weeks|it lay)\b")
DETAILS = rows("""
It was [a cold|a warm|a windy|a quiet|a grey|a sunny] [morning|day|afternoon|evening].
{He} had [a red coat|a green hat|a big bag|old boots] on.
The street was [empty|full of people|still wet].
A dog barked [somewhere|behind a fence|in the yard].
{He} had been thinking about it for [days|weeks|a long time].
Everybody in the [village|street|house] knew about it.
{He} hummed a song.
There was [a smell of bread|music|a lot of noise] in the air.
"[That is a fine plan|You can do it|Good luck]," said {C}.
"[What now|What can I do|Oh no]?" {he} said.
{C} [only shook {C2} head|watched from the window|wished {him} luck].
The clock struck [three|four|five|ten].
{He} was [a little|very] [tired|nervous|hungry], but {he} did not show it.
The sun [came out|was already low|shone through the clouds].
It took [longer than {he} had thought|only an hour|the whole day].
{He} did not say a word about it.
""")
PLACES = "Port Lena|Millbrook|Lindau|Redhill|the old town|the valley|Oakham|the capital|Westbay|Stonefield|the harbour|Sandford|Green Hill|Norton|Kelbrook|Ashby|the next village|Winterport|Marlow|Brightwater".split(
    "|"
)
INSTRUMENTS = "violin drum flute piano trumpet harp guitar horn".split()
RELATIVES = "grandmother grandfather mother father sister brother aunt uncle cousin".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
TIMES = "six seven eight nine ten eleven noon one two three four five".split()
# Those whose plural has an s, and no more.
PLAIN_THINGS = [one for one in lexicon.THINGS if lexicon.plural(one) == one + "s"]
NUMBERS = "two three four five six seven eight nine ten eleven twelve".split()


def person(rng):
    girl = rng.random() < 0.5
    name = lexicon.name(rng, girl)
    if rng.random() < 0.12:
        name = f"{rng.choice(['Mrs.', 'Aunt', 'Grandma', 'Miss'] if girl else ['Mr.', 'Uncle', 'Grandpa', 'Old'])} {name}"
    return name, girl


def people(rng, count):
    found = {}
    while len(found) < count:
        name, girl = person(rng)
        found[name] = girl
    return list(found.items())


def slots(rng):
    (a, girl), (b, _), (c, c_girl) = people(rng, 3)
    return {
        "A": a,
        "B": b,
        "C": c,
        "C2": "her" if c_girl else "his",
        "he": "she" if girl else "he",
        "him": "her" if girl else "him",
        "his": "her" if girl else "his",
        "He": "She" if girl else "He",
        "T": rng.choice(PLAIN_THINGS),
        "R": f"{'her' if girl else 'his'} {rng.choice(RELATIVES)}",
        "P": rng.choice(PLACES) if rng.random() < 0.4 else lexicon.town(rng),
        "N": rng.choice(lexicon.ANIMALS),
        "I": rng.choice(INSTRUMENTS),
    }


def wanted(rng):
    s = slots(rng)
    goal, trouble, deed, end = (fill(rng, cell, s) for cell in rng.choice(WANTED))
    a, he = s["A"], s["he"]
    titled = " " in a or a.startswith("Old")
    who = (
        a
        if titled
        else fill(
            rng,
            f"{a}[, {an(rng.choice(ADJ))} {'girl' if he == 'she' else 'boy'},|, a {rng.choice(['baker', 'farmer', 'teacher', 'sailor', 'tailor', 'gardener'])} from {rng.choice(PLACES)},|||]",
            s,
        )
    )
    detail = lambda: fill(rng, rng.choice(DETAILS)[0], s) if rng.random() < 0.5 else ""
    sentences = [
        detail() if rng.random() < 0.4 else "",
        fill(
            rng,
            f"[{who} wanted to {goal}.|{who} had one wish: {he} wanted to {goal}.|One day {a} wanted to {goal}.|For a long time {who} had wanted to {goal}.]",
        ),
        detail(),
        fill(rng, f"[But {trouble}.|However, {trouble}.|Yet {trouble}.|Unfortunately {trouble}.]"),
        detail(),
        fill(rng, f"[So {deed}.|Then {deed}.|In the end {deed}.|{capital(deed)}.]"),
        detail() if rng.random() < 0.4 else "",
        capital(f"{end}.") if BEGINS_WITH_TIME.match(end) else fill(rng, f"[In the end {end}.|{capital(end)}.|And {end}.]"),
    ]
    text = " ".join(capital(sentence) for sentence in sentences if sentence)
    summaries = [
        f"{a} wanted to {goal}, but {trouble}, so {deed}.",
        f"{a} wanted to {goal}, but {trouble}. So {deed}.",
        f"{a} wanted to {goal}, but {trouble}. {capital(deed)}, and {end}.",
    ]
    questions = [
        (rng.choice([f"What did {a} want?", f"What did {a} want to do?", f"What was {a}'s wish?"]), f"{a} wanted to {goal}."),
        (rng.choice(["What was the problem?", "What went wrong?", "What stood in the way?"]), capital(f"{trouble}.")),
        (rng.choice(["Who is the text about?", "Who is the story about?", "Who is this about?"]), rng.choice([f"It is about {a}.", f"{a}."])),
        (rng.choice(["What happened in the end?", "How did it end?", "How does it end?"]), capital(f"{end}.")),
        (rng.choice([f"What did {he} do then?", f"How did {a} solve it?", f"What did {a} do about it?"]), capital(f"{deed}.")),
    ]
    return {"text": text, "summaries": summaries, "questions": questions}


KINDS = "baker farmer teacher sailor tailor gardener postman shepherd painter fisherman clockmaker robot dragon princess witch knight giant ghost pirate wizard elf snowman tree scarecrow astronaut king queen clown magician".split()
BEGINS = [
    "Once upon a time there was {k} [named|called] {A}.",
    "[Long ago|Once], {k} [named|called] {A} lived [near|in] {P}.",
    "{A} was {k}.",
    "There once was {k}, and everybody called {him} {A}.",
    "In {P} there lived {k} named {A}.",
]
MORE = [
    "Every [morning|evening|day], {A} [walked through {P}|sat on the step and thought|looked out of the window].",
    "{He} lived [alone|with a {N}|with {R}] and was [happy|quite content|often bored].",
    "{A} had [a kind heart|a loud laugh|two left hands|a good head].",
    "[Everybody|Nobody] in {P} knew {him}.",
    "{He} was [very clever|a little shy|never in a hurry|always hungry].",
]
TROUBLED = [
    '"[Oh no|What a pity|That cannot be true]!" {A} cried.',
    "{A} sat down and [sighed|thought hard|almost cried].",
    '"[I will not give up|There must be a way]," said {A}.',
    '{C} came by. "[What is wrong|Why are you so sad], {A}?" {C} asked, and {A} told {C} everything.',
    "{A} [did not sleep that night|walked up and down].",
]
ENDS = [
    "And {A} was [happy|proud|content] for a long time.",
    "[That night|In the evening] {A} [slept well|sat by the fire and smiled].",
    '"[I knew it|Well done|Now all is well]," said {C}.',
    "[From then on|Since that day], {A} [never gave up|always helped others|smiled more often].",
    "That is the end of the story.",
    "And if you come to {P}, you can still hear about it.",
]


def tale(rng):
    """A story of one who wanted something: {"text", "summaries", "topics" for a request}."""
    s = slots(rng)
    kind = rng.choice(rng.choice([lexicon.ANIMALS, lexicon.PEOPLE, lexicon.BEINGS]))
    s["k"] = rng.choice([an(kind), an(kind), f"a little {kind}", f"an old {kind}", an(f"{rng.choice(ADJ)} {kind}")])
    goal, trouble, deed, end = (fill(rng, cell, s) for cell in rng.choice(WANTED))
    a, he = s["A"], s["he"]
    some = lambda templates, share: fill(rng, rng.choice(templates), s) if rng.random() < share else ""
    sentences = [
        some(BEGINS, 1),
        some(MORE, 0.7),
        fill(
            rng,
            f'[One day {he} wanted to {goal}.|More than anything {he} wanted to {goal}.|One morning {a} said, "I want to {goal.replace(s["his"] + " ", "my ")}."|{s["He"]} had a wish: {he} wanted to {goal}.]',
        ),
        some([row[0] for row in DETAILS], 0.5),
        fill(rng, f"[But {trouble}.|However, {trouble}.|But there was a problem: {trouble}.]"),
        some(TROUBLED, 0.8),
        fill(rng, f"[So {deed}.|Then {a} had an idea: {deed}.|At last {deed}.]"),
        some([row[0] for row in DETAILS], 0.4),
        capital(f"{end}."),
        some(ENDS, 0.8),
    ]
    text = " ".join(capital(sentence) for sentence in sentences if sentence)
    if rng.random() < 0.3:
        half = text.find(". ", len(text) // 2) + 2
        text = f"{text[:half].strip()}\n\n{text[half:]}" if half > 1 else text
    wish = goal.replace(s["his"] + " ", "a " if s["his"] + " old" in goal else "the ")
    topics = [
        f"{an(kind)} who wants to {wish}",
        f"{an(kind)} named {a}",
        f"{an(kind)} called {a}",
        f"{a} and {s['his']} wish",
        an(kind),
        f"{an(kind)} who wanted to {wish}",
        f"{a}, {an(kind)}",
    ]
    return {
        "text": text,
        "summaries": [f"{a} wanted to {goal}, but {trouble}, so {deed}.", f"{a} wanted to {goal}, but {trouble}. So {deed}."],
        "topics": topics,
    }


CLOSED = rows("""
the swimming pool | the water is being changed | The old tickets stay valid
the bakery | the baker is ill | Bread can be bought at the market
the road to {P} | a tree fell on it | Buses take the way along the river
the school | the heating is broken | The children stay at home
the shop in Mill Street | it is being painted | It opens again with a small party
the post office | everybody is at a meeting | Parcels can be fetched a day later
the bridge in {P} | it is being repaired | A ferry goes every half an hour
the playground | there was a storm | Please keep off the grass
the zoo | a new {N} is arriving | The tickets are good for the whole year
the cinema | the screen is torn | Those who have tickets get their money back
the dentist's office | the dentist is on holiday | Please call Dr. {B} if you have pain
the station hall | the floor is being cleaned | Trains stop as always
""")
EVENTS = "the summer party|the meeting of the choir|the football game|the flea market|the reading for children|the concert of the school|the trip to {P}|the cooking course|the theatre play|the bicycle race|the chess evening|the walk in the forest".split(
    "|"
)
ROOMS = "in the town hall|in room 7|in the gym|in the garden behind the church|in the old barn|at the harbour|in the library|in room 21|in the large tent|at the lake".split(
    "|"
)
BRING = "a warm coat|your own cup|good shoes|some money for the ferry|a cake|a pencil|friends|a chair|an old shirt|a lamp".split("|")


def notice(rng):
    s = slots(rng)
    day, other = rng.sample(DAYS, 2)
    if rng.random() < 0.5:
        what, why, more = (fill(rng, cell, s) for cell in rng.choice(CLOSED))
        until = rng.choice([f" It opens again on {other}.", f" On {other} everything is as usual.", ""])
        begin = rng.choice(["", "Dear visitors, ", "Please note: ", "Dear neighbours, ", "Hello, "])
        said = rng.choice(
            [f"{what} is closed on {day} because {why}.", f"{what} will be closed on {day}, because {why}.", f"on {day} {what} is closed because {why}."]
        )
        text = f"{begin}{said if begin and not begin.startswith('Please') else capital(said)} {more}.{until}"
        summaries = [capital(f"{what} is closed on {day} because {why}.")] * 2 + [
            capital(f"{what} is closed on {day} because {why}, and opens again on {other}.")
        ] * ("opens again" in until)
        questions = [
            (rng.choice([f"When is {what} closed?", "On which day is it closed?"]), rng.choice([capital(f"{what} is closed on {day}."), f"On {day}."])),
            (
                rng.choice([f"Why is {what} closed?", "Why is it closed?", "What is the reason?"]),
                capital(f"{what} is closed because {why}.") if rng.random() < 0.6 else f"Because {why}.",
            ),
            ("What is closed?", capital(f"{what}.")),
            (rng.choice(["What is this about?", "What is the text about?"]), summaries[0]),
        ]
        if "opens again" in until:
            questions.append(("When does it open again?", f"It opens again on {other}."))
    else:
        what, where = fill(rng, rng.choice(EVENTS), s), rng.choice(ROOMS)
        time, bring = rng.choice(TIMES), rng.choice(BRING)
        at = "noon" if time == "noon" else f"{time} o'clock"
        moved = rng.random() < 0.4
        begin = rng.choice(["Dear all, ", "Dear friends, ", "Hello everybody, ", "Good morning, ", ""])
        said = f"{what} has been moved from {other} to {day}, at {at}, {where}." if moved else f"{what} is on {day} at {at} {where}."
        text = f"{begin}{said if begin else capital(said)} Please bring {bring}." + rng.choice(
            [f" If you have questions, ask {s['B']}.", f" {s['B']} looks forward to seeing you.", f" Yours, {s['B']}", ""]
        )
        summaries = (
            [capital(said)]
            if rng.random() < 0.5
            else [capital(f"{what} is now on {day} at {at} {where}, not on {other}." if moved else f"{what} is on {day} at {at}, {where}.")]
        )
        questions = [
            (rng.choice([f"When is {what}?", "When is it?", "On which day is it?"]), rng.choice([f"It is on {day} at {at}.", f"On {day} at {at}."])),
            (rng.choice([f"Where is {what}?", "Where is it?", "Where does it take place?"]), rng.choice([f"It is {where}.", capital(f"{where}.")])),
            (
                rng.choice(["What should people bring?", "What should I bring?", "What do I need?"]),
                rng.choice([f"You should bring {bring}.", capital(f"{bring}.")]),
            ),
        ]
        if moved:
            questions.append(("On which day was it planned before?", f"It was planned for {other}."))
    return {"text": text, "summaries": summaries, "questions": questions}


HOUSES = "in a small house at the edge of the forest|on a farm near {P}|in a tall house in {P}|in a boat on the river|above a bakery in {P}|in a yellow house at the lake|in an old mill|by the sea|in a cottage on the hill|in a flat in {P}".split(
    "|"
)
HABITS = rows("""
goes swimming in the lake | Why does X go to the lake? | to swim
feeds the birds in the park | What does X do in the park? | X feeds the birds
bakes bread for the neighbours | For whom does X bake? | for the neighbours
plays the {I} in the square | Where does X play? | in the square
rides a bicycle to work | How does X get to work? | by bicycle
paints pictures of the sea | What does X paint? | pictures of the sea
sells flowers at the market | What does X sell? | flowers
reads to the children of the street | To whom does X read? | to the children of the street
collects old {T}s | What does X collect? | old {T}s
works in the garden | Where does X work? | in the garden
cooks soup for the whole house | What does X cook? | soup
takes the ferry to the island | Where does X go? | to the island
repairs old clocks | What does X repair? | old clocks
writes letters to {B} | To whom does X write? | to {B}
walks along the beach | Where does X walk? | along the beach
""")
WHEN = "every morning|every evening|on Mondays|on Tuesdays|on Wednesdays|on Thursdays|on Fridays|on Saturdays|on Sundays|at noon|in winter|in summer|once a month|every night".split(
    "|"
)
HAS = "cat dog hen goat rabbit parrot horse sheep duck bee-hive boat bicycle brother sister child".split()


def portrait(rng):
    s = slots(rng)
    a, he, his = s["A"], s["he"], s["his"]
    home = fill(rng, rng.choice(HOUSES), s)
    count, have = rng.choice(NUMBERS[:7]), rng.choice(HAS)
    many = {"child": "children", "sheep": "sheep"}.get(have, have + "s")
    names = [invented_name(rng) if rng.random() < 0.5 else rng.choice(GIRLS + BOYS) for _ in range(2)]
    (one, ask_one, told_one), (two, ask_two, told_two) = (tuple(fill(rng, cell, s) for cell in row) for row in rng.sample(HABITS, 2))
    when_one, when_two = rng.sample(WHEN, 2)
    job = rng.choice(["teacher", "baker", "fisherman", "pilot", "doctor", "tailor", "painter", "gardener", "farmer", "cook", "nurse", "carpenter", "sailor"])
    look = rng.choice(["red", "blue", "green", "yellow", "white", "black", "brown"])
    owned = rng.choice(["coat", "hat", "door", "car", "bicycle", "scarf", "boat", "chair"])
    two_named = count == "two" and have not in ("boat", "bicycle", "bee-hive")
    sentences = [
        (
            f"{a} lives {home}.",
            [(rng.choice([f"Where does {a} live?", f"Where is the home of {a}?"]), rng.choice([f"{a} lives {home}.", capital(f"{home}.")]))],
        ),
        (
            f"{capital(he)} has {count} {many}{', ' + ' and '.join(names) if two_named else ''}.",
            [(f"How many {many} does {a} have?", rng.choice([f"{a} has {count} {many}.", f"{capital(count)}."]))]
            + ([(f"What are the {many} called?", f"They are called {names[0]} and {names[1]}.")] if two_named else []),
        ),
        (f"{capital(he)} works as {an(job)}.", [(rng.choice([f"What is {a}'s job?", f"What does {a} work as?"]), f"{a} is {an(job)}.")]),
        (
            f"{capital(when_one)} {he} {one}.",
            [
                (ask_one.replace("X", a), capital(told_one.replace("X", a)) + "."),
                (rng.choice([f"Who {one}?"]), f"{a}."),
                (f"When is it that {a} {one}?", f"{capital(when_one)}."),
            ],
        ),
        (
            f"{capital(when_two)} {he} {two}.",
            [(ask_two.replace("X", a), capital(told_two.replace("X", a)) + "."), (f"What does {a} do {when_two}?", f"{capital(when_two)} {he} {two}.")],
        ),
        (
            f"{capital(his)} {owned} is {look}.",
            [
                (rng.choice([f"What colour is {a}'s {owned}?", f"What color is the {owned}?"]), f"{capital(his)} {owned} is {look}."),
                (f"Is {a}'s {owned} {look}?", f"Yes, {his} {owned} is {look}."),
                (f"Is {a}'s {owned} {'grey' if look != 'grey' else 'red'}?", f"No, {his} {owned} is {look}."),
            ],
        ),
    ]
    chosen = [sentences[0]] + rng.sample(sentences[1:], rng.choice([2, 3, 4, 5]))
    text = " ".join(sentence for sentence, _ in chosen)
    questions = [pair for _, pairs in chosen for pair in pairs] + [(rng.choice(["Who is this about?", "Who is the text about?"]), f"It is about {a}.")]
    rest = [sentence for sentence, _ in chosen[1:]]
    short = {"works": f"{a}, {an(job)}, lives {home}."}
    summaries = [f"{a} lives {home}" + (f" and has {count} {many}." if any(f"has {count}" in one for one in rest) else ".")]
    if any("works as" in one for one in rest):
        summaries.append(short["works"])
    return {"text": text, "summaries": summaries, "questions": questions}


GOODS = rows("""
loaves of white bread | bread
bottles of apple juice | juice
boxes of candles | candles
bags of flour | flour
wooden chairs | chairs
pots of honey | honey
sacks of potatoes | potatoes
school books | books
pairs of gloves | gloves
cheese cakes | cakes
baskets of pears | pears
rolls of wire | wire
tins of green paint | paint
blankets | blankets
tickets for the concert | tickets
""")
SPOTS = "to the back door|to the shop|to the school|to our barn|to the office|to the harbour|to the first floor|to the gate".split("|")


def mail(rng):
    (sender, _), (to, _) = people(rng, 2)
    family = invented_name(rng)
    goods, about = rng.choice(GOODS)
    count = str(rng.randrange(2, 61)) if rng.random() < 0.7 else rng.choice(NUMBERS)
    day, month = rng.randrange(1, 29), rng.choice(MONTHS)
    where, week = rng.choice(SPOTS), rng.choice(DAYS)
    address = f"{sender.split()[-1].lower()}@{invented_name(rng).lower()}.example"
    date = rng.choice([f"on {day} {month}", f"on {month} {day}", f"on {week}"])
    head = f"From: {sender} {family} <{address}>\nSubject: {capital(about)}\n\n" if rng.random() < 0.6 else ""
    body = f"{rng.choice(['Hello', 'Dear ' + to, 'Good day', 'Hi ' + to])},{rng.choice([' ', chr(10) + chr(10)])}please {rng.choice(['send', 'bring', 'deliver'])} us {count} {goods} {date}, {where}. "
    body += (
        rng.choice(["We pay by card. ", "We pay in cash. ", "Please send an invoice. ", ""])
        + rng.choice(["Thank you, ", "Many thanks, ", "Yours, ", "Best wishes, "])
        + f"{sender}{'' if head else ' ' + family}"
    )
    questions = [
        (
            rng.choice(["Who sent this?", "Who wrote the letter?", "Who is it from?", "Who is the sender?"]),
            rng.choice([f"{sender} {family}.", f"It is from {sender} {family}."]),
        ),
        (
            rng.choice(["What is ordered?", f"What does {sender} order?", f"What does {sender} want?", "What should be sent?"]),
            rng.choice([f"{sender} wants {count} {goods}.", f"{capital(count)} {goods}."]),
        ),
        (rng.choice([f"How many {goods} are ordered?", "How many?", f"How many {goods} does {sender} want?"]), f"{capital(count)}."),
        (rng.choice(["When should it be there?", "When is it needed?", "On which day?"]), capital(f"{date}.")),
        (rng.choice(["Where should it go?", "Where should it be sent?", "To which place?"]), capital(f"{where}.")),
    ]
    summaries = [f"{sender} {family} wants {count} {goods} {date}, {where}.", f"{sender} orders {count} {goods} for {date.removeprefix('on ')}."]
    values = {
        "name": f"{sender} {family}",
        "product": goods,
        "count": int(count) if count.isdigit() else NUMBERS.index(count) + 2,
        "place": where.split("the ")[-1].removeprefix("to our "),
    }
    if head:
        values["mail"] = address
    return {"text": head + body, "summaries": summaries, "questions": questions, "values": values}
