"""Instructions about words and sentences: sentences with given words, opposites, rhymes, reasons, kinds, lists, and a
sentence in another form. Most answers have words of the instruction."""

from . import lexicon
from .grammar import an, asked, assistant, capital, listed, rows, user

OPPOSITES = rows("""
warm | cool
big | small
large | little
tall | short
long | short
wide | narrow
thick | thin
fat | lean
fast | slow
quick | slow
early | late
old | new
old | young
ancient | modern
light | heavy
light | dark
bright | dim
happy | sad
cheerful | gloomy
good | bad
best | worst
right | wrong
true | false
kind | cruel
polite | rude
brave | cowardly
clever | foolish
rich | poor
cheap | expensive
full | empty
open | closed
hard | soft
hard | easy
rough | smooth
sharp | blunt
wet | dry
clean | dirty
tidy | messy
loud | quiet
noisy | silent
high | low
deep | shallow
near | far
here | there
up | down
in | out
inside | outside
above | below
over | under
before | after
left | right
front | back
top | bottom
first | last
begin | end
start | stop
come | go
arrive | leave
enter | exit
give | take
buy | sell
lend | borrow
win | lose
find | lose
push | pull
lift | lower
throw | catch
laugh | cry
smile | frown
love | hate
remember | forget
ask | answer
wake up | fall asleep
sit | stand
build | destroy
freeze | melt
rise | fall
grow | shrink
save | waste
always | never
often | seldom
everything | nothing
everybody | nobody
all | none
many | few
more | less
yes | no
day | night
morning | evening
summer | winter
north | south
east | west
sunrise | sunset
friend | enemy
boy | girl
man | woman
king | queen
brother | sister
question | answer
beginning | end
entrance | exit
strong | weak
healthy | ill
hungry | full
thirsty | refreshed
awake | asleep
alive | dead
calm | excited
lazy | busy
patient | impatient
careful | careless
possible | impossible
visible | invisible
safe | dangerous
fresh | stale
sweet | bitter
raw | cooked
straight | crooked
simple | complicated
same | different
alone | together
public | private
real | fake
lucky | unlucky
tight | loose
lost | found
war | peace
""")
RHYMES = [
    group.split()
    for group in (
        "hat bat mat rat sat flat chat that",
        "dog fog log frog jog hog",
        "tree bee sea knee free me three key",
        "house mouse blouse",
        "moon spoon soon noon tune",
        "cake lake snake make shake bake rake",
        "light night bright kite white fight right",
        "ring sing king spring wing thing bring",
        "boat coat goat note float vote",
        "ball tall wall small fall hall call",
        "day play way say stay hay gray",
        "bed red head bread said thread",
        "star car far jar bar",
        "rain train plane chain brain lane",
        "cook book look hook took brook",
        "blue shoe true two new few glue",
        "fox box rocks socks clocks",
        "sun run fun one bun",
        "bell well shell tell smell",
        "hen pen ten men then",
        "ship trip lip chip dip",
        "snow go low toe blow show",
        "bear chair hair pear care",
        "nose rose toes goes",
        "wig pig big dig twig",
        "fish dish wish",
        "sand hand land band stand",
        "door floor more four",
        "stone bone phone alone",
        "ice mice nice rice twice price",
        "town down crown brown clown",
        "sheep sleep deep keep jeep",
        "bug mug rug jug hug",
        "clock rock sock lock block",
        "duck truck luck stuck",
        "gold cold old told hold",
        "feet street meet sweet seat",
        "fire wire tire liar",
        "flower tower shower hour power",
        "friend end send bend",
        "ear deer near year tear",
        "heart art part cart start",
        "kitten mitten bitten",
        "letter better sweater wetter",
        "line fine mine nine pine",
        "list mist fist twist",
        "money honey funny sunny",
        "mouth south",
        "nest west best rest test",
        "park dark bark shark mark",
        "pool school fool cool tool",
        "sack back track black pack",
        "song long strong wrong",
        "spot hot pot dot knot",
        "stick brick thick kick pick",
        "sky fly high why pie tie",
        "table cable able stable",
        "tail nail snail mail whale pale",
        "time lime climb rhyme",
        "wood good stood could",
    )
]
# what people do | why
REASONS = rows("""
wear hats | to keep their heads warm
eat breakfast | because they are hungry after the night
drink when it is hot | because their bodies lose water
build houses | because they need a roof over their heads
keep pets | because animals are good company
go on holiday | to rest and to see something new
write letters | to tell others what is on their minds
take the bus | because the way is too long to walk
close the windows | because it is cold or loud outside
sing | because it makes them happy
dance | because music makes them want to move
read newspapers | to know what happens in the world
go to the doctor | because they are ill or want to stay healthy
save money | so that they have some when they need it
lock their doors | to keep thieves out
plant trees | because trees give shade, fruit and clean air
wear gloves | to keep their hands warm
use umbrellas | so that they do not get wet
turn on the light | because they cannot see in the dark
ask questions | because they want to know something
make lists | so that they forget nothing
cook food | because it is softer and tastes better
wash their clothes | because dirty clothes smell
go swimming | because it is fun and good for the body
visit friends | because they like to be with them
tell jokes | to make others laugh
celebrate birthdays | because they are glad that somebody was born
yawn | because they are tired or bored
shiver | because they are cold
sweat | because it cools the skin
sneeze | because something tickles in the nose
blink | to keep their eyes wet
whisper | so that nobody else can hear it
wear helmets | to protect their heads
keep bees | to get honey
go to bed early | because they have to get up early
drink tea | because it warms them
learn languages | to talk with people from other countries
hurry | because they are late
share food | because it tastes better together
use maps | so that they do not get lost
put up fences | to keep animals in or out
paint walls | to make them look fresh
light candles | because they give a warm light
take photos | to remember a moment
wait at a red light | because the cars have green
hold hands | because they like each other
clap | because they liked something
go by train | because it is faster than walking
grow vegetables | so that they have fresh food
""")
# name | things of it
ROOMS = rows("""
a living room | a sofa, a carpet, a lamp, a television, a bookshelf, an armchair, a curtain
a bedroom | a bed, a pillow, a blanket, a wardrobe, an alarm clock, a lamp
a workshop | a hammer, a saw, a drill, a workbench, nails, screws, pliers
a garage | a car, a bicycle, tools, tyres, a toolbox
a hospital | beds, doctors, nurses, bandages, medicine, wheelchairs
a bakery | bread, rolls, cakes, an oven, flour, dough
a restaurant | tables, menus, waiters, plates, glasses, a cook
a farmyard | hens, a tractor, a barn, hay, cows, a well
a harbour | ships, ropes, boats, anchors, seagulls, cranes
a library | books, shelves, desks, lamps, readers, maps
a forest | trees, mushrooms, moss, deer, birds, leaves
a beach | sand, shells, waves, towels, umbrellas, seagulls
a desert | sand, stones, cactuses, camels, snakes
an office | desks, computers, phones, paper, pens, chairs
a toolbox | a hammer, pliers, screws, a screwdriver, nails
a school bag | books, pencils, a ruler, a notebook, an eraser
a fridge | milk, butter, cheese, eggs, juice, yogurt
a kitchen cupboard | plates, cups, bowls, glasses, spices, pots
a post office | letters, parcels, stamps, scales, envelopes
a station | trains, rails, tickets, clocks, benches, passengers
a zoo | lions, monkeys, elephants, zebras, keepers, cages
a park | benches, trees, paths, ducks, swings, flowers
a castle | towers, walls, a gate, a hall, knights, a throne
a bathroom | a bathtub, a mirror, a towel, a sink, a toothbrush, soap
the sky | clouds, stars, birds, the sun, the moon, planes
a supermarket | shelves, baskets, fruit, bread, a till, customers
a circus | clowns, acrobats, a tent, elephants, jugglers
an orchestra | violins, trumpets, drums, flutes, a conductor
a sewing box | needles, thread, buttons, scissors, pins
a salad | lettuce, tomatoes, cucumbers, onions, oil, vinegar
""")
# a kind | with an article | its members
KINDS_OF = rows("""
instrument | an instrument | violin, harp, trumpet, drum, flute, guitar, piano, cello, accordion
tool | a tool | hammer, saw, rake, axe, shovel, spade, drill, screwdriver
bird | a bird | crow, sparrow, eagle, parrot, swan, robin, owl, heron, stork, pigeon
fish | a fish | trout, salmon, shark, eel, carp, herring, tuna
insect | an insect | bee, ant, beetle, butterfly, wasp, moth, cricket, mosquito
mammal | a mammal | horse, whale, bear, mouse, dog, bat, lion, rabbit, seal
fruit | a fruit | pear, plum, cherry, banana, peach, melon, grape, lemon, apple
vegetable | a vegetable | carrot, onion, potato, leek, turnip, cabbage, pumpkin
flower | a flower | rose, tulip, daisy, lily, sunflower, violet, poppy
tree | a tree | oak, pine, willow, birch, maple, palm, elm
colour | a colour | red, blue, yellow, green, purple, orange, brown, pink
number | a number | one, four, seven, nine, twelve, twenty, a hundred
drink | a drink | milk, tea, juice, coffee, lemonade, cocoa
vehicle | a vehicle | car, bus, train, truck, tram, tractor, bicycle
piece of clothing | a piece of clothing | coat, shirt, scarf, hat, sock, glove, sweater
piece of furniture | a piece of furniture | table, chair, sofa, wardrobe, bed, shelf, desk
country | a country | Italy, Japan, Kenya, Peru, Norway, Egypt, Canada, Greece
month | a month | January, March, April, June, August, October
day of the week | a day of the week | Monday, Wednesday, Friday, Sunday
season | a season | spring, summer, autumn, winter
sport | a sport | tennis, football, hockey, swimming, skiing, rowing
part of the body | a part of the body | arm, knee, elbow, ear, foot, shoulder, nose
metal | a metal | iron, gold, silver, copper, tin
job | a job | baker, pilot, teacher, nurse, tailor, gardener
shape | a shape | circle, square, triangle, star, cube
""")
# {x} and what it can do, or cannot
ABLE = rows("""
a bird | fly, build a nest, sing
a fish | swim, breathe under water
a dog | bark, run, swim, wag its tail
a cat | purr, climb a tree, catch a mouse
a horse | gallop, pull a cart, jump over a fence
a duck | swim, fly, dive
a monkey | climb, swing from a branch
a frog | jump, swim, croak
a bee | fly, sting, dance
a baby | cry, laugh, sleep
a teacher | read, write, count
a cook | make soup, bake a cake
a ship | float, carry people
a plane | fly, land, carry people
a clock | show the time, tick
a parrot | fly, learn words
a kangaroo | jump far, carry its baby
a spider | spin a web, climb a wall
a bell | ring
a lamp | shine
a wheel | turn
a magnet | attract iron
""")
LIVING_DEEDS = "laugh|cry|eat|sing|think|cook|read|sneeze|dream|walk to school|speak|write a letter|feel pain|drink tea|tell a joke|swim|learn to count|get married|sleep|listen".split(
    "|"
)
LIFELESS = "hammer|spoon|brick|table|anchor|coin|bucket|wall|shoe|carpet|candle|fork|key|plate|ladder|box|pillow|button|nail|desk|mirror|bridge|roof|door|lamp|rug|cup|sofa|needle".split(
    "|"
)
# a thing described | its name
CALLED = rows("""
a place where books are lent | a library
a place where planes land | an airport
a place where ships lie | a harbour
a place where bread is made | a bakery
a place where sick people get help | a hospital
a place where trains stop | a station
a place where films are shown | a cinema
a place where wild animals are kept | a zoo
a place where fruit trees grow | an orchard
a place where wine grows | a vineyard
a person who repairs pipes | a plumber
a person who makes clothes | a tailor
a person who flies a plane | a pilot
a person who writes poems | a poet
a person who pulls teeth | a dentist
a person who makes things of wood | a carpenter
a person who looks after sheep | a shepherd
a person who cuts hair | a hairdresser
a person who sells meat | a butcher
a person who travels in space | an astronaut
the child of your aunt | a cousin
the mother of your mother | a grandmother
the brother of your father | an uncle
a hundred years | a century
ten years | a decade
seven days | a week
sixty seconds | a minute
a very big sea | an ocean
a very high hill | a mountain
a mountain that spits fire | a volcano
frozen rain | hail
a hanging spike of frozen water | an icicle
water that has become a gas | steam
a cloud that touches the ground | fog
a colourful bow in the sky | a rainbow
a bridge of water for ships | a canal
a group of wolves | a pack
a group of sheep | a flock
a group of fish | a school
a group of bees | a swarm
the house of a bee | a hive
the house of a bird | a nest
the house of a spider | a web
the house of a king | a palace
a shoe for ice | a skate
a chair for a king | a throne
a hat for a king | a crown
a bed for a baby | a cradle
a knife for battle | a sword
dried grass for animals | hay
dried grapes | raisins
milk that has become solid | cheese
the meal at noon | lunch
a story about animals with a lesson | a fable
the first meal of the day | breakfast
""")
# who | does | what comes of it
MAKERS = rows("""
a spider | spins | a web
a hen | lays | eggs
a cow | gives | milk
a sheep | gives | wool
a bird | builds | a nest
a silkworm | spins | silk
a mole | digs | tunnels
a beaver | builds | dams
an ant | builds | a hill
a baker | bakes | bread
a tailor | sews | clothes
a potter | makes | pots
a poet | writes | poems
a carpenter | makes | furniture
a miller | grinds | flour
a cobbler | mends | shoes
a painter | paints | pictures
a gardener | grows | plants
a blacksmith | makes | horseshoes
a cook | cooks | meals
a composer | writes | music
an architect | plans | houses
a wasp | builds | a nest of paper
an apple tree | bears | apples
a vine | bears | grapes
an oak | bears | acorns
a volcano | spits | lava
a fire | gives | heat and light
a lamp | gives | light
a fridge | keeps | food cold
a weaver | weaves | cloth
a jeweller | makes | rings
a glassblower | makes | glasses
a fisherman | catches | fish
a farmer | grows | wheat
""")
BRIEF = ["", "", "", "", " Answer in one sentence.", " In one sentence, please.", " Be brief.", " Keep it short."]


def with_word(rng, kind):
    """(word, a sentence that has it)."""
    name, spot = lexicon.name(rng, rng.random() < 0.5, 0.1), rng.choice(lexicon.SPOTS)
    if kind == 0:
        word = rng.choice(lexicon.THINGS)
        return word, rng.choice(
            [
                f"The {word} lies {spot}.",
                f"{name} found {an(word)} {spot}.",
                f"There is {an(rng.choice(lexicon.LOOKS) + ' ' + word)} {spot}.",
                f"{name} cannot find the {word}.",
            ]
        )
    if kind == 1:
        word = rng.choice(lexicon.ANIMALS)
        return word, rng.choice(
            [
                f"The {word} sleeps {spot}.",
                f"{an(rng.choice(lexicon.TRAITS)).capitalize()} {word} sits {spot}.",
                f"{name} saw {an(word)} {spot}.",
                f"The {word} is hungry.",
            ]
        )
    if kind == 2:
        word = rng.choice(lexicon.FOODS)
        return word, rng.choice(
            [f"{name} eats {word} {spot}.", f"We bought {word} at the market.", f"{name} likes {word}.", f"There is a bowl of {word} on the table."]
        )
    if kind == 3:
        # A judged prompt asks for a sentence with this one.
        word = rng.choice([colour for colour in lexicon.COLOURS if colour != "blue"])
        return word, rng.choice(
            [
                f"{name} has {an(word)} {rng.choice(lexicon.THINGS)}.",
                f"The {rng.choice(lexicon.THINGS)} is {word}.",
                f"{name} painted the {rng.choice(['door', 'fence', 'wall', 'boat'])} {word}.",
            ]
        )
    if kind == 4:
        word = rng.choice(lexicon.MOODS)
        return word, rng.choice([f"{name} is {word} today.", f"The {rng.choice(lexicon.JOBS)} looks {word}.", f"{name} was {word} because it was raining."])
    if kind == 5:
        word = rng.choice(lexicon.JOBS)
        return word, rng.choice([f"The {word} waits {spot}.", f"{name} wants to be {an(word)}.", f"The {word} has {an(rng.choice(lexicon.THINGS))}."])
    if kind == 6:
        word = rng.choice(lexicon.BUILT)
        return word, rng.choice([f"We walked to the {word} in the evening.", f"{name} lives near the {word}.", f"The {word} is very old."])
    base, past, kinds = rng.choice(lexicon.VERBS)
    what = lexicon.object_of(rng, kinds)
    return rng.choice([(past, f"{name} {past} {what}."), (base, f"I want to {base} {what}."), (base, f"Can you {base} {what}?")])


def sentence(rng):
    if rng.random() < 0.2:
        one, other = rng.choice(lexicon.ANIMALS), rng.choice(lexicon.THINGS)
        name = lexicon.name(rng, True, 0.1)
        said = rng.choice(
            [
                f"The {one} sleeps next to the {other}.",
                f"{name} gave the {one} {an(other)}.",
                f"The {one} has {an(other)}.",
                f"{name} saw {an(one)} with {an(other)}.",
            ]
        )
        words = rng.choice([f"{one} and {other}", f"{other} and {one}"])
        return asked(
            rng.choice(
                [
                    f"Write a sentence with the words {words}.",
                    f"Make a sentence with {words}.",
                    f"Use {words} in one sentence.",
                    f"One sentence with {words}, please.",
                ]
            ),
            said,
        )
    kind = rng.randrange(8)
    word, said = with_word(rng, kind)
    if kind < 7 and kind not in (3, 4) and rng.random() < 0.4:
        about = word if kind == 2 else rng.choice([an(word), f"the {word}"])
        count = rng.choice([1, 1, 1, 2, 3])
        if count == 1:
            return asked(
                rng.choice(
                    [
                        f"Write one sentence about {about}.",
                        f"Write a sentence about {about}.",
                        f"Say something about {about}.",
                        f"Tell me something about {about} in one sentence.",
                        f"One sentence about {about}, please.",
                    ]
                ),
                said,
            )
        if kind in (0, 1):
            spots = rng.sample(lexicon.SPOTS, 3)
            deeds = rng.sample(
                ["stands", "was found", "can be seen", "was forgotten", "belongs"]
                if kind == 0
                else ["sleeps", "eats", "hides", "waits", "plays", "looks for food"],
                3,
            )
            parts = [f"The {word} {deed} {spot}." if n == 0 or rng.random() < 0.4 else f"It {deed} {spot}." for n, (deed, spot) in enumerate(zip(deeds, spots))]
            return asked(
                rng.choice(
                    [f"Write {['', '', 'two', 'three'][count]} sentences about {about}.", f"Tell me {['', '', 'two', 'three'][count]} sentences about {about}."]
                ),
                " ".join(parts[:count]),
            )
    return asked(
        rng.choice(
            [
                f"Write a sentence with the word {word}.",
                f"Use the word {word} in a sentence.",
                f"Make a sentence with {word}.",
                f"Say a sentence that has the word {word}.",
                f'Form a sentence with "{word}".',
                f"Give me an example sentence for {word}.",
                f"Put {word} into a sentence.",
            ]
        ),
        said,
    )


def opposite(rng):
    one, other = rng.choice(OPPOSITES)
    if rng.random() < 0.5 and sum(row[1] == other for row in OPPOSITES) == 1:
        one, other = other, one
    others = [row[1] for row in OPPOSITES if row[0] == one]
    if len(others) > 1 and other != others[0]:
        other = others[0]
    question = rng.choice(
        [
            "What is the opposite of {}?",
            "What's the opposite of {}?",
            "Opposite of {}?",
            "Tell me the opposite of {}.",
            "Which word means the opposite of {}?",
            "The opposite of {}, please.",
            "Give me the opposite of the word {}.",
            "{} - what is its opposite?",
        ]
    ).format(one)
    return asked(capital(question), rng.choice([f"The opposite of {one} is {other}.", f"{capital(other)}."]))


def rhyme(rng):
    word, *others = rng.sample(rng.choice(RHYMES), 2)
    question = rng.choice(
        [
            "What rhymes with {}?",
            "Tell me a word that rhymes with {}.",
            "Find a rhyme for {}.",
            "Which word rhymes with {}?",
            "A rhyme for {}, please.",
            "I need a word that rhymes with {}.",
        ]
    ).format(word)
    return asked(question, rng.choice([f"{capital(others[0])} rhymes with {word}.", f"{capital(others[0])}."]))


def reason(rng):
    deed, why = rng.choice(REASONS)
    question = rng.choice(
        [
            "Why do people {d}?",
            "Why do people {d}?",
            "Why do we {d}?",
            "Why does one {d}?",
            "Why would somebody {d}?",
            "Tell me why people {d}.",
            "What is a reason to {d}?",
            "Give me a reason why people {d}.",
        ]
    )
    own = deed.replace("their", "our") if "do we" in question else deed
    begin, said = ("We", why.replace("they", "we").replace("their", "our").replace("them", "us")) if "do we" in question else ("People", why)
    return asked(question.format(d=own) + rng.choice(BRIEF), f"{begin} {own} {said}.")


def of_room(rng):
    room, things = rng.choice(ROOMS)
    things = things.split(", ")
    count = rng.choice([1, 2, 2, 3, 3, 3, 4])
    number = ["", "one", "two", "three", "four"][count]
    chosen = rng.sample(things, count)
    where = room if room.startswith("the ") else f"in {room}"
    where = where if where.startswith("in ") else f"in {where}"
    thing, belong = ("thing", "belongs") if count == 1 else ("things", "belong")
    question = rng.choice(
        [
            f"Name {number} {thing} that you see {where}.",
            f"List {number} {thing} {where}.",
            f"What can you find {where}? Name {number} {thing}.",
            f"Tell me {number} {thing} that {belong} {where}.",
            f"Give me {number} {thing} that there are {where}.",
        ]
    )
    return asked(question, capital(listed(chosen)) + ".")


def kind_of(rng):
    kind, a_kind, members = rng.choice(KINDS_OF)
    members = members.split(", ")
    member = rng.choice(members)
    said = member if kind in ("colour", "number", "drink", "country", "month", "day of the week", "season", "sport", "metal") else an(member)
    r = rng.randrange(5)
    if r == 0:
        return asked(rng.choice([f"What is {said}?", f"What kind of thing is {said}?", f"Tell me what {said} is."]), f"{capital(said)} is {a_kind}.")
    if r == 1:
        other_kind, a_other, _ = rng.choice([row for row in KINDS_OF if row[0] not in (kind, "fruit", "insect")])
        wrong = rng.random() < 0.5 and "mammal" not in (kind, other_kind)
        return asked(f"Is {said} {a_other if wrong else a_kind}?", f"No, {said} is {a_kind}." if wrong else f"Yes, {said} is {a_kind}.")
    if r == 2:
        return asked(
            rng.choice([f"Name {a_kind}.", f"Tell me {a_kind}.", f"Give me an example of {a_kind}.", f"Say the name of {a_kind}."]), f"{capital(member)}."
        )
    if r == 3:
        first, second, third = rng.sample(members, 3)
        messages = [user(rng.choice([f"Name {a_kind}.", f"Tell me {a_kind}.", f"Give me {a_kind}."])), assistant(f"{capital(first)}.")]
        messages += asked(
            rng.choice(["Name another.", "Another one, please.", "And another one?", "One more.", "Tell me one more.", "Give me a different one."]),
            f"{capital(second)}.",
        )
        if rng.random() < 0.4:
            messages += asked(rng.choice(["One more.", "And another?", "A third one?"]), f"{capital(third)}.")
        return messages
    other = rng.choice([row for row in KINDS_OF if row[0] not in (kind, "fruit", "insect", "mammal")])
    odd = rng.choice(other[2].split(", "))
    words = rng.sample(members, 3) + [odd]
    if odd in members:
        return kind_of(rng)
    rng.shuffle(words)
    return asked(rng.choice([f"Which word does not belong: {', '.join(words)}?", f"Find the odd one out: {', '.join(words)}"]), f"{capital(odd)}.")


def able(rng):
    r = rng.random()
    if r < 0.5:
        thing, deed = rng.choice(LIFELESS), rng.choice(LIVING_DEEDS)
        return asked(
            rng.choice([f"Can {an(thing)} {deed}?", f"Is it possible for {an(thing)} to {deed}?"]),
            rng.choice([f"No, {an(thing)} cannot {deed}.", f"No, {an(thing)} is a thing and cannot {deed}."]),
        )
    one, deeds = rng.choice(ABLE)
    deed = rng.choice(deeds.split(", "))
    if r < 0.8:
        return asked(f"Can {one} {deed}?", f"Yes, {one} can {deed}.")
    return asked(rng.choice([f"What can {one} do?", f"Name something that {one} can do."]), f"{capital(one)} can {deed}.")


def called(rng):
    meaning, word = rng.choice(CALLED)
    if rng.random() < 0.3:
        return asked(
            rng.choice([f"What is {word}?", f"What does {word.split(' ', 1)[-1]} mean?"]),
            f"{capital(word)} is {meaning}." if not word.endswith("s") else f"{capital(word)} are {meaning}.",
        )
    return asked(
        rng.choice([f"What do we call {meaning}?", f"What is {meaning} called?", f"What is the word for {meaning}?", f"How do you call {meaning}?"]),
        rng.choice([f"We call it {word}." if "person" not in meaning else f"We call that person {word}.", f"{capital(word)}."]),
    )


def maker(rng):
    who, does, what = rng.choice(MAKERS)
    base, many = "catch" if does == "catches" else does.removesuffix("s"), lexicon.plural(who.split(" ", 1)[1])
    r = rng.random()
    if r < 0.3:
        return asked(rng.choice([f"Who {does} {what}?", f"What {does} {what}?", f"By whom or what do we get {what}?"]), f"{capital(who)} {does} {what}.")
    if r < 0.65:
        return asked(
            rng.choice([f"What does {who} {base}?", f"Tell me what {who} {does}.", f"{capital(who)} {does} ...?"]),
            rng.choice([f"{capital(who)} {does} {what}.", f"{capital(what)}."]),
        )
    return asked(rng.choice([f"What do {many} {base}?", f"Tell me what {many} {base}."]), f"{capital(many)} {base} {what}.")


def greeting(rng):
    name = lexicon.name(rng, rng.random() < 0.5)
    whom = rng.choice([name, name, f"my {rng.choice(['friend', 'neighbour', 'teacher', 'cousin', 'colleague'])} {name}"])
    verb, said = rng.choice(
        [
            ("Say hello to", f"Hello, {name}!"),
            ("Say hello to", f"Hello, {name}! Nice to meet you."),
            ("Greet", f"Hello, {name}!"),
            ("Say goodbye to", f"Goodbye, {name}!"),
            ("Say thank you to", f"Thank you, {name}!"),
            ("Congratulate", f"Congratulations, {name}!"),
            ("Say good luck to", f"Good luck, {name}!"),
            ("Welcome", f"Welcome, {name}!"),
            ("Wish a nice weekend to", f"Have a nice weekend, {name}!"),
            ("Say get well to", f"Get well soon, {name}!"),
        ]
    )
    return asked(
        rng.choice([f"{verb} {whom}.", f"Please {verb[0].lower() + verb[1:]} {whom}.", f"{verb} {whom}!", f"Can you {verb[0].lower() + verb[1:]} {whom}?"]),
        said,
    )


def form(rng):
    """A sentence in another form: past, future, negative, a question."""
    who, there = lexicon.name(rng, rng.random() < 0.5), rng.choice(["", f" {rng.choice(lexicon.SPOTS)}"])
    base, past, kinds = rng.choice(lexicon.VERBS)
    what = lexicon.object_of(rng, kinds)
    rest = f"{what}{there}"
    now, before = f"{who} {lexicon.third(base)} {rest}.", f"{who} {past} {rest}."
    kind = rng.randrange(6)
    if kind < 2:
        return asked(
            rng.choice(
                [
                    "Put this sentence into the past: {}",
                    "Say this in the past tense: {}",
                    "Change this to the past: {}",
                    "Write this in the past: {}",
                    "{}\n\nSay it in the past.",
                    "Yesterday, not today: {}",
                ]
            ).format(now),
            before,
        )
    if kind == 2:
        return asked(
            rng.choice(["Put this sentence into the present: {}", "Say this in the present tense: {}", "{}\n\nSay it as if it happened now."]).format(before),
            now,
        )
    if kind == 3:
        return asked(
            rng.choice(["Put this into the future: {}", "Say this about tomorrow: {}", "{}\n\nSay it in the future tense."]).format(now),
            f"{who} will {base} {rest}.",
        )
    if kind == 4:
        return asked(
            rng.choice(["Make this sentence negative: {}", "Say the contrary of this with the word not: {}", "{}\n\nSay that it is not so."]).format(now),
            f"{who} does not {base} {rest}.",
        )
    return asked(
        rng.choice(["Make a question out of this: {}", "Turn this sentence into a question: {}", "{}\n\nAsk it as a question."]).format(now),
        f"Does {who} {base} {rest}?",
    )


def sorted_(rng):
    if rng.random() < 0.5:
        numbers = rng.sample(range(1, 100), rng.choice([3, 4, 5]))
        down = rng.random() < 0.3
        said = ", ".join(map(str, sorted(numbers, reverse=down)))
        order = "from the largest to the smallest" if down else "from the smallest to the largest"
        return asked(
            rng.choice([f"Sort these numbers {order}: {', '.join(map(str, numbers))}", f"Put these numbers in order {order}: {', '.join(map(str, numbers))}"]),
            said + ".",
        )
    words = rng.sample(lexicon.ANIMALS + lexicon.THINGS + lexicon.FOODS, rng.choice([3, 3, 4]))
    return asked(
        rng.choice(["Put these words in the order of the alphabet: {}", "Sort these words by the alphabet: {}", "Alphabetical order, please: {}"]).format(
            ", ".join(words)
        ),
        ", ".join(sorted(words)) + ".",
    )


def beginning(rng):
    kind, table = rng.choice(
        [
            ("an animal", lexicon.ANIMALS),
            ("a food", lexicon.FOODS),
            ("a job", lexicon.JOBS),
            ("a thing", lexicon.THINGS),
            ("a colour", lexicon.COLOURS),
            ("a name", lexicon.GIRLS + lexicon.BOYS),
        ]
    )
    word = rng.choice(table)
    return asked(
        rng.choice(
            [
                f"Name {kind} that begins with {word[0].upper()}.",
                f"Tell me {kind} with the first letter {word[0].upper()}.",
                f"Give me {kind} that starts with the letter {word[0].upper()}.",
            ]
        ),
        f"{capital(word)}.",
    )


KINDS = [
    (sentence, 14),
    (opposite, 10),
    (rhyme, 7),
    (reason, 10),
    (of_room, 8),
    (kind_of, 9),
    (able, 8),
    (called, 8),
    (maker, 5),
    (greeting, 5),
    (form, 8),
    (sorted_, 3),
    (beginning, 3),
]


def instruction(rng):
    (kind,) = rng.choices([kind for kind, _ in KINDS], [share for _, share in KINDS])
    return kind(rng)
