"""Simple questions and instructions, and their answers in a sentence."""

from .grammar import an, asked, assistant, capital, fill, listed, rows, user
from .words import any_name

# name | legs | where it lives | what it eats | its young | its sound | what covers it | size from 1 to 9 | group
ANIMALS = rows("""
dog | four | in houses with people | meat | puppy | bark | fur | 4 | pet
cat | four | in houses with people | mice and fish | kitten | meow | fur | 3 | pet
cow | four | on farms | grass | calf | moo | hair | 7 | farm
horse | four | on farms | grass and hay | foal | neigh | hair | 7 | farm
pig | four | on farms | almost everything | piglet | oink | hair | 5 | farm
sheep | four | on farms | grass | lamb | bleat | wool | 5 | farm
goat | four | on farms and mountains | grass and leaves | kid | bleat | hair | 5 | farm
hen | two | on farms | seeds and worms | chick | cluck | feathers | 3 | farm
duck | two | near ponds | plants and worms | duckling | quack | feathers | 3 | farm
goose | two | near lakes | grass | gosling | honk | feathers | 3 | farm
mouse | four | in holes and fields | seeds and cheese | pup | squeak | fur | 2 | small
rabbit | four | in burrows | grass and carrots | kit | squeak | fur | 3 | small
squirrel | four | in trees | nuts | kit | chatter | fur | 2 | forest
hedgehog | four | in gardens | insects and worms | hoglet | snuffle | spines | 2 | forest
fox | four | in the forest | mice and berries | cub | bark | fur | 4 | forest
wolf | four | in the forest | meat | pup | howl | fur | 5 | forest
bear | four | in the forest | fish, berries and honey | cub | growl | fur | 7 | forest
deer | four | in the forest | leaves and grass | fawn | bleat | hair | 6 | forest
owl | two | in trees | mice | owlet | hoot | feathers | 3 | forest
lion | four | in the grasslands of Africa | meat | cub | roar | fur | 7 | wild
tiger | four | in the jungle | meat | cub | roar | fur | 7 | wild
elephant | four | in Africa and Asia | leaves and grass | calf | trumpet | skin | 9 | wild
giraffe | four | in the grasslands of Africa | leaves of tall trees | calf | hum | hair | 8 | wild
zebra | four | in the grasslands of Africa | grass | foal | bray | hair with stripes | 7 | wild
monkey | four | in the jungle | fruit | infant | chatter | fur | 4 | wild
camel | four | in the desert | dry plants | calf | grunt | hair | 7 | wild
kangaroo | four | in Australia | grass | joey | cluck | fur | 6 | wild
penguin | two | where it is very cold | fish | chick | squawk | feathers | 4 | sea
whale | no | in the sea | tiny animals of the sea | calf | sing | skin | 9 | sea
dolphin | no | in the sea | fish | calf | whistle | skin | 6 | sea
shark | no | in the sea | fish | pup | make no sound | skin | 7 | sea
seal | no | in cold seas | fish | pup | bark | fur | 5 | sea
octopus | no | in the sea | crabs | larva | make no sound | soft skin | 4 | sea
crab | ten | at the beach | small animals and plants | larva | click | a shell | 2 | sea
fish | no | in water | plants and insects | fry | make no sound | scales | 2 | sea
turtle | four | near water | plants | hatchling | hiss | a shell | 3 | water
frog | four | near ponds | flies | tadpole | croak | smooth skin | 2 | water
snake | no | in warm places | mice and eggs | snakelet | hiss | scales | 4 | water
spider | eight | in its web | flies | spiderling | make no sound | fine hair | 1 | insect
ant | six | in the ground | leaves and crumbs | larva | make no sound | a hard skin | 1 | insect
bee | six | in a hive | nectar | larva | buzz | fine hair | 1 | insect
butterfly | six | in gardens | nectar | caterpillar | make no sound | scales | 1 | insect
fly | six | almost everywhere | sugar | maggot | buzz | fine hair | 1 | insect
parrot | two | in the jungle | fruit and nuts | chick | talk | feathers | 3 | bird
crow | two | in trees and towns | almost everything | chick | caw | feathers | 3 | bird
eagle | two | in the mountains | fish and rabbits | eaglet | screech | feathers | 4 | bird
sparrow | two | in gardens and towns | seeds | chick | chirp | feathers | 2 | bird
swan | two | on lakes | water plants | cygnet | hiss | white feathers | 5 | bird
worm | no | in the ground | dead leaves | wormlet | make no sound | soft skin | 1 | small
snail | no | in gardens | leaves | hatchling | make no sound | a shell | 1 | small
""")
GROUPS = {
    "sea": "[animals that live in the sea|sea animals|animals of the ocean|animals you find in the sea]",
    "farm": "[farm animals|animals that live on a farm|animals you can see on a farm]",
    "forest": "[animals that live in the forest|forest animals|animals of the woods]",
    "wild": "[wild animals|big wild animals|animals you can see in a zoo]",
    "insect": "[very small animals|tiny animals with many legs|little crawling or flying animals]",
    "bird": "[birds|animals with feathers|kinds of birds]",
    "water": "[animals that live in or near water|animals of ponds and warm places]",
    "pet": "[pets|animals that people keep at home]",
    "small": "[small animals|little animals]",
}
# thing | colour
COLOURS = rows("""
the sky | blue
grass | green
snow | white
coal | black
a lemon | yellow
a tomato | red
a carrot | orange
blood | red
milk | white
the sun | yellow
a frog | green
an orange | orange
a strawberry | red
the sea | blue
a ripe cherry | red
a plum | purple
an elephant | grey
chocolate | brown
a pumpkin | orange
a leaf in summer | green
the night sky | black
a fire engine | red
sand | yellow
a polar bear | white
a crow | black
an eggplant | purple
a cucumber | green
wood | brown
a pig | pink
a cloud on a sunny day | white
salt | white
a sunflower | yellow
a mouse | grey
peas | green
""")
OPPOSITES = rows("""
cold | warm
big | small
tall | short
fast | slow
day | night
light | dark
up | down
happy | sad
old | young
full | empty
good | bad
open | closed
early | late
wet | dry
loud | quiet
hard | soft
high | low
long | short
left | right
front | back
first | last
strong | weak
rich | poor
clean | dirty
heavy | light
thick | thin
near | far
inside | outside
win | lose
begin | end
push | pull
buy | sell
laugh | cry
love | hate
always | never
easy | difficult
cheap | expensive
brave | afraid
above | below
sweet | sour
summer | winter
wide | narrow
awake | asleep
new | old
sharp | blunt
rough | smooth
deep | shallow
""")
CAPITALS = rows("""
Germany | Berlin
Italy | Rome
Spain | Madrid
England | London
Portugal | Lisbon
Austria | Vienna
Poland | Warsaw
Greece | Athens
Norway | Oslo
Sweden | Stockholm
Denmark | Copenhagen
Finland | Helsinki
Ireland | Dublin
Japan | Tokyo
China | Beijing
Russia | Moscow
Egypt | Cairo
Canada | Ottawa
the United States | Washington
Mexico | Mexico City
Switzerland | Bern
Turkey | Ankara
Hungary | Budapest
the Netherlands | Amsterdam
Belgium | Brussels
India | New Delhi
Cuba | Havana
Peru | Lima
Kenya | Nairobi
France | Paris
""")
# thing | what it is for | where it is | a word of its kind
USES = rows("""
an umbrella | staying dry in the rain | in the hall | thing
a knife | cutting food | in the kitchen | tool
a spoon | eating soup | in the kitchen | tool
a pen | writing | on a desk | tool
a bed | sleeping | in the bedroom | piece of furniture
a chair | sitting | at the table | piece of furniture
a lamp | making light | in a room | thing
a clock | telling the time | on the wall | thing
a broom | sweeping the floor | in the kitchen | tool
a hammer | driving nails into wood | in a toolbox | tool
a saw | cutting wood | in a toolbox | tool
a key | opening a door | in a pocket | thing
soap | washing hands | in the bathroom | thing
a towel | drying off | in the bathroom | thing
a toothbrush | cleaning teeth | in the bathroom | tool
a pot | cooking soup | in the kitchen | thing
a stove | cooking | in the kitchen | machine
a fridge | keeping food cold | in the kitchen | machine
a car | driving on roads | in a garage | vehicle
a boat | travelling on water | in a harbour | vehicle
a plane | flying | at the airport | vehicle
a train | travelling on rails | at the station | vehicle
a bicycle | riding | in a shed | vehicle
a phone | talking to people far away | in a pocket | machine
a book | reading | on a shelf | thing
a window | letting in light | in a wall | part of a house
a door | going in and out | in a wall | part of a house
a roof | keeping out the rain | on top of a house | part of a house
a coat | keeping warm | in the closet | piece of clothing
a hat | keeping the head warm | on a head | piece of clothing
gloves | keeping the hands warm | in a drawer | piece of clothing
shoes | walking | at the door | piece of clothing
glasses | seeing better | on a nose | thing
scissors | cutting paper | in a drawer | tool
a needle | sewing | in a sewing box | tool
a ladder | climbing up | in a shed | tool
a bag | carrying things | in the hall | thing
a cup | drinking tea | in the kitchen | thing
a plate | putting food on | in the kitchen | thing
a blanket | keeping warm in bed | in the bedroom | thing
a drum | making music | in a music room | instrument
a piano | making music | in a living room | instrument
a map | finding the way | in a bag | thing
a candle | making light | on a table | thing
a bucket | carrying water | in a shed | thing
a net | catching fish | in a boat | tool
a tent | sleeping outside | at a campsite | thing
a kite | playing in the wind | in the sky | toy
a ball | playing | in the garden | toy
a ruler | measuring | in a school bag | tool
""")
PLURALS = rows("""
cat | cats
mouse | mice
child | children
foot | feet
tooth | teeth
man | men
woman | women
box | boxes
leaf | leaves
wolf | wolves
knife | knives
baby | babies
city | cities
bus | buses
fish | fish
sheep | sheep
goose | geese
tree | trees
story | stories
potato | potatoes
glass | glasses
book | books
""")
# now | in the past
VERBS = rows("""
goes | went
runs | ran
eats | ate
sees | saw
plays | played
sings | sang
writes | wrote
drinks | drank
sleeps | slept
swims | swam
looks | looked
laughs | laughed
cooks | cooked
helps | helped
jumps | jumped
dances | danced
sits | sat
stands | stood
waits | waited
works | worked
""")
AFTER_VERB = {
    "goes": "to the park|home|to the market",
    "runs": "to the lake|down the hill|home",
    "eats": "an apple|soup|a sandwich",
    "sees": "a bird|a red boat|the moon",
    "plays": "in the garden|with a ball|chess",
    "sings": "a song|in the kitchen",
    "writes": "a letter|in a book",
    "drinks": "milk|tea|a glass of water",
    "sleeps": "in a tent|under a tree",
    "swims": "in the river|in the sea",
    "looks": "at the stars|out of the window",
    "laughs": "about the joke|all day",
    "cooks": "dinner|rice",
    "helps": "a friend|in the shop",
    "jumps": "over the fence|into the water",
    "dances": "in the rain|with a friend",
    "sits": "on a bench|by the fire",
    "stands": "at the door|on a chair",
    "waits": "for the bus|at the gate",
    "works": "in a bakery|on a farm",
}
FRUIT = rows("""
apple | red, green or yellow
pear | green
cherry | red
strawberry | red
plum | purple
orange | orange
lemon | yellow
lime | green
grape | green or purple
blueberry | blue
raspberry | red
peach | orange
melon | green
kiwi | brown
pineapple | yellow
mango | orange
""")
LISTS = {
    "[vegetables|kinds of vegetables]": "carrots potatoes onions peas beans cabbage spinach cucumbers pumpkins tomatoes beets",
    "[colours|colors|different colours]": "red blue green yellow orange purple pink brown black white grey",
    "[things to wear|pieces of clothing|clothes]": "shirts trousers socks shoes hats coats scarves gloves dresses sweaters",
    "[things in a school|things you find in a classroom|things you can see at school]": "desks chairs books pens maps chalk boards pencils rulers",
    "[things in a bathroom|things you can find in a bathroom]": "soap towels toothbrushes mirrors combs bathtubs",
    "[things in a garden|things you can find in a garden]": "flowers trees grass benches worms bushes sheds",
    "[things people use to cook|tools that cooks use]": "pots pans spoons knives stoves ovens bowls",
    "[drinks|things to drink]": "water milk tea juice coffee lemonade cocoa",
    "[toys|things to play with]": "balls dolls kites blocks puzzles trains robots drums",
    "[musical instruments|instruments]": "drums flutes violins pianos guitars trumpets harps",
    "[ways to travel|things you can ride in|vehicles]": "cars trains buses boats planes bicycles ships trams",
    "[kinds of weather|words for the weather]": "rain snow wind sun fog storms hail clouds",
    "[parts of the body|body parts]": "arms legs hands feet eyes ears knees fingers toes",
    "[jobs|jobs that people have]": "teachers doctors bakers farmers nurses drivers cooks painters pilots",
    "[sports|games and sports]": "football tennis swimming running skating chess hockey",
    "[rooms of a house|rooms]": "kitchens bedrooms bathrooms cellars attics halls",
    "[trees|kinds of trees]": "oaks pines birches willows maples palms elms",
    "[flowers|kinds of flowers]": "roses tulips daisies lilies violets poppies sunflowers",
}
# question | answer
WHY = rows("""
Why do we eat? | We eat because food gives us strength.
Why do we drink water? | We drink water because our bodies need it.
Why do birds have wings? | Birds have wings so that they can fly.
Why do we wear coats in winter? | We wear coats in winter because it is cold.
Why does ice melt? | Ice melts because it gets warm.
Why do we brush our teeth? | We brush our teeth to keep them clean and healthy.
Why do leaves fall? | Leaves fall because it is autumn and the tree rests in winter.
Why do children go to school? | Children go to school to learn.
Why do we have clocks? | We have clocks so that we know what time it is.
Why do plants need sun? | Plants need sun because they make their food with light.
Why is it dark at night? | It is dark at night because the sun is on the other side of the earth.
Why do dogs bark? | Dogs bark to warn others or to say hello.
Why do cats purr? | Cats purr when they feel safe and happy.
Why do we laugh? | We laugh because something is funny or makes us happy.
Why do people cry? | People cry when they are sad, or sometimes when they are very happy.
Why do we wash our hands? | We wash our hands so that we do not get sick.
Why do ships float? | Ships float because they are lighter than the water that they push away.
Why do people work? | People work to earn money and to help others.
Why do bees fly to flowers? | Bees fly to flowers to get nectar.
Why do we need rain? | We need rain so that plants can grow.
Why do people say sorry? | People say sorry to make things good again.
Why do bears sleep in winter? | Bears sleep in winter because there is little food.
Why do we wear shoes? | We wear shoes to protect our feet.
Why do people read books? | People read books to learn things and to enjoy stories.
Why do we rest? | We rest because we are tired and need new strength.
What gives us light during the day? | The sun gives us light during the day.
What do plants need? | Plants need water, light and air.
What do hens lay? | Hens lay eggs.
What do spiders make? | Spiders make webs.
What do birds build? | Birds build nests.
What do cows give us? | Cows give us milk.
What do sheep give us? | Sheep give us wool.
What falls from clouds? | Rain falls from clouds, and snow when it is cold.
What do we call baked dough with fruit in it? | We call it a pie.
What do we call the meal in the morning? | We call it breakfast.
What do we call the meal in the evening? | We call it dinner.
What do we call a house for cars? | We call it a garage.
What do we call a person who bakes bread? | We call that person a baker.
What do we call a person who teaches? | We call that person a teacher.
What do we call a person who helps sick people? | We call that person a doctor.
What do we call a person who puts out fires? | We call that person a firefighter.
What do we call water that falls from the sky? | We call it rain.
What do we call very hot water in the air? | We call it steam.
What is snow? | Snow is frozen water that falls from clouds.
What is a river? | A river is water that flows through the land to the sea.
What is ice? | Ice is frozen water.
What does a bee make from nectar? | A bee makes honey from nectar.
Why do we sleep at night? | We sleep at night because our bodies need rest.
What is an island? | An island is land with water all around it.
What is a forest? | A forest is a place with many trees.
What is a friend? | A friend is someone who likes you and helps you.
What is a library? | A library is a place where you can read and borrow books.
What is bread made of? | Bread is made of flour, water and salt.
What is cheese made of? | Cheese is made of milk.
What is paper made of? | Paper is made of wood.
What is glass made of? | Glass is made of sand.
What is a wheel? | A wheel is a round thing that turns.
What is a desert? | A desert is a dry place with little rain.
Who brings letters? | The mail carrier brings letters.
Who works on a farm? | A farmer works on a farm.
Who flies a plane? | A pilot flies a plane.
Where does the sun rise? | The sun rises in the east.
Where do you buy bread? | You can buy bread at a bakery.
Where can you see many animals? | You can see many animals in a zoo.
Where do children learn? | Children learn at school.
Where do ships go? | Ships go to the harbour.
When do the leaves fall? | The leaves fall in autumn.
When is it cold? | It is cold in winter.
When do people sleep? | People sleep at night.
How many wheels does a car have? | A car has four wheels.
How many wheels does a bicycle have? | A bicycle has two wheels.
How many days are in a week? | A week has seven days.
How many months are in a year? | A year has twelve months.
How many hours are in a day? | A day has twenty-four hours.
How many minutes are in an hour? | An hour has sixty minutes.
How many fingers does a hand have? | A hand has five fingers.
How many eyes do you have? | I have no eyes, but people have two.
How many sides does a triangle have? | A triangle has three sides.
How many seasons are there? | There are four seasons: spring, summer, autumn and winter.
""")
YES_NO = rows("""
Can a bird fly? | Yes, most birds can fly.
Can a fish fly? | No, a fish swims.
Can a horse run? | Yes, a horse can run fast.
Can a house walk? | No, a house cannot walk.
Can a tree sing? | No, a tree cannot sing.
Can a chair talk? | No, a chair cannot talk.
Can a rock eat? | No, a rock cannot eat.
Can a duck swim? | Yes, a duck can swim.
Can a baby drive a car? | No, a baby is too small to drive a car.
Can a penguin fly? | No, a penguin cannot fly, but it swims well.
Can a table sleep? | No, a table cannot sleep.
Can people breathe under water? | No, people cannot breathe under water.
Can a spoon dance? | No, a spoon cannot dance.
Can ice be hot? | No, ice is cold.
Is fire cold? | No, fire is hot.
Is sugar sweet? | Yes, sugar is sweet.
Is a lemon sour? | Yes, a lemon is sour.
Is the moon made of cheese? | No, the moon is made of rock.
Is water wet? | Yes, water is wet.
Is a feather heavy? | No, a feather is light.
Is a stone soft? | No, a stone is hard.
Is it dark at night? | Yes, it is dark at night.
Do fish live in trees? | No, fish live in water.
Do cows lay eggs? | No, cows do not lay eggs.
Do cats like milk? | Yes, many cats like milk.
Do birds have feathers? | Yes, birds have feathers.
Do snakes have legs? | No, snakes have no legs.
Does the sun shine at night? | No, the sun does not shine at night.
Is a car faster than a bicycle? | Yes, a car is faster than a bicycle.
Is one more than two? | No, one is less than two.
""")
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
SEASONS = "spring summer autumn winter".split()
NUMBERS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty").split()
RHYMES = [
    group.split()
    for group in (
        "hat bat mat rat sat flat",
        "dog fog log frog",
        "tree bee sea knee free me",
        "house mouse blouse",
        "moon spoon soon noon",
        "cake lake snake make shake",
        "light night bright kite white",
        "ring sing king spring wing",
        "boat coat goat note",
        "ball tall wall small fall",
        "day play way say stay",
        "bed red head bread",
        "star car far jar",
        "rain train plane chain",
        "cook book look hook",
        "blue shoe true two new",
        "fox box rocks socks",
        "sun run fun one",
        "bell well shell tell",
        "hen pen ten men",
        "ship trip lip",
        "snow go low toe",
        "bear chair hair pear",
        "nose rose toes",
        "wig pig big dig",
        "fish dish wish",
        "sand hand land band",
    )
]
SENTENCES = {
    "the moon": "The moon shines [softly at night|over the quiet town|above the trees].",
    "a tree": "The [old|tall|green] tree [gives shade in summer|moves in the wind|is full of birds].",
    "a dog": "The dog [runs after the ball|sleeps by the fire|wags its tail when we come home].",
    "a cat": "The cat [sits on the warm wall|watches a bird|sleeps in the sun].",
    "the sea": "The sea is [wide and blue|loud when the wind blows|full of fish].",
    "winter": "In winter [snow covers the fields|the lake is frozen|the days are short].",
    "summer": "In summer [we swim in the lake|the days are long and warm|the garden is full of flowers].",
    "a friend": "A friend [helps you when you are sad|shares with you|laughs with you].",
    "the rain": "The rain [falls on the roof|makes the garden green|taps on the window].",
    "a house": "The [little|old|white] house [stands on a hill|has a red door|is full of light].",
    "bread": "[Fresh|Warm] bread [smells good|tastes best in the morning|is on the table].",
    "a bird": "A [small|blue|little] bird [sings in the morning|builds a nest|flies over the field].",
    "school": "At school [we learn to read|the children learn and play|the bell rings at eight].",
    "a train": "The train [leaves the station at noon|runs along the river|is full of people].",
    "the wind": "The wind [blows the leaves away|moves the clouds|sings in the chimney].",
    "a flower": "The [red|yellow|little] flower [opens in the sun|grows by the wall|smells sweet].",
    "a river": "The river [flows to the sea|is cold and clear|winds through the valley].",
    "the night": "The night is [dark and quiet|full of stars|cold but clear].",
    "an apple": "The [red|green] apple [falls from the tree|tastes sweet|lies in the basket].",
    "a boat": "A [small|white] boat [floats on the lake|comes home in the evening|rocks on the waves].",
    "snow": "Snow [falls on the roofs|lies on the fields|makes everything white].",
    "my grandmother": "My grandmother [tells the best stories|bakes bread on Sundays|has a big garden].",
    "a horse": "The [brown|black] horse [runs over the field|eats hay in the barn|carries the girl home].",
    "the city": "The city is [loud and full of people|bright at night|big and busy].",
    "the stars": "The stars [shine over the dark fields|can be seen on clear nights|look like little lamps].",
    "a cloud": "A [white|dark|small] cloud [hides the moon|brings rain|moves slowly over the town].",
    "a mountain": "The mountain is [high and covered with snow|hard to climb|grey and silent].",
    "a lake": "The lake is [calm in the morning|frozen in winter|full of little boats].",
    "a garden": "In the garden [there are roses and beans|the children dig for worms|it smells of mint].",
    "the forest": "The forest is [dark and cool|full of birds|quiet after the snow].",
    "spring": "In spring [the snow melts|the first flowers open|the birds come back].",
    "autumn": "In autumn [the leaves turn red|the apples are ripe|the wind grows colder].",
    "a book": "A good book [makes you forget the time|takes you to other countries|lies next to my bed].",
    "a bicycle": "A bicycle has [two wheels and a bell|a light for the night], and it [needs no petrol|is fast in the city].",
    "a market": "At the market [people buy fruit and bread|it is loud and colourful|a man sells honey].",
    "a teacher": "A teacher [explains things|helps children to learn|writes on the board].",
    "a baby": "The baby [sleeps in its cradle|laughs at the cat|cries when it is hungry].",
    "fire": "Fire [is hot and bright|keeps us warm|can burn down a house].",
    "ice": "Ice is [cold and smooth|water that has frozen|thin at the edge of the lake].",
    "a storm": "The storm [bends the trees|shakes the windows|came over the sea at night].",
    "fog": "The fog [hides the houses|lies over the river|is thick this morning].",
    "an island": "The island [is far from the shore|has a white beach|can be reached by boat].",
    "a bridge": "The bridge [leads over the river|is made of stone|is old but strong].",
    "a clock": "The clock [ticks on the wall|is five minutes slow|strikes twelve].",
    "a letter": "The letter [came from far away|lies unopened on the table|made her smile].",
    "a birthday": "On a birthday [there is a cake with candles|friends come to visit|one gets a year older].",
    "breakfast": "For breakfast [we have bread and jam|I drink a cup of tea|she eats an egg].",
    "soup": "Hot soup [is good on a cold day|steams on the stove|needs salt].",
    "a dream": "In my dream [I could fly over the town|a fish talked to me|it snowed in summer].",
    "a king": "The king [lives in a castle|wears a heavy crown|cannot sleep].",
    "the weather": "The weather is [fine today|changing all the time|too cold for a picnic].",
    "a street": "The street is [narrow and quiet|full of puddles|named after a poet].",
    "a key": "The key [hangs next to the door|opens an old chest|is lost].",
    "music": "Music [makes people happy|fills the house|is best with friends].",
}
WORD_SENTENCES = {
    "red": "The red [ball|kite|car] is mine.",
    "green": "The green [door|boat|hat] is new.",
    "yellow": "A yellow [flower|bird|leaf] is in the garden.",
    "happy": "[Ben|Mia|The girl] is happy today.",
    "slow": "The [snail|turtle|old bus] is slow.",
    "garden": "We [play|sit|eat] in the garden.",
    "window": "The cat looks out of the window.",
    "bread": "[Grandpa|The baker] bakes bread.",
    "river": "The river is [cold|deep|wide].",
    "quick": "The quick fox ran away.",
    "song": "She sings a [happy|sad|quiet] song.",
    "winter": "It snows in winter.",
    "friend": "My friend has a [kite|dog|boat].",
    "small": "A small [mouse|bird|boat] came by.",
    "dark": "It is dark outside.",
    "apple": "I eat an apple.",
    "music": "We hear music.",
    "cloud": "A cloud is in the sky.",
    "run": "The children run to the lake.",
    "warm": "The soup is warm.",
    "street": "The street is quiet.",
    "water": "The water is clear.",
    "tree": "A bird sits in the tree.",
}
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
BLUNT = ["", "", " Answer in one sentence.", " Please answer in one sentence.", " Be brief."]


def animal(rng):
    name, legs, home, food, young, sound, cover, size, group = rng.choice(ANIMALS)
    if group == "insect" and rng.random() < 0.3:
        return asked(f"Is {an(name)} an insect?", "No, a spider is no insect: it has eight legs." if name == "spider" else f"Yes, {an(name)} is an insect.")
    slots = {
        "a": an(name),
        "A": capital(an(name)),
        "n": name,
        "s": plural(name),
        "S": capital(plural(name)),
        "legs": legs,
        "home": home,
        "food": food,
        "young": an(young),
        "sound": sound,
        "cover": cover,
    }
    leg_word = "legs"
    question, answer = rng.choice(
        [
            ("[How many legs does {a} have?|How many legs do {s} have?|Tell me how many legs {a} has.]", f"{{A}} has {{legs}} {leg_word}."),
            ("[Where does {a} live?|Where do {s} live?|Where can I find {a}?]", "{A} lives {home}."),
            ("[What does {a} eat?|What do {s} eat?|What is the food of {a}?|What should I give {a} to eat?]", "{A} eats {food}."),
            (
                "[What is a baby {n} called?|What do we call a young {n}?|What is the name for a baby {n}?|What is the young of {a} called?]",
                "A [young|baby] {n} is called {young}.",
            ),
            ("[What sound does {a} make?|What noise do {s} make?|What do {s} do when they make a sound?]", "{S} {sound}."),
            ("[What covers {a}?|What does the body of {a} have on it?|What covers the body of {a}?]", "{A} has {cover}."),
            (
                "[Tell me something about {s}.|Write a sentence about {a}.|Tell me a fact about {s}.|What do you know about {s}?|Describe {a} in one sentence.]",
                "[{A} lives {home} and eats {food}.|{A} has {legs} legs and lives {home}.|{S} live {home} and eat {food}.]",
            ),
        ]
    )
    # `fill` chooses before it knows the slots, so both are filled in one go.
    return asked(fill(rng, question, slots), fill(rng, answer, slots))


def plural(word):
    irregular = {
        "mouse": "mice",
        "wolf": "wolves",
        "sheep": "sheep",
        "deer": "deer",
        "fish": "fish",
        "goose": "geese",
        "fox": "foxes",
        "octopus": "octopuses",
        "butterfly": "butterflies",
        "fly": "flies",
        "calf": "calves",
    }
    return irregular.get(word, word + "s")


def compare(rng):
    one, other = rng.sample(ANIMALS, 2)
    while one[7] == other[7]:
        one, other = rng.sample(ANIMALS, 2)
    bigger = int(one[7]) > int(other[7])
    a, b = an(one[0]), an(other[0])
    big, small = (a, b) if bigger else (b, a)
    kind = rng.randrange(4)
    if kind == 0:
        return asked(f"Is {a} bigger than {b}?", f"{'Yes' if bigger else 'No'}, {big} is bigger than {small}.")
    if kind == 1:
        return asked(f"Is {a} smaller than {b}?", f"{'No' if bigger else 'Yes'}, {small} is smaller than {big}.")
    if kind == 2:
        return asked(fill(rng, f"[Which is bigger, {a} or {b}?|What is bigger: {a} or {b}?]"), capital(f"{big} is bigger than {small}."))
    return asked(fill(rng, f"[Which is smaller, {a} or {b}?|What is smaller: {a} or {b}?]"), capital(f"{small} is smaller than {big}."))


def order(rng):
    """Animals by their size."""
    by_size = {}
    for row in rng.sample(ANIMALS, len(ANIMALS)):
        by_size.setdefault(int(row[7]), row[0])
    sizes = sorted(rng.sample(sorted(by_size), 3))
    if rng.random() < 0.4:
        sizes[rng.randrange(3)] = 10
        by_size[10] = rng.choice(["house", "mountain", "ship", "castle", "tower", "bus"])
        sizes.sort()
    names = [by_size[size] for size in sizes]
    mixed = rng.sample(names, 3)
    text = ", ".join(mixed)
    if rng.random() < 0.7:
        return asked(
            fill(
                rng,
                f"[Put these in order of size: {text}|Order these words by size, the smallest first: {text}|Sort from small to big: {text}|Put these words in order, from small to large: {text}]",
            ),
            capital(", ".join(names)) + ".",
        )
    return asked(fill(rng, f"[Which of these is the biggest: {text}?|Which one is the largest: {text}?]"), f"The {names[-1]} is the biggest.")


def colour(rng):
    thing, value = rng.choice(COLOURS)
    spelling = rng.choice(["colour", "color"])
    if rng.random() < 0.25:
        wrong = rng.choice([other for _, other in COLOURS if other != value])
        claimed = rng.choice([value, wrong])
        return asked(f"Is {thing} {claimed}?", f"Yes, {thing} is {value}." if claimed == value else f"No, {thing} is {value}.")
    if rng.random() < 0.25:
        others = sorted({t for t, v in COLOURS if v == value})
        return asked(
            fill(rng, f"[Name something that is {value}.|What is {value}?|Tell me a thing that is {value}.|Give me something {value}.]"),
            capital(f"{rng.choice(others)} is {value}."),
        )
    verb = "are" if thing == "peas" else "is"
    question = rng.choice(
        [
            f"What {spelling} {verb} {thing}?",
            f"Which {spelling} does {thing} have?",
            f"Tell me the {spelling} of {thing}.",
            f"What is the {spelling} of {thing}?",
        ]
    )
    return asked(question, capital(f"{thing} {verb} {value}."))


def opposite(rng):
    pair = list(rng.choice(OPPOSITES))
    if rng.random() < 0.4:
        pair.reverse()
    question = rng.choice(
        [
            "What is the opposite of {}?",
            "Give me the opposite of {}.",
            "Tell me the opposite of {}",
            "What is the opposite word of {}?",
            "opposite of {}",
            "Name the opposite of the word {}.",
        ]
    )
    return asked(question.format(pair[0]), rng.choice([f"The opposite of {pair[0]} is {pair[1]}.", f"{capital(pair[1])}."]))


def capital_of(rng):
    country, city = rng.choice(CAPITALS)
    if rng.random() < 0.3:
        return asked(
            rng.choice([f"In which country is {city}?", f"Where is {city}?", f"What country is {city} in?", f"{city} is the capital of which country?"]),
            f"{city} is in {country}.",
        )
    return asked(
        rng.choice(
            [
                f"What is the capital of {country}?",
                f"What is the capital city of {country}?",
                f"Tell me the capital of {country}.",
                f"Which city is the capital of {country}?",
                f"Name the capital of {country}.",
            ]
        ),
        f"The capital of {country} is {city}.",
    )


def use(rng):
    thing, purpose, place, kind = rng.choice(USES)
    are = thing in ("gloves", "shoes", "glasses", "scissors")
    question = rng.choice(
        [
            f"What {'are' if are else 'is'} {thing} for?",
            f"What do you use {thing} for?",
            f"What can I do with {thing}?",
            f"What do people do with {thing}?",
            f"Why do we need {thing}?",
        ]
    )
    if rng.random() < 0.2:
        return asked(
            rng.choice([f"Where do you find {thing}?", f"Where is {thing} kept?", f"Where would you look for {thing}?"]), f"You can find {thing} {place}."
        )
    if rng.random() < 0.2:
        return asked(rng.choice([f"What do you need for {purpose}?", f"Name a {kind} for {purpose}."]), f"You need {thing} for {purpose}.")
    return asked(question, rng.choice([f"{capital(thing)} {'are' if are else 'is'} for {purpose}.", f"You use {thing} for {purpose}."]))


def calendar(rng):
    kind = rng.randrange(6)
    table, name = rng.choice([(DAYS, "day"), (DAYS, "day"), (MONTHS, "month"), (MONTHS, "month"), (SEASONS, "season")])
    n = rng.randrange(len(table))
    value, after, before = table[n], table[(n + 1) % len(table)], table[n - 1]
    if kind < 2:
        return asked(
            rng.choice(
                [f"Which {name} comes after {value}?", f"What {name} comes after {value}?", f"What {name} follows {value}?", f"What comes after {value}?"]
            ),
            capital(f"{after} comes after {value}."),
        )
    if kind < 4:
        return asked(
            rng.choice([f"Which {name} comes before {value}?", f"What {name} is before {value}?", f"What comes before {value}?"]),
            capital(f"{before} comes before {value}."),
        )
    if name == "season":
        return asked(
            rng.choice([f"What is {value} like?", f"Tell me about {value}."]),
            {
                "spring": "In spring it gets warmer and flowers grow.",
                "summer": "Summer is warm and the days are long.",
                "autumn": "In autumn the leaves turn red and fall.",
                "winter": "Winter is cold and it often snows.",
            }[value],
        )
    if kind == 4:
        return asked(
            rng.choice(
                [
                    f"What is the {ORDINALS[n]} {name} of the {'week' if name == 'day' else 'year'}?",
                    f"Which {name} is the {ORDINALS[n]} of the {'week' if name == 'day' else 'year'}?",
                ]
            ),
            f"The {ORDINALS[n]} {name} is {value}.",
        )
    return asked(
        rng.choice([f"Name the {'days of the week' if name == 'day' else 'months of the year'}.", f"List the {'days' if name == 'day' else 'months'}."]),
        f"The {name}s are {listed(table)}.",
    )


def sums(rng):
    a, b = rng.randrange(0, 11), rng.randrange(0, 10)
    words = rng.random() < 0.4
    show = (lambda n: NUMBERS[n]) if words else str
    kind = rng.randrange(5)
    if kind == 0 and a >= b:
        return asked(
            rng.choice([f"What is {show(a)} minus {show(b)}?", f"How much is {a} - {b}?", f"Take {show(b)} away from {show(a)}."]),
            f"{capital(show(a))} minus {show(b)} is {show(a - b)}.",
        )
    if kind == 1:
        return asked(
            rng.choice([f"Which number is bigger, {show(a)} or {show(b)}?", f"What is more, {show(a)} or {show(b)}?"]),
            f"{capital(show(max(a, b)))} is bigger than {show(min(a, b))}." if a != b else "They are the same.",
        )
    if kind == 2:
        return asked(
            rng.choice([f"What number comes after {show(a)}?", f"What comes after {show(a)} when you count?"]), f"{capital(show(a + 1))} comes after {show(a)}."
        )
    if kind == 3:
        first, last = sorted(rng.sample(range(1, 13), 2))
        down = rng.random() < 0.25
        counted = [show(n) for n in range(first, last + 1)]
        begin, end = show(first), show(last)
        if down:
            counted, begin, end = counted[::-1], end, begin
        return asked(
            rng.choice([f"Count from {begin} to {end}.", f"Please count from {begin} to {end}.", f"Can you count from {begin} to {end}?"]),
            capital(", ".join(counted)) + ".",
        )
    question = rng.choice(
        [
            f"What is {show(a)} plus {show(b)}?",
            f"What is {a} + {b}?",
            f"How much is {show(a)} and {show(b)}?",
            f"Add {show(a)} and {show(b)}.",
            f"How much is {a} plus {b}?",
        ]
    )
    return asked(question, rng.choice([f"{capital(show(a))} plus {show(b)} is {show(a + b)}.", f"{capital(show(a + b))}."]))


def rhyme(rng):
    word, *others = rng.sample(rng.choice(RHYMES), 3)
    if rng.random() < 0.25:
        return asked(
            rng.choice([f"Give me two words that rhyme with {word}.", f"Name two words that rhyme with {word}."]),
            f"{capital(others[0])} and {others[1]} rhyme with {word}.",
        )
    return asked(
        rng.choice(
            [
                f"What rhymes with {word}?",
                f"Give me a word that rhymes with {word}.",
                f"Tell me a rhyme for {word}.",
                f"Find a word that rhymes with {word}.",
                f"Name a word that sounds like {word}.",
            ]
        ),
        rng.choice([f"{capital(others[0])} rhymes with {word}.", f"{capital(others[0])}."]),
    )


def naming(rng):
    """Lists of so many things of a kind."""
    count = rng.choice([1, 2, 3, 3, 3, 4, 5])
    if rng.random() < 0.45:
        group = rng.choice([name for name in GROUPS])
        members = [plural(row[0]) for row in ANIMALS if row[8] == group]
        of = GROUPS[group]
    else:
        of = rng.choice(list(LISTS))
        members = LISTS[of].split()
    count = min(count, len(members))
    words = rng.sample(members, count)
    number = rng.choice([NUMBERS[count], str(count)])
    of = fill(rng, of)
    if count == 1:
        return asked(rng.choice([f"Name one of these: {of}.", f"Give me an example of {of}."]), f"{capital(words[0])}.")
    question = rng.choice(
        ["Name {} {}.", "List {} {}.", "Tell me {} {}.", "Give me {} {}.", "Can you name {} {}?", "Please list {} {}.", "What are {} {}?", "Write down {} {}."]
    ).format(number, of)
    if rng.random() < 0.15:
        question += rng.choice([" Write a list.", " Make a list.", " Use a list with dashes."])
        return asked(question, "\n".join(f"- {capital(word)}" for word in words))
    return asked(question, capital(listed(words)) + ".")


def fruit(rng):
    name, colours = rng.choice(FRUIT)
    chosen = rng.choice(colours.replace(" or ", ", ").split(", "))
    if rng.random() < 0.5:
        return asked(
            rng.choice(
                [f"Name a {chosen} fruit.", f"Which fruit is {chosen}?", f"Tell me a fruit that is {chosen}.", f"Give me the name of a {chosen} fruit."]
            ),
            rng.choice([f"{capital(an(name))} is {chosen}.", f"{capital(name)}."]),
        )
    return asked(rng.choice([f"What colour is {an(name)}?", f"What color is {an(name)}?"]), f"{capital(an(name))} is {colours}.")


def forms(rng):
    """Other forms of words and sentences."""
    kind = rng.randrange(4)
    if kind == 0:
        one, many = rng.choice(PLURALS)
        return asked(
            rng.choice([f"What is the plural of {one}?", f"One {one}, two ...?", f"How do you say more than one {one}?"]),
            rng.choice([f"The plural of {one} is {many}.", f"{capital(many)}."]),
        )
    now, past = rng.choice(VERBS)
    who, rest = any_name(rng, rng.random() < 0.5, 0.2), rng.choice(AFTER_VERB[now].split("|"))
    today, before = f"{who} {now} {rest}.", f"{who} {past} {rest}."
    if kind == 1:
        return asked(
            rng.choice(
                [
                    f"Put this sentence into the past: {today}",
                    f"Say this in the past tense: {today}",
                    f"Change this sentence to the past: {today}",
                    f"Make this sentence about yesterday: {today}",
                    f"Write this in the past: {today}",
                ]
            ),
            before,
        )
    if kind == 2:
        return asked(rng.choice([f"Put this sentence into the present: {before}", f"Say this as if it happens now: {before}"]), today)
    return asked(
        rng.choice([f"Who {past} {rest}? {before}", f"{before} Who was it?", f"Who is this sentence about? {today}"]), rng.choice([f"{who}.", f"It is {who}."])
    )


def repeat(rng):
    words = " ".join(rng.sample(WORDS, rng.choice([1, 1, 1, 2, 3])))
    kind = rng.randrange(6)
    if kind == 0:
        return asked(f"Write this in capital letters: {words}", words.upper())
    if kind == 1 and " " not in words:
        return asked(rng.choice([f"Spell the word {words}.", f"How do you spell {words}?"]), "-".join(words.upper()))
    if kind == 2:
        return asked(
            rng.choice([f"What is the first letter of {words}?", f"With which letter does {words} begin?"]), f"The first letter is {words[0].upper()}."
        )
    if kind == 3:
        return asked(rng.choice([f"Say this twice: {words}", f"Write this two times: {words}"]), f"{words} {words}")
    name = "word" if " " not in words else "sentence"
    return asked(
        rng.choice(
            [
                f"Repeat this: {words}",
                f"Say this: {words}",
                f"Repeat after me: {words}",
                f"Write this {name}: {words}",
                f"Please repeat: {words}",
                f'Say "{words}".',
                f"Copy this: {words}",
            ]
        ),
        words,
    )


WORDS = sorted(
    {word for row in OPPOSITES for word in row}
    | {t.split()[-1] for t, *_ in USES}
    | {row[0] for row in ANIMALS if row[0]}
    | set(LISTS["[toys|things to play with]"].split())
)


def sentence(rng):
    if rng.random() < 0.3:
        word = rng.choice(list(WORD_SENTENCES))
        return asked(
            rng.choice(
                [
                    f"Use the word {word} in a sentence.",
                    f"Write a sentence that has the word {word}.",
                    f"Make a sentence with {word}.",
                    f"Say something with the word {word} in it.",
                ]
            ),
            fill(rng, WORD_SENTENCES[word]),
        )
    about = rng.choice(list(SENTENCES))
    count = rng.choice([1, 1, 1, 1, 2, 3])
    said = []
    while len(said) < count:
        one = fill(rng, SENTENCES[about])
        if one not in said:
            said.append(one)
    if count > 1:
        number = NUMBERS[count]
        return asked(rng.choice([f"Write {number} sentences about {about}.", f"Tell me {number} sentences about {about}."]), " ".join(said))
    return asked(
        rng.choice(
            [
                f"Write a sentence about {about}.",
                f"Write one sentence about {about}.",
                f"Say something about {about}.",
                f"Give me one sentence about {about}.",
                f"Tell me one thing about {about}.",
            ]
        ),
        said[0],
    )


def greeting(rng):
    name = any_name(rng, rng.random() < 0.5, 0.3)
    return asked(
        *rng.choice(
            [
                (f"Greet {name}.", f"Hello, {name}!"),
                (f"Say hi to {name}.", f"Hi, {name}!"),
                (f"Say good morning to {name}.", f"Good morning, {name}!"),
                (f"Wish {name} a happy birthday.", f"Happy birthday, {name}!"),
                (f"Say goodbye to {name}.", f"Goodbye, {name}!"),
                (f"Thank {name} for the gift.", f"Thank you for the gift, {name}!"),
                (f"Say good night to {name}.", f"Good night, {name}!"),
                (f"Invite {name} to dinner.", f"Dear {name}, would you like to come to dinner?"),
                (f"Say sorry to {name}.", f"I am sorry, {name}."),
                (f"Ask {name} how the day was.", f"How was your day, {name}?"),
                (f"Write a short greeting for {name}.", f"Hello, {name}! I hope you are well."),
                (f"Please say hello to my friend {name}.", f"Hello, {name}!"),
            ]
        )
    )


def name_for(rng):
    what = rng.choice(
        [
            "dog",
            "cat",
            "white cat",
            "brown dog",
            "goldfish",
            "boat",
            "teddy bear",
            "grey pony",
            "parrot",
            "rabbit",
            "hen",
            "small robot",
            "red kite",
            "green dragon",
            "old ship",
            "snowman",
        ]
    )
    name = any_name(rng, rng.random() < 0.5, 0.0)
    return asked(
        rng.choice(
            [f"Give me a name for a {what}.", f"What would be a good name for a {what}?", f"How should I call my {what}?", f"I need a name for my {what}."]
        ),
        rng.choice([f"You could call it {name}.", f"{name} is a good name for a {what}.", f"{name}."]),
    )


def ask_why(rng):
    question, answer = rng.choice(WHY)
    return asked(question + rng.choice(BLUNT), answer)


def yes_or_no(rng):
    question, answer = rng.choice(YES_NO)
    if rng.random() < 0.15:
        return asked(question + rng.choice([" Answer yes or no.", " Yes or no?"]), answer.split(",")[0] + ".")
    return asked(question, answer)


KINDS = [
    (animal, 14),
    (compare, 5),
    (order, 4),
    (colour, 8),
    (opposite, 8),
    (capital_of, 5),
    (use, 8),
    (calendar, 7),
    (sums, 8),
    (rhyme, 5),
    (naming, 12),
    (fruit, 3),
    (forms, 6),
    (repeat, 7),
    (sentence, 8),
    (greeting, 5),
    (name_for, 2),
    (ask_why, 16),
    (yes_or_no, 7),
]


def question(rng):
    """A conversation of one question or instruction."""
    (kind,) = rng.choices([kind for kind, _ in KINDS], [share for _, share in KINDS])
    return kind(rng)


def several(rng):
    """A conversation of some of them, also with `another one`."""
    if rng.random() < 0.3:
        of = rng.choice(list(LISTS))
        first, second, third = rng.sample(LISTS[of].split(), 3)
        kind = fill(rng, of)
        messages = [
            user(rng.choice([f"Name one of these: {kind}", f"Tell me one of the {kind}.", f"Give me an example of {kind}."])),
            assistant(f"{capital(first)}."),
            user(rng.choice(["Name another one.", "Another one?", "One more, please.", "And another?", "Give me another."])),
            assistant(f"{capital(second)}."),
        ]
        if rng.random() < 0.4:
            messages += [user(rng.choice(["And one more?", "One more."])), assistant(f"{capital(third)}.")]
        return messages
    if rng.random() < 0.4:
        name, legs, home, food, young, sound, cover, size, group = rng.choice(ANIMALS)
        many = plural(name)
        about = [
            ("[Where do they live?|And where do they live?]", f"They live {home}."),
            ("[What do they eat?|And what do they eat?]", f"They eat {food}."),
            ("[How many legs do they have?|And how many legs?]", f"They have {legs} legs."),
            ("[What are their young called?|And what is a baby called?]", f"A young {name} is called {an(young)}."),
        ]
        begin = rng.choice(
            [
                (f"Do you know what {an(name)} is?", f"Yes, {an(name)} is an animal with {cover}."),
                (f"Tell me about {many}.", f"{capital(many)} are animals with {cover}."),
                (f"I saw {an(name)} today.", f"How nice! {capital(many)} have {cover}."),
            ]
        )
        messages = asked(*begin)
        for follow, answer in rng.sample(about, rng.choice([1, 2, 3])):
            messages += asked(fill(rng, follow), answer)
        return messages
    return [message for _ in range(rng.choice([2, 2, 3, 4])) for message in question(rng)]
