"""Stories about whatever was asked for: somebody, an animal, a thing, something in nature, a building, two of them, or a
theme. The subject is in the first sentence and leads the story."""

import re

from . import lexicon
from .grammar import an, asked, capital, fill
from .requests import STORY_REQUESTS, TLDR_FOLLOW_UP

# {h} the hero (`the fox`), {a} with `a`, {A} the name or the hero, {k} the kind, {he} {him} {his} {He}; {B} a friend, who is {b}.
# {T} a thing, {F} food, {V} a building, {W} where, {M} an animal, {x} the second subject with `the`, {ax} with `a`, {y} the third.
FIRST = [
    "Once upon a time there was {a}{named}.",
    "There once was {a}{named} who lived {W}.",
    "[Long ago|Once], in {P}, there lived {a}{named}.",
    "[Not far from {P}|Near the {V}] lived {a}{named}.",
]
MORE = [
    "{He} [was small but very clever|was a little shy|had a loud laugh|was never in a hurry|liked to sing|knew everybody in {P}].",
    "Every [morning|evening], {A} [ate {F}|looked out of the window|walked to the {V} and back|counted the clouds].",
    "{He} had a {T}, and nothing was dearer to {him}.",
    "Everybody [liked|knew] {him}.",
]
END = [
    "And from that day on, {A} was [happy|never sad again|proud|content].",
    "That night {A} slept better than ever.",
    "[And if you go to {P}, you can still hear about it.|People in {P} still talk about it today.]",
    "And they all lived happily ever after.",
    "{A} laughed, and everybody laughed with {him}. The end.",
    "And that is how {A} [learned to trust {his} own heart|found out that small steps lead far|learned that friends make everything easier].",
    "The end.",
]

# What a request says of the hero | the sentences | the summary
CANNOT = "fly|swim|sing|climb|whistle|dance|read|count|jump|roar|ski|cook|row|juggle|hide|dive|run fast|say no|tell lies|keep a secret|sit still|see well|wake up|spell|skate|paint".split(
    "|"
)
ABILITIES = [
    ("paint", "{He} mixed all the colours and painted {T2}"),
    ("dance", "{He} stepped on every foot, but soon {he} turned like a leaf in the wind"),
    ("sing", "{He} began with one low note and then found the next"),
    ("swim", "{He} held on to a plank and kicked until the water carried {him}"),
    ("read", "{He} learned one letter every evening until the letters became words"),
    ("cook", "{He} burned {n} pans of {F}, but the next one was good"),
    ("skate", "{He} fell {n} times, but then the ice carried {him}"),
    ("juggle", "{He} began with two {F2} and then took a third"),
    ("whistle", "{He} blew and blew until a thin sound came out"),
    ("play the violin", "{He} scratched like a cat at first, but then there was a tune"),
    ("write", "{He} wrote one word on a wall, and the next day two"),
    ("bake", "{He} kneaded the dough every morning until it rose"),
    ("sail", "{He} watched the wind for weeks before {he} raised the sail"),
    ("laugh", "{He} listened to {n} jokes, and at the last one {his} belly began to shake"),
    ("share", "{He} gave away one thing a day, and every day it was easier"),
    ("wait", "{He} sat down and counted to a thousand, and then once more"),
    ("knit", "{He} knitted a scarf that was as long as the street"),
    ("count", "{He} counted the stars, the steps and the spoons"),
]
FEARS = "the dark|thunder|deep water|the doctor|the barber|loud noises|high ladders|big dogs|spiders|the cellar|the first day of school|the wind|being alone|the lift|mirrors|the forest|strangers|bees|heights|bad dreams".split(
    "|"
)


def cannot(rng, s):
    s["can"] = rng.choice(CANNOT)
    return (
        ["{k} who [cannot|could not] {can}", "{k} that could not {can}"],
        [
            "All the others could {can}, but {A} could not.",
            "[{A} tried it {W}, and everybody laughed.|{He} tried every day and never got better.|The others shook their heads when they saw {him}.]",
            '"[Why can I not {can}|What is wrong with me]?" {he} asked {B}, {b}. "[You can do other things|Everybody can do something else]," said {B}.',
            "[One night|One stormy day] {M2} was in trouble [near the {V}|in the dark {V}]. {A} heard a cry that nobody else heard, for {he} had learned to listen.",
            "{He} found the way, step by step, and brought {m2} home.",
            "After that nobody laughed any more, and {A} did not mind that {he} could not {can}.",
        ],
        "{A} could not {can}, but {he} saved {M2}, and nobody laughed any more.",
    )


def learns(rng, s):
    s["can"], how = rng.choice(ABILITIES)
    return (
        ["{k} who [learns|learned|wants] to {can}", "{k} and how {he} learned to {can}"],
        [
            "{A} wanted nothing more than to {can}.",
            '"[A {kk} cannot {can}|That is not for you]," said {B}, {b}. But {A} did not give up.',
            '{He} went to the old {J} at the {V} and asked for help. "Begin small," said the {J}.',
            how + ".",
            "[It took the whole winter.|It took {n} weeks.] Then {A} invited everybody [to the {V}|for the evening].",
            "When they saw that {A} could really {can}, they clapped until their hands hurt. {B} clapped the loudest.",
        ],
        "{A} wanted to {can}. {He} practised with the help of an old {J}, and in the end everybody clapped.",
    )


def afraid(rng, s):
    s["fear"] = rng.choice(FEARS)
    return (
        ["{k} who [is|was] afraid of {fear}", "{k} who [is|was] scared of {fear}"],
        [
            "{A} was afraid of {fear}.",
            "[As soon as {he} thought of it, {his} knees began to shake.|{He} did not tell anybody about it.]",
            "One day there was no way around it. {A} stood there and could not take one step.",
            '{B}, {b}, took {him} by the hand. "I am afraid too sometimes," {Bhe} said. "Let us [count to ten|sing a song|take one step] together."',
            "They did so, and when they had finished, it was already over. [It had not been bad at all.|{A} opened {his} eyes and was surprised.]",
            '"Is that all?" asked {A} and began to laugh.',
            "Since then {A} [has not been|was never] afraid of {fear} again.",
        ],
        "{A} was afraid of {fear}, but {B} helped, and it was not bad at all.",
    )


def lost(rng, s):
    s["x"] = s["T"]
    return (
        ["{k} who [loses|lost] {his} {x}", "{k}{named} and {his} lost {x}", "{k}{named} and a lost {x}"],
        [
            "{A} had {ax} and took it everywhere.",
            "One [windy|grey|busy] day the {x} was gone. {A} looked {W}, then {W2}, but it was not there.",
            '{He} asked {B}, {b}. "I have seen it," said {B}. "{M1c} carried it away."',
            "They followed the tracks to the {V}. There sat {m1}, with the {x}, and shivered.",
            '"I only wanted it because I was so cold," it said. {A} thought for a moment. Then {he} brought it a warm blanket.',
            "{M1c} gave the {x} back, and {A} carried it home, happier than before.",
        ],
        "{A} lost {his} {x}. {M1c} had taken it because it was cold, and gave it back for a blanket.",
    )


def finds(rng, s):
    s["x"] = rng.choice(["map", "key", "letter", "box", "coin", "lamp", "book", "egg", s["t"], s["t"], s["t"]])
    return (
        ["{k} who [finds|found] {ax}", "{k} and {ax}", "{k} and the {x}"],
        [
            "One [morning|evening], {A} found {ax} {W}.",
            '"[Whose is it|What is it for]?" {A} asked. Nobody in {P} knew.',
            '{B}, {b}, looked at the {x} closely. "There is something written on it," {Bhe} said. "It says: {V}."',
            "So the two went to the {V}. Behind the last door an old {J} was sitting, all alone.",
            '"My {x}!" cried the {J}. "I have looked for it for {n} years." [Tears ran down his face.|He danced around the room.]',
            "As thanks he gave them {F}, and told them stories until it was dark. Since then they have visited him every week.",
        ],
        "{A} found {ax}. With {B} {he} brought it to an old {J} in the {V}, who had looked for it for years.",
    )


def strange_spot(rng, s):
    return (
        ["{k} in {av}", "{k} who [lives|lived] in {av}", "{k} in the {V}", "{k} who gets lost in {av}"],
        [
            "One day {A} walked right into the {V}, for the door was open.",
            '"{An} {kk} in the {V}!" cried the {J}. [People jumped on their chairs.|Everybody stopped and stared.]',
            "{A} looked around. Here it smelled of {F}, and there stood {aT}. {He} sniffed at it, and it fell down with a crash.",
            "The {J} ran after {him}, three times around the room. [A lady dropped her {G}.|A boy laughed so much that he had to sit down.]",
            "But then {A} stopped in front of {B}, {b}, who had been sad all day. {B} began to smile.",
            '"Let {him} stay," said {B}, and the {J} sighed and nodded.',
            'Since then there has been a sign at the door of the {V}: "Please do not step on the {kk}."',
        ],
        "{A} walked into the {V} and made a mess, but {he} made {B} smile and was allowed to stay.",
    )


def wish(rng, s):
    s["want"], s["why_not"], s["so"] = rng.choice(
        [
            ("sleep", "the wind banged the shutters all night", "{B} tied the shutters with a ribbon and hummed an old song"),
            ("be alone", "somebody knocked every five minutes", "{he} put a sign on the door, and then {he} missed the knocking and took it down"),
            ("see the sea", "the way was too far", "{B} took {him} along on a cart full of {F}"),
            ("touch the clouds", "no ladder was long enough", "{he} waited on the hill until the fog came down to {him}"),
            ("have a garden", "there were only stones", "{he} carried earth up the hill, one {T} full a day"),
            ("find a friend", "everybody was busy", "{he} sat down next to {B}, who was looking for a friend as well"),
            ("eat only {F}", "after {n} days {he} could not even smell them any more", "{B} brought {him} {G}, and never had anything tasted so good"),
            ("be taller", "{he} did not grow any more", "{he} stood on the shoulders of {B}, and together they could see over the wall"),
            ("stop the rain", "the rain did not listen", "{he} jumped into the biggest puddle and found out how much fun it was"),
            ("go on a journey", "{he} did not dare to leave {his} home", "{B} went with {him} to the first corner, then to the second, and then to {P}"),
            ("hear a new story", "everybody only knew the old ones", "{he} made one up {himself}, about a {M} with {aT}"),
            ("win a prize", "others were faster and stronger", "{he} got one for helping {B}, who had fallen"),
            ("celebrate a birthday", "nobody knew when it was", "{B} decided that it was today and baked {F}"),
            ("give everybody a present", "{he} had only one {T}", "{he} lent it to each of them for a day"),
            ("be a king for a day", "the crown was too heavy", "{he} gave it back and wore a crown of leaves"),
        ]
    )
    return (
        ["{k} who [wants|wanted] to {want}", "{k} who only [wants|wanted] to {want}"],
        [
            "{A} had only one wish: {he} wanted to {want}.",
            "But {why_not}.",
            "[{He} tried it with {aT}.|{He} asked the {J}.|{He} asked the {M}.] [That did not help at all.|It only got worse.]",
            '"[I give up|It is no use]," sighed {A}. "[Not yet|Wait]," said {B}, {b}.',
            "Then {so}.",
            "[{A} was so happy that {he} could not speak.|{A} smiled for the first time in weeks.]",
        ],
        "{A} wanted to {want}, but {why_not}. Then {so}.",
    )


def at_work(rng, s):
    return (
        ["{k}", "{k}{named}", "{k}{named}"],
        [
            "{A} was the best {kk} of {P}, and {he} did {his} work with a smile.",
            "[One morning|On a cold {day}] everything went wrong. First {his} {T} broke. Then {he} slipped on {F}. And then {M1} stood in the way and would not move.",
            '"[What a day|Not today, please]!" said {A}. {He} got out {his} lunch and shared it with {m1}.',
            "{M1c} ate, got up, and led {him} {W}. There lay {B}, {b}, with a hurt foot.",
            "{A} carried {Bhim} to the {V}, and the doctor came at once.",
            '"If {m1} had not stopped you, nobody would have found me," said {B}.',
            "That evening {A} hung up a picture of {m1} next to {his} {T}.",
        ],
        "{A} had a bad day at work, but {M1} led {him} to {B}, who had hurt a foot and needed help.",
    )


def lonely(rng, s):
    return (
        ["{k}", "{k}{named}", "{k}", "{k} who [looks|looked] for a friend"],
        [
            "{A} lived all alone [in the {V}|{W}], and the evenings were long.",
            '{He} wrote "I am looking for a friend" on a sheet of paper and let the wind take it.',
            "The wind carried it over {P}, over the {V2}, and dropped it in front of {B}, {b}.",
            "{B} walked for {n} days. [It rained, and {Bhe} had nothing but {aT}.|On the way {Bhe} met {M1}, which came along.]",
            '"Are you the one who wrote this?" asked {B} at the door. {A} could only nod.',
            "They cooked {F} together and talked until the candle had burned down.",
            "From then on there were always two cups on the table.",
        ],
        "{A} was lonely and let the wind carry a letter away. {B} found it and became {his} friend.",
    )


def truth(rng, s):
    return (
        ["{k}", "{k} who [tells|told] a lie", "{k} who [breaks|broke] {aT}", "{k}{named}"],
        [
            "One day {A} broke the {T} that belonged to {B}, {b}.",
            'Nobody had seen it. "It was the {M}," said {A} when {B} asked.',
            "So the {M} was locked out in the cold. {A} heard it cry and could not eat {his} {F}.",
            'In the night {he} got up, let the {M} in, and went to {B}. "It was me," {he} said. "I am sorry."',
            '{B} was silent for a while. Then {Bhe} said, "Thank you for telling me. That is worth more than a {t}."',
            "The next morning they repaired the {T} together, and the {M} got the biggest bowl of {G}.",
        ],
        "{A} broke {B}'s {T} and blamed the {M}, but then {he} told the truth and was forgiven.",
    )


def brave(rng, s):
    return (
        ["{k}", "{k}{named}", "a little {kk} who saves {av}", "{k} who [rescues|saves] {B}"],
        [
            "{A} was small, and nobody asked {him} when something important had to be done.",
            "One night {A} smelled smoke. It came from the {V}, and {B}, {b}, was asleep inside.",
            "The door was hot, and the others ran away. But {A} crept through a hole that was too narrow for anybody else.",
            'Inside {he} could hardly see. "{B}, wake up!" {he} cried and pulled at {Bhis} sleeve.',
            "Together they crawled to the window and jumped into the {T2s} below.",
            "The next day the mayor gave {A} a medal. It was bigger than {his} hand.",
            '"I was afraid the whole time," said {A}. "That is why you were brave," said {B}.',
        ],
        "{A} was small, but {he} saved {B} from the burning {V} and got a medal.",
    )


def greedy(rng, s):
    return (
        ["{k}", "{k}", "{k} and [a basket of|some|the last] {F}", "{k} who [eats|ate] too much"],
        [
            "{A} loved {F} more than anything.",
            "When the {J} brought a big basket to the {V}, {A} hid it {W} and ate everything alone.",
            "First it tasted wonderful. Then {his} belly began to ache, and {he} could not get up any more.",
            '{B}, {b}, came along. "Have you seen the {F}? There is nothing for the feast."',
            '{A} turned red and told {Bhim} everything. "Then help me to make new ones," said {B}.',
            "They worked until late. At the feast {A} served everybody and kept only one for {himself}, and it tasted better than the whole basket.",
        ],
        "{A} ate all the {F} alone and felt ill. Then {he} helped {B} to make new ones for the feast.",
    )


def storm(rng, s):
    return (
        ["{k} and [a|the] storm", "{k} in a storm", "{k} in the [rain|snow|fog]", "{k} on a stormy night"],
        [
            "One evening black clouds came over {P}, and a storm broke out.",
            "{A} was far from home, {W}. The wind pulled at {him}, and the rain hit {his} face.",
            "{He} saw a light in the {V} and went towards it, slowly, step by step.",
            '{B}, {b}, opened the door. "Come in, there is room for everybody," {Bhe} said. Inside sat {M1} and {M2}, wet and tired like {him}.',
            "They shared {F} and listened to the thunder. {A} told a story, and nobody was afraid any more.",
            "In the morning the storm was over. The sky was washed clean, and a rainbow stood over the {V}.",
            "{A} thanked {B} and walked home through the puddles.",
        ],
        "{A} was caught in a storm, but {B} let {him} in, and they all waited together until it was over.",
    )


def contest(rng, s):
    return (
        ["{k} who [wins|won] a race", "{k} and a contest", "{k}", "{k} at [a|the] race"],
        [
            "Every year there was a great race from the {V} to the {V2}, and this year {A} wanted to take part.",
            '"You?" laughed {B}, {b}. "You are much too slow."',
            "{A} trained every day, before breakfast and after dinner, with {aT} on {his} back.",
            "At the start everybody ran off like the wind. {B} was far ahead. But in the last bend {Bhe} stumbled and stayed on the ground.",
            "{A} could have run past. Instead {he} stopped, helped {Bhim} up, and the two crossed the line arm in arm.",
            "They did not win the cup. But {B} never laughed at {A} again, and they have trained together ever since.",
        ],
        "{A} took part in a race and stopped to help {B}, who had laughed at {him}. Since then they train together.",
    )


def trade(rng, s):
    return (
        ["{k}", "{k} who [swaps|swapped] {aT}", "{k} who [goes|went] to the market", "{k} and {aT}"],
        [
            "{A} had nothing but {aT}, so {he} took it to the market of {P}.",
            'On the way {he} met {M1}. "Give me the {T}, and I will give you {aU}," it said. {A} agreed.',
            "The {J} wanted the {U} and gave {him} {F} for it. That was already more than {he} had hoped for.",
            "But at the gate sat {B}, {b}, who had not eaten for days. {A} looked at the {F}, and then {he} put them into {Bhis} hands.",
            "So {A} came home with nothing at all. But that evening there was a knock: {B} stood there with {F} and {G} and {n} friends.",
            '"The one who gives has the fullest house," said {B}, and they feasted until morning.',
        ],
        "{A} swapped {aT} for {F} and gave them all to {B}, who came back with friends and a feast.",
    )


def invention(rng, s):
    return (
        ["{k} who [invents|invented] a machine", "{k} who [builds|built] a machine", "{k}"],
        [
            "{A} had built a machine out of {aT}, {aU} and a lot of string.",
            '"What can it do?" asked {B}, {b}. "I do not know yet," said {A} and pulled the lever.',
            "The machine hummed and shook, and out came {F}, first one, then ten, then a hundred.",
            'Soon the whole {V} was full of {F}, and they rolled down the street of {P}. "Stop it!" cried the {J}. But {A} could not find the switch.',
            "Then {B} cut the string, and the machine was quiet.",
            "There was only one thing to do: they called everybody, and everybody ate. It took {n} days, and it was the best feast that {P} had ever had.",
        ],
        "{A}'s machine made so many {F} that {B} had to stop it, and all of {P} ate for {n} days.",
    )


def night(rng, s):
    return (
        ["{k} who [cannot|could not] sleep", "{k} at night", "{k}"],
        [
            "It was late, but {A} could not sleep.",
            "{He} counted sheep, {he} counted {Ts2}, and {he} even counted {F}. Nothing helped.",
            'So {he} got up and went out, {W}. There sat {M1}, wide awake. "I cannot sleep either," it said.',
            "Together they walked through the quiet streets of {P}. In the {V} they met {B}, {b}, who was baking for the next day.",
            "{B} gave them warm milk and told them how the night smells and why the stars do not fall down. {BHis} voice was soft and slow.",
            "When {Bhe} looked up, {A} and {m1} had fallen asleep, side by side. {B} put a blanket over them and turned down the lamp.",
        ],
        "{A} could not sleep, met {M1} that was awake too, and both fell asleep while {B} told them about the night.",
    )


def mistaken(rng, s):
    return (
        ["{k}", "{k} and a misunderstanding", "{k} who [hears|heard] a noise"],
        [
            "One evening {A} heard a strange noise: tap, tap, tap.",
            '"There is {m0} at the door!" {he} whispered and hid behind the {T}.',
            "The noise came closer. {A} thought of all the terrible stories that {he} had ever heard. {His} heart beat like a drum.",
            "At last {he} took all {his} courage together and opened the door.",
            'There stood {B}, {b}, with {F} in a basket. "I have been knocking for an hour," said {Bhe}. "Happy birthday!"',
            "{A} had to laugh so much that {he} could not explain it for a long time. Then they ate, and {B} told {him} a story that was not terrible at all.",
        ],
        "{A} was afraid of a noise at the door, but it was only {B}, who had come for {his} birthday.",
    )


def journey(rng, s):
    s["x2"] = rng.choice(lexicon.OPEN_AIR)
    return (
        ["{k} who [goes|went] to the {x2}", "{k} and the {x2}", "{k} on a [long journey|journey]", "{k} who [wants|wanted] to see the {x2}"],
        [
            "{A} had heard so much about the {x2} that {he} decided to go there.",
            "{He} packed {aT} and {F} and left before sunrise. Nobody in {P} believed that {he} would get far.",
            "On the first day {he} lost the way. On the second day {he} shared {his} {F} with {M1}, and it showed {him} a path that was on no map.",
            "On the third day a storm came up, and {B}, {b}, let {him} sleep in the {V}.",
            "On the fourth day {A} stood before the {x2}. It was greater and more beautiful than all the stories. {He} sat there until the sun went down.",
            'Then {he} walked home again. "Was it worth the way?" they asked. "The way was the best of it," said {A}.',
        ],
        "{A} went to the {x2} though nobody believed in it, and with the help of {M1} and {B} {he} got there.",
    )


def promise(rng, s):
    return (
        ["{k}", "{k} who [keeps|kept] a promise", "{k} and a promise", "{k} who [forgets|forgot] a promise"],
        [
            "{A} had promised {B}, {b}, to come to the {V} on {day} evening.",
            "But on {day} the sun was shining, and {A} played {W} and forgot the time.",
            "It was dark when {he} remembered. {He} ran as fast as {he} could, past the {V2} and over the hill.",
            "The {V} was closed, and in front of it {B} was sitting on the steps, with {aT} on {Bhis} knees.",
            '"You waited," said {A}, out of breath. "You promised," said {B}.',
            "{A} was so ashamed that {he} did not know where to look. Since then {he} has tied a knot into a string for every promise, and has not forgotten one.",
        ],
        "{A} forgot a promise and came late, but {B} had waited, and since then {A} has kept every promise.",
    )


HERO_PLOTS = [
    trade,
    invention,
    night,
    mistaken,
    journey,
    promise,
    cannot,
    learns,
    afraid,
    lost,
    finds,
    strange_spot,
    wish,
    at_work,
    lonely,
    truth,
    brave,
    greedy,
    storm,
    contest,
]

# Plots of two subjects {h} and {x}, and perhaps a third {y}: sentences and a summary.
PAIR_PLOTS = [
    (
        [
            "{H} and the {x} lived next to each other {W}, but they had never spoken.",
            '"[It is so strange|It is so quiet]," thought {h}. "[It is so proud|It never laughs]," thought the {x}.',
            "Then one winter the {V} was snowed in, and both were locked up in it.",
            "On the first day they were silent. On the second day {h} sang, and the {x} sang along. On the third day they told each other everything.",
            "When the snow melted, neither of them wanted to go home. So they stayed together.",
        ],
        "{H} and the {x} had never spoken, but in the snow they became friends.",
    ),
    (
        [
            "One day {h} met {ax} {W}.",
            '"Where are you going?" asked {h}. "To {P}, to find my luck," said the {x}. "Then I will come along," said {h}.',
            "They came to a deep river. {H} knew the way, and the {x} knew how to build a raft.",
            "In the middle of the river it began to sink. They threw away everything they had, even the {T}, and so they reached the shore.",
            "There they sat, wet and poor, and looked at each other. Then they began to laugh.",
            '"I think I have found my luck," said the {x}.',
        ],
        "{H} and the {x} went to {P} to find their luck, and found it in each other.",
    ),
    (
        [
            "{H} had {ax}. It was not new, and it was not pretty, but {he} would not have given it away for anything.",
            "[One day the {x} was gone.|One morning the {x} was not where it had always been.] {H} turned the whole {V} upside down.",
            "{M1c} had seen it: the wind had blown it to {P}.",
            "So {h} set off. {He} asked everybody on the way, and everybody gave {him} something: {F}, a bed, a song.",
            "When {he} found the {x} at last, {his} bag was full and {he} had {n} new friends.",
            '"It was good that I lost you," {he} said to the {x} and took it home.',
        ],
        "{H} lost {his} {x}, and found {n} new friends while looking for it.",
    ),
    (
        [
            "{H} saw {ax} {W} and was very surprised.",
            '"You do not belong here," said {h}. But the {x} stayed where it was.',
            "In the evening it became cold, and {h} came back with a blanket. The next day {he} brought {F}.",
            "After a week everybody in {P} came to see {h} and the {x}. {B}, {b}, wanted to buy the {x} for a hundred coins.",
            '"No," said {h}. "A friend is not for sale."',
            "And so they stayed together, {h} and the {x}, through summer and winter.",
        ],
        "{H} took care of {ax} and did not sell it for a hundred coins.",
    ),
    (
        [
            "{H} and the {x} wanted to know who was better.",
            '"I am stronger," said {h}. "I am cleverer," said the {x}. {M1c} was to be the judge.',
            "The first task was to open the door of the {V}. {H} pushed and pushed, but it stayed closed. The {x} found the key and could not turn it.",
            "Then {h} turned the key that the {x} had found, and the door was open.",
            '"Now who is better?" they asked. "Both of you together," said {m1}.',
        ],
        "{H} and the {x} wanted to know who was better, and could open the door only together.",
    ),
]
THREE = [
    (
        [
            "{H} made {y} for the great feast, the finest {y} of {P}. {He} put it on the windowsill.",
            "The {x} smelled it. It had not eaten for {n} days. It climbed up and took one small bite, and then another one.",
            'When {h} came back, half of it was gone. "Who was that?" {he} shouted. The {x} crept out from behind the {T}. "I am sorry. I was so hungry."',
            '{H} looked at the thin {x}, and {his} anger was gone. "Then you will help me to make a new one," {he} said.',
            "They stirred and laughed all night. The new {y} was even better than the first, and the {x} sat at the table like a guest.",
        ],
        "The {x} ate half of the {y} that {h} had made for a feast, and then helped to make a new one.",
    ),
]

# Plots of a thing {x}, and of something in nature.
THING_PLOTS = [
    (
        [
            "Once there was {ax}. It lay {W}, and nobody needed it any more.",
            '"I would like to be useful once more," it thought. But the {U} next to it only laughed.',
            'One [night|evening] {B}, {b}, came by in the dark, wet and tired. {BHe} saw the {x} and picked it up. "Just what I need!" {Bhe} said.',
            "{BHe} took the {x} home, cleaned it, and gave it the best spot, right next to the window.",
            "Since then {B} has used it every day, and the {x} shines with joy.",
        ],
        "A {x} that nobody needed was found by {B}, and now it is useful again.",
    ),
    (
        [
            "{B}, {b}, found {ax} {W}. It was old and covered with dust.",
            'When {Bhe} rubbed it, a voice said, "You have one wish." {B} thought for a long time.',
            '{BHe} could have asked for gold. But {Bhis} friend {C} had been ill for weeks. "I wish that {C} gets well," said {B}.',
            "The {x} became warm in {Bhis} hand, and then it was just {ax} again.",
            "When {B} came home, {C} stood at the door and laughed. {B} kept the {x} for ever, though it never spoke again.",
        ],
        "{B} found {ax} that granted one wish, and wished that {Bhis} friend {C} would get well.",
    ),
    (
        [
            "In a shop in {P} there was {ax} that nobody could buy, for the old {J} did not want to sell it.",
            '"What is so special about the {x}?" asked {B}, {b}. "Hold it to your ear," said the {J}.',
            "{B} did so, and {Bhe} heard the sea, and the wind, and far away a song.",
            "{BHe} came back every day to listen. When the {J} became too old to work, he gave the {x} to {B}.",
            '"It belongs to the one who listens," he said. Now children come to {B}, and everybody may hold the {x} to an ear.',
        ],
        "An old {J} had {ax} in which one could hear the sea, and gave it to {B}, who had listened every day.",
    ),
    (
        [
            '{B}, {b}, and {C} found {ax} {W} at the same time. "It is mine!" they both cried.',
            "They pulled at the {x}, one on the left and one on the right, until it made a terrible noise.",
            "They were frightened and let go. The {x} had a crack.",
            '"Now nobody has it," said {C} and almost cried. "Or both of us," said {B} and fetched the glue.',
            "They mended the {x} together. On even days it belongs to {B}, on odd days to {C}, and on Sundays it may rest.",
        ],
        "{B} and {C} fought for {ax} until it had a crack. Then they mended it and shared it.",
    ),
    (
        [
            "There was once {ax} that could talk. But it talked only at night, when everybody was asleep.",
            'One night {B}, {b}, could not sleep and heard it. "Good evening," said the {x}. {B} nearly fell out of bed.',
            "The {x} told {Bhim} about all it had seen: kings, storms, and a {M} with {aT}.",
            '"Why do you talk only at night?" asked {B}. "Because in the day nobody listens," said the {x}.',
            "Since then {B} has stayed awake a little longer every evening, and the {x} has never been lonely again.",
        ],
        "A {x} could talk, but only at night, until {B} heard it and listened every evening.",
    ),
]
NATURE_PLOTS = [
    (
        [
            "Once upon a time the {x} was tired of being alone. It looked down on {P} and saw all the bright windows.",
            '"Just one night I would like to sit at a table with others," it thought.',
            "{B}, {b}, heard it sigh. {BHe} put a chair outside, and on the table {Bhe} put {F}.",
            "When it was quiet, the {x} came, very softly. They sat together and said little, and it was beautiful.",
            "In the morning the {x} went back to where it belonged. But whenever {B} looks out of the window, {Bhe} waves, and the {x} seems to smile.",
            "Good night.",
        ],
        "The {x} was lonely, and {B} invited it to the table for one night.",
    ),
    (
        [
            'The {x} wanted to be something else. "Nobody looks at me," it said.',
            "So it asked the wind to make it a king. But as a king it could not move under the heavy crown.",
            "Then it wanted to be a {M}. But as a {M} it was hungry all the time.",
            '"And now?" asked the wind. "Now I would like to be the {x} again," it said in a small voice.',
            'The wind blew softly, and there it was again. {B}, {b}, came by, stopped, and said, "How beautiful you are."',
            "And the {x} was content.",
        ],
        "The {x} wanted to be something else, but in the end it was glad to be the {x} again.",
    ),
    (
        [
            "Everybody in {P} loved the {x}. Then one day it was gone.",
            "People looked {W} and {W2}. The {J} wrote letters, and the children cried.",
            "Only {B}, {b}, had an idea. {BHe} climbed up the highest hill and sang the oldest song that {Bhe} knew.",
            "From far away something answered. The {x} had only hidden because everybody had become so loud.",
            '"Come back," said {B}. "We will be quiet for an hour every day." And so it was.',
            "Since then there has been one silent hour in {P}, and the {x} has never left again.",
        ],
        "The {x} hid because {P} was too loud, and {B} brought it back with a song.",
    ),
]
BUILT_PLOTS = [
    (
        [
            "Far out, where the road ends, stood {ax}. It was old, and the paint came off its walls.",
            '"It must be pulled down," said the mayor of {P}. But {B}, {b}, went there every evening, for it was so quiet.',
            "One night the fog was as thick as milk, and {n} children had lost their way. {B} lit every lamp in the {x}.",
            "The children saw the light and followed it, hand in hand, until they stood at the door.",
            "After that nobody wanted to pull down the {x} any more. Everybody came with paint and brushes, and now it shines from far away.",
        ],
        "The old {x} was to be pulled down, but its lamps showed {n} lost children the way, so it was painted anew.",
    ),
    (
        [
            "{B}, {b}, lived all alone in {ax}. At night the wind sang in the walls.",
            'One evening there was a knock. Outside stood {M1}, wet to the bone. "May I stay for one night?" it asked.',
            "The next evening {M2} came, and then {C} with a {T}. Soon there was no room in the {x} that was empty.",
            "They cooked {F}, they mended the roof, and somebody always played a tune.",
            '"I had thought that the {x} was too big for me," said {B}. "It was only waiting for you all."',
        ],
        "{B} lived alone in {ax}, until guests came one after the other and stayed.",
    ),
    (
        [
            "Everybody said that there was a ghost in the {x} of {P}. Nobody went in.",
            "{B}, {b}, wanted to know. {BHe} took a lamp and {aT} and opened the heavy door of the {x}.",
            "Up the stairs something rattled. {BHis} heart beat fast, but {Bhe} went on, step by step.",
            "At the top sat {M1} with its foot in a tin. It had rattled every night because it could not get free.",
            "{B} took off the tin, and {m1} licked {Bhis} hand. Now it sleeps at {Bhis} feet, and the {x} is open to everybody.",
        ],
        "Everybody feared a ghost in the {x}, but {B} found only {M1} with its foot in a tin.",
    ),
]
OPEN_AIR_PLOTS = [
    (
        [
            "{B}, {b}, had never been to the {x}, although it was not far from {P}.",
            '"There is nothing to see," said everybody. But {B} packed {F} and {aT} and went.',
            "At the {x} it was so quiet that {Bhe} could hear {Bhis} own heart. {BHe} sat down, and after a while {M1} came and sat down as well.",
            "{BHe} stayed until the stars came out. On the way home {Bhe} thought of how the light had changed, from gold to red to blue.",
            '"And? Was there anything?" they asked in {P}. "Everything," said {B}.',
            "The next day they all went to the {x}, and nobody ever said again that there was nothing to see.",
        ],
        "{B} went to the {x} though there was nothing to see there, and found everything.",
    ),
    (
        [
            "Near {P} there was {ax} that had once been the home of many animals. But people had thrown their rubbish there, and all the animals had left.",
            "{B}, {b}, could not bear to see it. {BHe} came every day with a sack and cleaned up, one corner after the other.",
            '"You will never finish," said {C}. But the next day {C} came with a second sack, and then half of {P} was there.',
            "After {n} weeks the {x} was clean. First {M1} came back, then {M2}, and in spring it was full of voices.",
            "{B} hung up the old sack {W}, and it was never needed again.",
        ],
        "{B} cleaned the {x} with the help of {P}, and the animals came back.",
    ),
]
# Two or three heroes together: {B} and {C}, who are {two}.
GROUPS = "friends|brothers|sisters|children|neighbours|thieves|knights|sailors|cousins|twins|students|pirates|robots|mice|foxes|frogs|bears".split("|")
GROUP_PLOTS = [
    (
        ["two {two} who [find|found] {ax}", "two {two} and {ax}", "{B} and {C} who find {ax}", "two {two}"],
        [
            "{B} and {C} were two {two} who [did everything together|lived in {P}].",
            "One [morning|rainy day] they found {ax} {W}. It was wrapped in an old cloth.",
            '"Let us sell it and share the money," said {B}. "Let us find out where it comes from," said {C}.',
            'So they walked to the {V} and asked the {J}. The {J} turned pale. "This {x} belonged to my grandmother," the {J} said. "It has been missing for many years."',
            "They gave the {x} back and did not want anything for it. But the {J} opened a door that had long been locked, and behind it was a room full of {F}.",
            '"Take as much as you like," said the {J}. And so {B} and {C} ate until they could not move.',
        ],
        "{B} and {C} found {ax} and gave it back to the {J}, who let them eat as much as they liked.",
    ),
    (
        ["two {two} who [quarrel|quarrelled]", "two {two}", "two {two} named {B} and {C}", "{B} and {C}"],
        [
            "{B} and {C} were two {two}, and they quarrelled about everything.",
            "When {B} said that it was warm, {C} said that it was cold. When {C} wanted {F}, {B} wanted {G}.",
            "One day they quarrelled so loudly that they did not look where they were going, and both fell into a deep hole.",
            '"It is your fault!" cried {B}. "No, yours!" cried {C}. But nobody came, and it became dark.',
            'At last {C} said in a small voice, "If you stand on my shoulders, you can reach the edge." {B} climbed up, got out, and pulled {C} up with {aT}.',
            "On the way home they quarrelled about who had had the better idea. But this time both of them were laughing.",
        ],
        "{B} and {C} quarrelled until they fell into a hole, and got out by helping each other.",
    ),
    (
        ["two {two} who build {aT}", "two {two} on a journey", "two {two} who want to go to the {x2}", "two {two}"],
        [
            "{B} and {C} were two {two} who wanted to see the {x2}.",
            "They built {aT} out of everything that they could find, and nobody in {P} thought that it would work.",
            "On the first day they came to the {V}. On the second day it rained, and their {F} got wet. On the third day they did not know the way any more.",
            '"Shall we go back?" asked {C}. "One more hill," said {B}.',
            "And behind that hill it was: the {x2}. They stood there, hand in hand, and forgot that they were tired.",
            "They brought home a small stone, so that everybody in {P} would believe them.",
        ],
        "{B} and {C} wanted to see the {x2}, and behind the last hill they found it.",
    ),
]
THEMES = {
    "sharing|kindness|giving|generosity": [greedy],
    "honesty|telling the truth|a lie|being sorry": [truth],
    "courage|being brave|fear": [brave, afraid],
    "friendship|a new friend|being alone|loneliness|friends": [lonely],
    "patience|learning|never giving up|practice": [learns],
    "helping others|winning and losing|a race|fairness": [contest],
    "being different|being small|something one cannot do": [cannot],
    "bad weather|a storm|a stormy night": [storm],
    "something lost|forgiveness": [lost],
    "a wish|dreams|a big dream": [wish],
    "a bad day|a day when everything goes wrong|work": [at_work],
    "a funny mistake|a funny guest|a big mess": [strange_spot],
    "a secret|something found|a mystery": [finds],
    "a promise|trust|being on time": [promise],
    "giving|luck|being poor and rich": [trade],
    "sleep|the night|the stars at night": [night],
    "a journey|an adventure|travelling": [journey],
    "an invention|a machine|too much of a good thing": [invention],
    "a surprise|a birthday|a misunderstanding": [mistaken],
}
FORMS = [
    "with a happy ending",
    "with a good ending",
    "that ends well",
    "with a sad start that ends well",
    "for children",
    "for my little sister",
    "before bed",
    "that makes me smile",
    "in a few sentences",
]
ADJECTIVES = ["", "", "", "", "", "short ", "little ", "bedtime ", "funny ", "very short ", "very short ", "new ", "nice ", "sad "]


GIRLS_ONLY = set("girl|princess|queen|witch|fairy|mermaid|ballerina|grandmother|hen|cow|midwife".split("|"))
BOYS_ONLY = set("boy|prince|king|wizard|grandfather|rooster|bull|ram|monk|emperor|fisherman|postman|watchman".split("|"))


def slots(rng, kind=None, named=None):
    """The values of a story. `kind` is the hero's, `named` says whether the hero has a name."""
    girl, b_girl = rng.random() < 0.5, rng.random() < 0.5
    kind = kind or rng.choice(rng.choice([lexicon.ANIMALS, lexicon.PEOPLE, lexicon.BEINGS]))
    girl = kind in GIRLS_ONLY or girl and kind not in BOYS_ONLY
    named = rng.random() < 0.55 if named is None else named
    name = lexicon.name(rng, girl, 0.3)
    friend, third = lexicon.name(rng, b_girl, 0.25), lexicon.name(rng, True, 0.25)
    animals, things = rng.sample([one for one in lexicon.ANIMALS if one != kind], 3), rng.sample(lexicon.THINGS, 3)
    foods, built, spots = rng.sample(lexicon.SNACKS, 2), rng.sample(lexicon.VENUES, 2), rng.sample(lexicon.SPOTS, 2)
    friend_kind = (
        rng.choice(lexicon.ANIMALS + lexicon.JOBS)
        if rng.random() < 0.7
        else rng.choice(["girl next door", "old woman", "little girl", "neighbour"] if b_girl else ["boy next door", "old man", "little boy", "neighbour"])
    )
    thing = f"{rng.choice(lexicon.LOOKS)} {things[0]}" if rng.random() < 0.4 else things[0]
    if friend_kind in GIRLS_ONLY | BOYS_ONLY:
        friend_kind = "neighbour"
    look = rng.choice(lexicon.TRAITS) + " " if rng.random() < 0.35 else ""
    h = f"the {kind}"
    return {
        "k": an(look + kind),
        "kk": kind,
        "An": capital(an(kind).split(" ")[0]),
        "a": an(look + kind),
        "h": h,
        "H": capital(h),
        "A": name if named else h,
        "name": name,
        "named": rng.choice([f" named {name}", f" called {name}"]) if named else "",
        "he": "she" if girl else "he",
        "him": "her" if girl else "him",
        "his": "her" if girl else "his",
        "He": "She" if girl else "He",
        "himself": "herself" if girl else "himself",
        "B": friend,
        "b": an(friend_kind),
        "Bhe": "she" if b_girl else "he",
        "BHe": "She" if b_girl else "He",
        "Bhim": "her" if b_girl else "him",
        "Bhis": "her" if b_girl else "his",
        "BHis": "Her" if b_girl else "His",
        "C": third if third not in (friend, name) else "Wim",
        "T": thing,
        "aT": an(thing),
        "t": things[1],
        "U": things[2],
        "aU": an(things[2]),
        "Ts2": lexicon.plural(things[1]),
        "His": "Her" if girl else "His",
        "m0": an(rng.choice(["monster", "ghost", "thief", "wolf", "witch", "giant"])),
        "T2": an(things[2]),
        "T2s": rng.choice(["hay", "snow", "bushes", "straw"]),
        "F": foods[0],
        "F2": "balls",
        "G": foods[1],
        "V": built[0],
        "av": an(built[0]),
        "V2": built[1],
        "W": spots[0],
        "W2": spots[1],
        "M": animals[0],
        "M1": an(animals[1]),
        "m1": f"the {animals[1]}",
        "M1c": capital(f"the {animals[1]}"),
        "M2": an(animals[2]),
        "m2": f"the {animals[2]}",
        "J": rng.choice(lexicon.JOBS),
        "P": lexicon.town(rng),
        "n": rng.choice("three four five six seven eight nine".split()),
        "day": rng.choice("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()),
        "x": things[1],
        "y": rng.choice(["soup", "cake", "pie", "bread", "pudding", "stew", "tart"]),
    }


def made(rng, sentences, s):
    """The text of a story, in one paragraph or in two."""
    filled = [fill(rng, fill(rng, one, s), s) for one in sentences]
    # After `!"` and `?"` a sentence goes on: "…!" the king cried.
    parts = [re.sub(r"([.!?] |\.\" )([a-z])", lambda match: match.group(1) + match.group(2).upper(), capital(one)) for one in filled if one]
    if len(parts) > 5 and rng.random() < 0.35:
        half = len(parts) // 2
        return " ".join(parts[:half]) + "\n\n" + " ".join(parts[half:])
    return " ".join(parts)


def tale(rng):
    """{"text", "summary", "topics": what a request may name}."""
    r = rng.random()
    if r < 0.56:
        plot = rng.choice(HERO_PLOTS)
        kind = None
        if plot is at_work:
            kind = rng.choice(lexicon.JOBS)
        s = slots(rng, kind)
        topics, body, summary = plot(rng, s)
        s["ax"] = an(s["x"])
        begin = [rng.choice(FIRST)] + ([rng.choice(MORE)] if rng.random() < 0.4 else [])
        if s["named"] and rng.random() < 0.5:
            topics = [one.replace("{k} who", "{k}{named} who").replace("{k} that", "{k}{named} that") for one in topics] * 2
            topics += ["{k}{named}", "{k}{named}", "{name} the {kk}", "{name}, {k}"]
        else:
            topics = [*topics, "{k}"]
        if plot in (brave, greedy, lonely):
            trait = plot.__name__
            s["a"] = s["k"] = an(f"{rng.choice([trait, trait, f'{trait} little', f'{trait} young'])} {s['kk']}")
    elif r < 0.7:
        s = slots(rng, named=False)
        is_thing = rng.random() < 0.5
        s["x"] = lexicon.thing(rng) if is_thing else rng.choice([one for one in lexicon.ANIMALS + lexicon.BEINGS if one != s["kk"]])
        s["ax"] = an(s["x"])
        if rng.random() < 0.25:
            s["x"] = rng.choice([one for one in lexicon.ANIMALS if one != s["kk"]])
            s["ax"] = an(s["x"])
            body, summary = THREE[0]
            topics = ["{k}, {ax} and {ay}", "{k}, {ax} and a {y}"]
            s["ay"] = an(s["y"])
        else:
            body, summary = PAIR_PLOTS[rng.choice((2, 3) if is_thing else (0, 1, 3, 4))]
            topics = ["{k} and {ax}", "{k} and {ax}", "{h} and the {x}", "{k} and the {x}"]
        begin = [rng.choice(FIRST)] + ([rng.choice(MORE)] if rng.random() < 0.3 else [])
    elif r < 0.78:
        s = slots(rng, named=False)
        s["x"] = rng.choice(["map", "box", "key", "letter", *lexicon.THINGS])
        s["ax"], s["two"], s["x2"] = an(s["x"]), rng.choice(GROUPS), rng.choice(lexicon.OPEN_AIR)
        topics, body, summary = rng.choice(GROUP_PLOTS)
        if "{x2}" in summary:
            s["aT"] = an(rng.choice(["raft", "balloon", "cart", "sled", "boat", "wagon", "canoe", "sailing boat"]))
        begin, s["A"], s["him"], s["his"] = [], f"{s['B']} and {s['C']}", "them", "their"
    else:
        s = slots(rng, named=False)
        table, nouns = rng.choice(
            [(THING_PLOTS, lexicon.THINGS)] * 4
            + [(NATURE_PLOTS, lexicon.NATURE)] * 3
            + [(BUILT_PLOTS, lexicon.VENUES)] * 2
            + [(OPEN_AIR_PLOTS, lexicon.OPEN_AIR)]
        )
        s["x"] = lexicon.thing(rng) if nouns is lexicon.THINGS and rng.random() < 0.3 else rng.choice(nouns)
        s["ax"] = an(s["x"])
        body, summary = rng.choice(table)
        topics = ["{ax}", "{ax}"]
        if table is not THING_PLOTS:
            topics.append("the {x}")
        if table is BUILT_PLOTS:
            topics.append("an old {x}")
        if "talk" in summary or table is NATURE_PLOTS and "it said" in " ".join(body):
            topics += ["{ax} that [can|could] [talk|speak]"] * 2
        if s["x"] in ("moon", "sun", "wind", "fog", "spring"):
            topics = [one.replace("{ax}", "the {x}") for one in topics]
        if rng.random() < 0.25:
            topics = ["{B} and the {x}", "{b} named {B} and {ax}", "{b} and {ax}"]
        begin, s["A"], s["he"], s["him"], s["his"], s["He"] = [], s["B"], s["Bhe"], s["Bhim"], s["Bhis"], s["BHe"]
    ends = END[:1] + END[4:] if begin else [END[2], END[3], END[6]]
    end = [rng.choice(ends)] if rng.random() < 0.45 else []
    text = made(rng, [*begin, *body, *end], s)
    said = made(rng, [summary], s)
    # Where the hero is not named first, the summary has to say who it is.
    is_known = begin or "{two}" in " ".join(topics)
    short = made(rng, [FIRST[0] if begin else "", summary if is_known else summary.replace("{B}", "{B}, {b},", 1), rng.choice(["The end.", ""])], s)
    return {"text": text, "short": short, "summary": said, "topics": [fill(rng, fill(rng, one, s), s) for one in topics]}


def themed(rng):
    """A story for a theme, or for a form: of any hero."""
    theme = rng.choice(list(THEMES))
    plot = rng.choice(THEMES[theme])
    s = slots(rng, rng.choice(lexicon.JOBS) if plot is at_work else None)
    _, body, summary = plot(rng, s)
    s["ax"] = an(s["x"])
    text = made(rng, [rng.choice(FIRST), *body, rng.choice(END)], s)
    said = made(rng, [summary], s)
    return {"text": text, "short": made(rng, [FIRST[0], said, ""], s), "summary": said, "topics": theme.split("|")}


def asked_for(rng, topic):
    """A request for a story about it."""
    if rng.random() < 0.3:
        adjective = rng.choice(ADJECTIVES)
        a = an(f"{adjective}story")
        form = f" {rng.choice(FORMS)}" if rng.random() < 0.12 else ""
        return rng.choice(
            [
                f"Tell me {a} about {topic}{form}.",
                f"Write {a} about {topic}{form}.",
                f"I want {a} about {topic}{form}.",
                f"Can you tell {a} about {topic}{form}?",
                f"{capital(a)} about {topic}{form}, please.",
            ]
        )
    return rng.choice(STORY_REQUESTS).format(t=topic)


def story(rng):
    """A story on request, often summed up after it."""
    r = rng.random()
    one = themed(rng) if r < 0.14 else tale(rng)
    if r < 0.02:
        request = f"{rng.choice(['Tell me a story', 'Write a story', 'I want a story', 'Make up a story', 'A story'])} {rng.choice(FORMS)}."
    elif r > 0.98:
        request = rng.choice(
            [
                "Tell me a story.",
                "Tell me a story",
                "Write a short story.",
                "A story, please.",
                "Can you tell me a story?",
                "I want to hear a story.",
                "Tell me another story.",
            ]
        )
    else:
        request = asked_for(rng, rng.choice(one["topics"]))
    if re.search("very short|tiny story|few sentences", request):
        return asked(request, one["short"])
    messages = asked(request, one["text"])
    if rng.random() < 0.2:
        messages += asked(rng.choice(TLDR_FOLLOW_UP), one["summary"])
    return messages


def passage(rng):
    """A story of the user, to be summed up or asked about."""
    one = tale(rng)
    return {
        "text": one["text"],
        "summaries": [one["summary"]],
        "questions": [(rng.choice(["What is this about?", "What is the story about?", "What happens in the story?"]), one["summary"])],
    }
