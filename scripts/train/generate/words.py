"""Names and things that stories and questions are made of."""

GIRLS = (
    "Lily Mia Anna Sue Lucy Amy Sara Emma Ella Zoe Nina Rosie Daisy Ruby Molly Eva Maya Clara Ivy Kate "
    "Nora Lola Tina Bella Penny Jane Alice Poppy Mary Hannah Grace Sophie Jenny Dora Lena Olive"
).split()
BOYS = (
    "Tom Ben Max Tim Sam Jack Leo Timmy Billy Bob Finn Noah Jake Luke Joe Dan Oscar Adam Charlie Mark "
    "Peter Nick Toby Henry Eli Fred Will Alex Hugo Robin Owen George Danny Theo Ravi Kai"
).split()
ANIMALS = (
    "cat dog rabbit bear fox mouse squirrel duck frog pig cow sheep goat owl turtle hedgehog lion "
    "elephant monkey penguin bee kitten puppy hen horse raccoon deer beaver"
).split()
PET_NAMES = "Spot Fluffy Buddy Whiskers Rex Bunny Biscuit Pepper Coco Socks Ginger Snowy Teddy Button Patch Muffin".split()
OBJECTS = (
    "red ball|blue car|toy boat|yellow hat|teddy bear|kite|shiny coin|drum|doll|toy train|green scarf|picture book|"
    "small bell|magnet|box of crayons|silver whistle|toy robot|pink balloon|wooden horse|lantern|spoon|key|"
    "soft blanket|paper crown|little flag|jar of marbles|puzzle|music box|toy truck|rubber duck|jump rope|top hat"
).split("|")
PLACES = ("park|forest|garden|beach|farm|playground|field|lake|yard|hill|school|river|meadow|market|zoo|pond").split("|")
TREATS = "cookies|cakes|berries|candy|apples|pies|ice cream|plums|jam sandwiches|pancakes|grapes|honey buns".split("|")
MORE_NAMES = (
    "Abby Ada Agnes Alma April Aria Aurora Ava Beth Betty Bonnie Carla Carmen Celia Chloe Cora Daphne Della Diana Edith Elsa Esme Fay Faye Fiona Freya Gaby Gina Gloria Gwen Hazel "
    "Heidi Helen Iris Isla Jade Jasmine Joan Josie Joy June Kira Kitty Laura Leah Leila Linda Louise Luna Mabel Maggie Marina Meg Mila Mimi Myra Nadia Naomi Nell Nelly Opal Paula Pearl Petra Pia Pippa "
    "Rita Rosa Sadie Sally Selma Sonia Stella Susan Sylvia Thea Uma Vera Violet Wanda Willa Yara Zara"
).split()
MORE_BOYS = (
    "Aaron Alan Albert Alfie Andy Archie Arlo Arthur Barney Basil Bert Boris Brian Bruno Carl Caleb Cody Colin Connor David Dean Dexter Dylan Eddie Edgar Elmer Emil Eric Ernie Ethan Felix Frank "
    "Gabe Gary Gus Hank Harry Harvey Ian Igor Isaac Ivan Jay Jerry Jim Joey John Jon Jude Juan Karl Ken Kevin Kurt Larry Lenny Lewis Liam Logan Lou Louis Marco Marvin Matt Mike Miles Mo Ned Nico Nigel "
    "Omar Otis Otto Pablo Paul Percy Phil Quinn Ralph Ray Rex Rico Rocky Roger Ron Roy Rufus Ryan Sandy Scott Seth Sid Simon Stan Steve Ted Tony Tyler Vince Walter Wayne Yuri Zack Ziggy"
).split()
MORE_KINDS = (
    (
        "dragon robot unicorn dinosaur fairy princess prince king queen pirate wizard witch monster ghost giant elf snowman mermaid knight farmer baker tiger zebra giraffe kangaroo panda koala crocodile whale "
        "dolphin octopus crab snail worm spider ant butterfly ladybug parrot eagle chick donkey pony camel wolf moose otter seal bat mole skunk badger train truck car boat cloud star tree fish shark "
        "dwarf troll sailor clown teacher doctor cowboy astronaut gnome puppet teddy bear toy car bus spaceship tractor turkey goose swan crow rooster lamb calf piglet hippo rhino ostrich flamingo "
        "jellyfish starfish lobster beetle firefly grasshopper caterpillar lizard snake toad gorilla leopard cheetah hyena reindeer walrus"
    )
    .replace("teddy bear", "teddy")
    .replace("toy car", "toy")
    .split()
)
THINGS = (
    "box bottle bucket bell book boot bowl brush button cake candle cap chair clock coat coin comb cup desk door drum fan feather flag flute fork glove hammer hat helmet jar jug kettle key kite knife ladder lamp "
    "leaf lock map mask mirror mug necklace needle net notebook pan pencil phone piano pillow pin pipe plate pot purse puzzle radio ribbon ring rock rope rug ruler sack saw scarf seed shell shirt shoe shovel "
    "sock sofa spoon stamp star stick stone stool sword table teapot tent ticket torch towel toy tray trumpet umbrella vase violin wagon wallet watch wheel whistle window wool yarn acorn anchor apple arrow balloon "
    "banana basket bead bench biscuit blanket block brick broom bubble camera carrot chest crown cushion dish doll engine fence flower flowerpot guitar hook horn jewel lantern log magnet marble medal melon nut orange "
    "paint pearl pebble pumpkin rocket sail sled snowball statue swing telescope train tulip wand"
).split()
LOOKS = "red blue green yellow pink purple orange white brown black silver golden big small little tiny old new shiny round long soft broken strange pretty funny heavy wooden striped smooth fuzzy dusty sparkly".split()
MORE_PLACES = "castle island mountain cave library bakery barn bridge city village jungle desert swamp valley harbor museum station orchard shop circus well mill windmill tower pool camp waterfall cliff fountain stable zoo".split()
FOODS = "cookies muffins berries cherries peaches nuts carrots beans tomatoes rolls tarts donuts melons pears raisins crackers waffles noodles dumplings sausages lollipops cupcakes pretzels potatoes onions bananas oranges lemons figs dates".split()
_ON, _VO, _MID, _END = (
    "b br c ch d dr f fl g gr h j k kl l m n p pl qu r s sh sk sl sn st t th tr v w y z".split(),
    "a e i o u ee oo ai".split(),
    "b d g k l m n p r s t v z ll mb nd rr tt zz nk".split(),
    ["", "", "", "n", "l", "x", "m", "s", "k", "r", "t", "by", "na", "do", "ko", "la", "zo", "ri"],
)


def invented_name(rng):
    """A name nobody has: it can only be right in a summary if it was copied from the story."""
    n = rng.choice(_ON) + rng.choice(_VO)
    for _ in range(rng.choice((0, 1, 1))):
        n += rng.choice(_MID) + rng.choice(_VO)
    n = (n + rng.choice(_END)).capitalize()
    return n if len(n) > 2 else invented_name(rng)


def any_name(rng, girl, invent=0.45):
    if rng.random() < invent:
        return invented_name(rng)
    return rng.choice((MORE_NAMES if girl else MORE_BOYS) if rng.random() < 0.45 else (GIRLS if girl else BOYS))


COLORS = "red blue green yellow pink purple orange white brown".split()
ADJ = "happy kind curious brave clever gentle cheerful playful quiet friendly silly careful".split()
FLOWERS = "sunflower|pumpkin|tomato plant|rose|apple tree|carrot|strawberry plant|tulip|bean plant|daisy".split("|")
