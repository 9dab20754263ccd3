"""A wide vocabulary: names, nouns, verbs, positions and times, so that a sentence made of them is hardly ever made
twice, and can only be repeated by copying it."""

from . import words
from .grammar import an, rows

MORE_GIRLS = (
    "Aisha Aliya Amara Anika Anouk Astrid Beatrix Birgit Brigid Camila Carlotta Chiara Dagny Danika Elif Eloise Emiko Fatima Federica Franka Gerda Greta Gudrun Hana Hedda Henrike Hilda Imani Ines Ingrid "
    "Jolanda Judith Jutta Kamala Katya Keiko Leonie Liesel Ludmila Magda Malika Marit Matilda Mei Mirja Nadine Noor Odette Olga Oksana Paloma Priya Ragna Rashida Renate Roswitha Saskia Senta Shirin Signe Sigrid "
    "Solveig Svenja Tabea Tamara Tilda Ursula Valentina Veronika Wilma Xenia Yasmin Yoko Zofia Zuzanna Philippa Rosalind Harriet Winifred Marjorie Beryl Doreen Muriel Thelma Gwyneth Bronwen Deirdre Morag Eilidh"
).split()
MORE_MEN = (
    "Abbas Ahmed Akira Alvar Anders Anton Arvid Axel Bastian Bjorn Cedric Claus Cosmo Dario Dieter Dimitri Edmund Egon Einar Elias Emre Enzo Erwin Fabian Fergus Florian Gaston Georg Giorgio Gustav Hakan Hamid "
    "Harald Hasan Heiner Hektor Henrik Ignaz Ilja Ismail Jannik Jasper Joachim Jorge Julian Jussi Kasper Kenji Klaus Knut Konrad Lars Laszlo Leander Lennart Linus Lorenzo Ludwig Luis Magnus Malik Manfred Mateo "
    "Matthias Mehmet Mikkel Milo Moritz Murat Nils Nuri Ole Olaf Pavel Pekka Pierre Rafael Rainer Ramon Rashid Reinhold Roman Rune Salvador Samir Sanjay Silas Stellan Sven Tarek Thorsten Tobias Torben Ulrich Uwe "
    "Viktor Vincent Waldemar Werner Wilhelm Xaver Yusuf Zoltan Angus Bernard Clement Desmond Edwin Gilbert Horace Leopold Montague Rupert Sebastian Tristan"
).split()
FAMILIES = (
    "Abbott Adler Ahmadi Alvarez Andersen Baker Barlow Becker Bennett Berger Blum Brandt Brook Carter Castell Chandra Clarke Costa Cruz Dalton Diaz Dorn Drake Duval Eckert Ellis Engel Farrow Feld Fischer Fontana "
    "Forster Frost Garcia Gerber Gray Grimm Haas Hansen Harper Hartmann Hayes Ibsen Ito Jansen Jensen Kaplan Keller Kern Kimura Koch Kowalski Kramer Lambert Lang Larsen Lind Lund Maier Marsh Martin Meyer Miller "
    "Moreau Moreno Moss Nakata Nilsson Novak Okafor Olsen Ortega Ott Palmer Park Patel Perez Petrov Pike Price Quist Ramos Reed Richter Rivera Rossi Roth Rowe Sato Sauer Schmidt Shah Silva Simon Stark Stein Stone "
    "Strand Tanaka Taylor Thorn Torres Unger Vance Vogel Wagner Walsh Ward Weber Wells White Wolff Woods Yilmaz York Young Zeller Ziegler"
).split()
TOWNS = (
    "Port Lena|Millbrook|Lindau|Redhill|Oakham|Westbay|Stonefield|Sandford|Green Hill|Norton|Kelbrook|Ashby|Winterport|Marlow|Brightwater|Fernley|Cold Harbour|Elmstead|Rookwood|Tarn End|Hollins|Saltmarsh|Birkdale|"
    "Crowford|Old Quarry|Larkfield|Nettle Bay|Thornby|Upper Mills|Wexcombe|Glenmoor|Pinecrest|Rivermouth|Swanage|Three Oaks|Vale End|Moorside|Haverton|Dunbar|Copperfield|Applegate|Bell Harbour|Castle Rock|Dry Creek"
).split("|")

# Creatures that a story may be about.
ANIMALS = (
    "ant|antelope|ape|badger|bat|bear|beaver|bee|beetle|bull|bumblebee|butterfly|camel|canary|cat|caterpillar|cheetah|chick|chicken|cow|coyote|crab|cricket|crocodile|crow|cuckoo|deer|dog|dolphin|donkey|dove|dragonfly|"
    "duck|duckling|eagle|earthworm|eel|elephant|falcon|ferret|firefly|fish|flamingo|flea|fly|foal|fox|frog|gecko|giraffe|goat|goldfish|goose|gorilla|grasshopper|hamster|hare|hawk|hedgehog|hen|heron|hippo|"
    "horse|hyena|jackdaw|jaguar|jellyfish|kangaroo|kitten|koala|ladybird|lamb|lark|lemur|leopard|lion|lizard|llama|lobster|lynx|magpie|mole|monkey|moose|mosquito|moth|mouse|mule|newt|nightingale|octopus|ostrich|"
    "otter|owl|ox|oyster|panda|panther|parrot|peacock|pelican|penguin|pig|pigeon|pony|porcupine|puffin|puppy|rabbit|raccoon|ram|rat|raven|reindeer|rhino|robin|rooster|salamander|salmon|seagull|seahorse|seal|shark|"
    "sheep|skunk|sloth|slug|snail|snake|sparrow|spider|squid|squirrel|starfish|stork|swallow|swan|tadpole|tiger|toad|tortoise|trout|turkey|turtle|vulture|walrus|wasp|weasel|whale|wolf|woodpecker|worm|wren|yak|zebra"
).split("|")
BEINGS = "dragon|dwarf|elf|fairy|ghost|giant|gnome|goblin|mermaid|monster|ogre|phoenix|robot|scarecrow|snowman|sprite|troll|unicorn|vampire|witch|wizard|werewolf|puppet|toy soldier|teddy bear|alien".split(
    "|"
)
PEOPLE = (
    "actor|acrobat|architect|artist|astronaut|baker|ballerina|barber|beekeeper|blacksmith|boy|builder|bus driver|butcher|captain|carpenter|chemist|chimney sweep|cleaner|clockmaker|clown|coach|cobbler|cook|dancer|"
    "dentist|detective|diver|doctor|emperor|engineer|explorer|farmer|ferryman|firefighter|fisherman|florist|gardener|girl|glassblower|goldsmith|grandfather|grandmother|guard|hairdresser|hermit|hunter|inventor|jeweller|"
    "judge|juggler|king|knight|librarian|lighthouse keeper|lumberjack|magician|mayor|mechanic|merchant|midwife|miller|miner|monk|musician|neighbour|nurse|painter|pharmacist|photographer|pilot|pirate|plumber|poet|"
    "police officer|postman|potter|prince|princess|professor|queen|reporter|sailor|scientist|sculptor|shepherd|singer|skier|soldier|student|surgeon|tailor|taxi driver|teacher|thief|train driver|twin|vet|"
    "violinist|waiter|watchman|weaver|window cleaner|woodcutter|writer|zookeeper"
).split("|")
JOBS = [job for job in PEOPLE if job not in ("boy", "girl", "twin", "grandfather", "grandmother", "neighbour", "thief", "prince", "princess", "hermit")]
# Things that can be held or moved.
THINGS = (
    "accordion|acorn|album|almanac|anchor|apron|armchair|arrow|axe|backpack|badge|ball|balloon|banner|barrel|basket|bathtub|bead|bell|belt|bench|bicycle|blanket|boat|book|boot|bottle|bowl|bracelet|brick|broom|brush|"
    "bucket|buckle|button|cabinet|camera|candle|cane|canoe|cap|carpet|cart|chain|chair|chalk|chest|clock|coat|coin|comb|compass|cradle|crate|crown|cup|curtain|cushion|desk|diary|dictionary|doll|door|dress|drum|easel|"
    "envelope|eraser|fan|feather|fiddle|flag|flask|flowerpot|flute|fork|frame|funnel|garland|gate|glove|goblet|gong|guitar|hairpin|hammer|hammock|handkerchief|harmonica|harp|hat|helmet|hook|horn|horseshoe|hourglass|jacket|jar|jug|kettle|key|"
    "kite|knife|knot|ladder|ladle|lamp|lantern|leaf|letter|lock|locket|loom|magnet|mailbox|map|marble|mask|mattress|medal|microscope|mirror|mitten|mop|mug|necklace|needle|net|notebook|oar|organ|overcoat|paddle|padlock|"
    "paintbrush|pan|parcel|pebble|pen|pencil|pennant|phone|photo|piano|picture|pillow|pin|pipe|pitcher|plank|plate|plough|pocket watch|postcard|poster|pot|pulley|pump|puppet|purse|puzzle|quilt|radio|raft|rake|rattle|"
    "raincoat|record|ribbon|ring|rocking chair|rope|rug|ruler|sack|saddle|sail|sandal|satchel|saw|scale|scarf|seed|shawl|shell|shield|shirt|shovel|sign|slate|sled|slipper|sock|sofa|spade|spoon|stamp|stick|stone|stool|stove|"
    "suitcase|sweater|sword|table|tablecloth|tambourine|tapestry|teapot|telescope|tent|thimble|ticket|tile|toolbox|torch|towel|tray|trophy|trumpet|trunk|typewriter|umbrella|vase|veil|violin|wagon|wallet|wand|wardrobe|"
    "watering can|wheel|wheelbarrow|whistle|wig|wreath|xylophone|yo-yo|zither"
).split("|")
LOOKS = (
    "red|blue|green|yellow|white|black|grey|brown|purple|pink|orange|golden|silver|striped|spotted|checkered|wooden|iron|copper|paper|glass|leather|woollen|plastic|stone|old|new|big|small|tiny|huge|long|short|round|square|flat|"
    "broken|torn|rusty|dusty|muddy|shiny|heavy|light|thin|thick|crooked|cracked|empty|worn|strange|plain|pretty|ugly|cheap|precious|borrowed|forgotten|folded|painted|carved|dented|faded|polished|soft|smooth|rough"
).split("|")
FOODS = (
    "apples|apricots|beans|beets|berries|biscuits|bread|butter|cabbage|cakes|carrots|cheese|cherries|chestnuts|corn|cucumbers|currants|dates|dumplings|eggs|figs|flour|garlic|grapes|ham|hazelnuts|honey|jam|leeks|lemons|lentils|"
    "lettuce|melons|milk|muffins|mushrooms|mustard|noodles|nuts|oats|olives|onions|oranges|pancakes|peaches|pears|peas|peppers|pickles|pies|plums|porridge|potatoes|pretzels|pumpkins|quinces|radishes|raisins|raspberries|rice|rolls|"
    "salt|sausages|soup|spinach|strawberries|sugar|syrup|tarts|tea|tomatoes|turnips|waffles|walnuts|yogurt"
).split("|")
BUILT = (
    "airport|attic|avalanche hut|bakery|barn|bathhouse|beach|bridge|cabin|camp|canal|castle|cathedral|cave|cellar|cemetery|chapel|church|cinema|circus|cliff|corridor|cottage|courtyard|dairy|desert|dock|factory|fair|farm|ferry|"
    "field|forest|fountain|garage|garden|glacier|greenhouse|gym|harbour|hill|hospital|hotel|hut|inn|island|jungle|kitchen|laboratory|lake|library|lighthouse|market|meadow|mill|mine|monastery|mountain|museum|oasis|observatory|"
    "orchard|palace|park|pier|playground|pond|port|post office|prison|pyramid|quarry|railway|restaurant|river|roof|ruin|school|shed|ship|shop|stable|stadium|station|swamp|swimming pool|temple|theatre|tower|town hall|train|treehouse|"
    "tunnel|valley|village|vineyard|volcano|wall|waterfall|well|windmill|workshop|zoo"
).split("|")
SNACKS = [food for food in FOODS if food.endswith("s") and food not in ("oats", "leeks")]
# Those in which one can live or be let in, and those that are wide and open.
OPEN_AIR = "beach|canal|cliff|desert|dock|field|forest|garden|glacier|harbour|hill|island|jungle|lake|meadow|mountain|oasis|orchard|park|pond|quarry|river|swamp|valley|vineyard|volcano|waterfall".split(
    "|"
)
VENUES = [
    one
    for one in BUILT
    if one
    not in OPEN_AIR
    + "airport|camp|cemetery|bridge|corridor|courtyard|fair|fountain|mine|pier|playground|port|railway|roof|ruin|stadium|station|tunnel|village|wall|well|swimming pool|pyramid|cave".split(
        "|"
    )
]
NATURE = "moon|sun|star|cloud|storm|wind|rainbow|snowflake|raindrop|river|mountain|tree|oak|pine|willow|flower|rose|sunflower|mushroom|seed|leaf|stone|pebble|wave|shadow|echo|fog|icicle|comet|spring|autumn leaf|cactus|candle flame|dandelion|apple tree|puddle".split(
    "|"
)
SPOTS = (
    "in the attic|in the barn|in the cellar|in the garden|in the kitchen|in the library|in the hall|in the yard|in the workshop|in the stable|in the forest|in the meadow|in the snow|in the harbour|in the market square|in a tunnel|"
    "in the waiting hall|in the dining room|in the greenhouse|in the drawer|in an old trunk|in a hollow tree|in the back of the cart|in the museum|in the bakery|in the laundry|in the tall grass|in the ditch|in the school yard|"
    "at the station|at the harbour|at the mill|at the fair|at the lake|at the gate|at the bus stop|at the crossroads|at the castle|at the fountain|at the edge of the forest|at the foot of the hill|at the end of the street|at home|"
    "under the bridge|under the stairs|under the bed|under a stone|under the sofa|under the apple tree|behind the church|behind the barn|behind the curtain|behind the fence|behind the stove|behind the school|behind the waterfall|"
    "on the roof|on the beach|on the balcony|on the shelf|on the windowsill|on the island|on the train|on the ferry|on the pier|on the bench|on the top step|on the hill|near the well|near the windmill|near the river|near the quarry|"
    "next to the chimney|next to the piano|beside the road|beside the canal|between two rocks|above the door|outside the town|inside the tent|by the fire|by the pond|along the wall|across the street|opposite the post office"
).split("|")
TIMES = (
    (
        "on Monday|on Tuesday|on Wednesday|on Thursday|on Friday|on Saturday|on Sunday|at dawn|at noon|at midnight|at sunset|at six in the evening|at seven in the morning|at half past nine|at three in the afternoon|at a quarter to five|"
        "before breakfast|before lunch|after dinner|after school|after the rain|after the concert|during the storm|during the break|in the morning|in the afternoon|in the evening|in January|in February|in March|in May|in July|in August|"
        "in September|in October|in November|in spring|in summer|in autumn|in winter|last week|last night|last summer|two days ago|a week ago|three years ago|yesterday|the day before yesterday|on the first of June|on the last day of school|"
        "on market day|on her birthday|on the way home|in the middle of the night"
    )
    .replace("on her birthday|", "")
    .split("|")
)
OFTEN = (
    "every morning|every evening|every night|every Monday|every Friday|every Sunday|every summer|every winter|on Mondays|on Tuesdays|on Wednesdays|on Thursdays|on Fridays|on Saturdays|on Sundays|at noon|at dawn|at five in the morning|"
    "at seven in the evening|once a week|twice a day|once a month|in the holidays|after work|before sunrise|in spring|in autumn|when it rains"
).split("|")
REASONS = rows("""
it was raining | the bus was late
{he} was hungry | {he} was bored
the shop was closed | the wind was too strong
{he} wanted to surprise {B} | {he} had promised it to {B}
it was too cold outside | the lamp was broken
{B} had asked for it | {B} was ill
the old one was broken | guests were coming
{he} needed money | it was a gift
nobody else had time | the river was too high
{he} could not sleep | the neighbours complained
it was the last day | school was over
{he} had lost a bet | {he} was curious
the door was locked | the bridge was closed
it looked lonely | it made {him} laugh
winter was coming | the roof was leaking
""")
REASONS = [reason for row in REASONS for reason in row]
# base | past | what it is done to
VERBS = rows("""
buy | bought | thing food
sell | sold | thing food animal
find | found | thing animal
lose | lost | thing
repair | repaired | thing
paint | painted | thing
hide | hid | thing food
carry | carried | thing food
borrow | borrowed | thing
wrap | wrapped | thing food
clean | cleaned | thing
polish | polished | thing
draw | drew | thing animal
break | broke | thing
drop | dropped | thing
steal | stole | thing food
weigh | weighed | thing food
measure | measured | thing
photograph | photographed | thing animal person
pack | packed | thing food
fetch | fetched | thing food animal
forget | forgot | thing
win | won | thing animal
collect | collected | food
bury | buried | thing
inherit | inherited | thing
lend | lent | thing
mend | mended | thing
burn | burned | thing food
build | built | thing
wash | washed | thing food animal
eat | ate | food
cook | cooked | food
taste | tasted | food
pick | picked | food
peel | peeled | food
share | shared | food
spill | spilled | food
bake | baked | food
bring | brought | thing food animal
see | saw | animal thing person
feed | fed | animal
chase | chased | animal person
catch | caught | animal
rescue | rescued | animal person
hear | heard | animal person
follow | followed | animal person
watch | watched | animal person
meet | met | person animal
call | called | person
visit | visited | person
help | helped | person animal
thank | thanked | person
invite | invited | person
teach | taught | person
hug | hugged | person animal
warn | warned | person
greet | greeted | person
paint | painted | person animal
wake | woke | person animal
admire | admired | person thing
miss | missed | person animal
""")
MOODS = "angry|ashamed|bored|calm|cheerful|cold|confused|curious|disappointed|excited|exhausted|grateful|happy|hungry|impatient|jealous|lonely|nervous|proud|relieved|sad|scared|shy|sleepy|sorry|surprised|thirsty|tired|worried".split(
    "|"
)
TRAITS = "brave|clever|shy|lazy|greedy|curious|clumsy|grumpy|kind|lonely|tiny|proud|forgetful|gentle|hungry|stubborn|cheerful|nervous|sleepy|vain|honest|patient|noisy|quiet|young|old|busy|poor|polite|little|careful|silly".split(
    "|"
)
COLOURS = "red blue green yellow white black grey brown purple pink orange turquoise".split()
NUMBERS = "two three four five six seven eight nine ten eleven twelve thirteen fifteen twenty thirty forty".split()
NEIGHBOURS = "grandmother grandfather mother father sister brother aunt uncle cousin neighbour teacher friend".split()

_ON = (
    "b bl br c ch cl cr d dr f fl fr g gl gr h j k kl kn kr l m n p pl pr qu r s sc sh sk sl sm sn sp st str sv sw t th tr tw v w wh y z zw".split() + [""] * 3
)
_MID = "b bb ck d dd f ff g gg k l ld lk ll lm ln lv m mb mm mp n nd ng nk nn p pp r rd rk rl rm rn rr rs rt rv s sk sp ss st t th tt v vr x z zz".split()
_END = "b ck d f g k l ld lf m mp n nd ng nn p r rd rk rn rt s sh sk ss st t th x z".split() + [""] * 12
_VOWEL = "a a a e e e i i i o o o u u ai au ea ee ei ia ie io oa oo ou ue y".split()


def syllables(rng):
    """A word that nobody has ever seen, in small letters."""
    word = rng.choice(_ON) + rng.choice(_VOWEL)
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        word += rng.choice(_MID) + rng.choice(_VOWEL)
    word += rng.choice(_END)
    return word if len(word) > 2 else syllables(rng)


def odd_name(rng):
    return words.invented_name(rng) if rng.random() < 0.5 else syllables(rng).capitalize()


GIRLS = sorted({*words.GIRLS, *words.MORE_NAMES, *MORE_GIRLS})
BOYS = sorted({*words.BOYS, *words.MORE_BOYS, *MORE_MEN})


def name(rng, girl, odd=0.4):
    return odd_name(rng) if rng.random() < odd else rng.choice(GIRLS if girl else BOYS)


def family(rng):
    return odd_name(rng) if rng.random() < 0.4 else rng.choice(FAMILIES)


def town(rng):
    return rng.choice(TOWNS) if rng.random() < 0.6 else odd_name(rng) + rng.choice(["", "", "", "ton", "ham", "berg", " Bay"])


def thing(rng):
    """One or two words, without an article."""
    return f"{rng.choice(LOOKS)} {rng.choice(THINGS)}" if rng.random() < 0.6 else rng.choice(THINGS)


def plural(noun):
    odd = {
        "mouse": "mice",
        "goose": "geese",
        "sheep": "sheep",
        "deer": "deer",
        "fish": "fish",
        "wolf": "wolves",
        "ox": "oxen",
        "knife": "knives",
        "leaf": "leaves",
        "calf": "calves",
        "scarf": "scarves",
    }
    for one, many in odd.items():
        if noun == one or noun.endswith(" " + one):
            return noun[: len(noun) - len(one)] + many
    if noun.endswith(("s", "x", "sh", "ch", "z")):
        return noun + "es"
    return noun[:-1] + "ies" if noun.endswith("y") and noun[-2] not in "aeiou" else noun + "s"


def third(base):
    """`she` does it."""
    if base.endswith(("s", "x", "sh", "ch", "z", "o")):
        return base + "es"
    return base[:-1] + "ies" if base.endswith("y") and base[-2] not in "aeiou" else base + "s"


def object_of(rng, kinds, person=None):
    """A noun phrase for one of the kinds, and whether it can be counted."""
    kind = rng.choice(kinds.split())
    if kind == "food":
        return rng.choice(FOODS) if rng.random() < 0.6 else f"{rng.choice(['some', 'fresh', 'warm', 'cold', 'sweet', 'dried'])} {rng.choice(FOODS)}"
    if kind == "person":
        return person or rng.choice([f"the {rng.choice(JOBS)}", name(rng, rng.random() < 0.5)])
    noun = rng.choice(ANIMALS) if kind == "animal" else rng.choice(THINGS)
    r = rng.random()
    if r < 0.15:
        return f"{rng.choice(NUMBERS)} {plural(noun)}"
    return an(f"{rng.choice(LOOKS if kind == 'thing' else TRAITS)} {noun}" if r < 0.65 else noun)


def scenery(rng):
    """A sentence without weight, that a summary leaves out."""
    kind = rng.randrange(7)
    if kind == 0:
        return f"{an(rng.choice(TRAITS)).capitalize()} {rng.choice(ANIMALS)} {rng.choice(['sat', 'slept', 'waited', 'hopped about', 'watched'])} {rng.choice(SPOTS)}."
    if kind == 1:
        return f"{rng.choice(['There was a smell of', 'Somebody was selling', 'A boy was eating', 'Everybody talked about'])} {rng.choice(FOODS)}."
    if kind == 2:
        return f"{an(rng.choice(LOOKS)).capitalize()} {rng.choice(THINGS)} {rng.choice(['lay', 'stood', 'hung'])} {rng.choice(SPOTS)}."
    if kind == 3:
        return f"It was {rng.choice(['cold', 'warm', 'windy', 'foggy', 'bright', 'a quiet day', 'already late', 'a grey morning', 'a mild evening', 'very hot', 'market day'])}."
    if kind == 4:
        return f"The {rng.choice(JOBS)} {rng.choice(['only smiled', 'shook a finger', 'whistled a tune', 'looked up', 'said nothing', 'came by', 'shrugged'])}."
    if kind == 5:
        return f"{rng.choice(['Far away', 'Outside', 'Somewhere', 'Next door'])} {rng.choice(['a bell rang', 'a dog barked', 'a door slammed', 'children laughed', 'a train passed', 'someone sang'])}."
    return f"{name(rng, True)} was there too, with {an(thing(rng))}."
