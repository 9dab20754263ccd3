"""Records: what a text says as a JSON object. And tools: which function fits a request, and its call."""

import json

from . import passages
from .grammar import an, asked, assistant, capital, user
from .lexicon import LOOKS, THINGS
from .words import any_name, invented_name

FOODS = "milk|bread|butter|eggs|apples|cheese|rice|tea|coffee|sugar|flour|salt|honey|carrots|onions|potatoes|tomatoes|bananas|juice|soap|candles|nails|paper|batteries|pears|noodles|oranges|jam|oil|yoghurt".split(
    "|"
)
MEASURES = "bottles of|packs of|bags of|kilos of|boxes of|cans of|pieces of|jars of".split("|")
CITIES = "Bern Oslo Rome Paris London Tokyo Vienna Madrid Lisbon Athens Cairo Lima Sydney Toronto Berlin Dublin Prague Warsaw Kyoto Boston Chicago Nairobi Delhi Zurich Hamburg Lyon Porto Turin Bergen Graz".split()
COLOURS = "red blue green yellow white black brown grey silver purple".split()
NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()
THEMES = "dark light warm high-contrast".split()


def full_name(rng):
    first = any_name(rng, rng.random() < 0.5, 0.3)
    return first if rng.random() < 0.4 else f"{first} {invented_name(rng)}"


def number(rng, low, high):
    """(value, as it is written in a text)."""
    value = rng.randrange(low, high)
    return value, NUMBERS[value] if value < len(NUMBERS) and rng.random() < 0.6 else str(value)


def about_person(rng):
    name, city, (age, years) = full_name(rng), rng.choice(CITIES), number(rng, 3, 90)
    job = rng.choice(["baker", "pilot", "nurse", "teacher", "cook", "painter", "student", "farmer"])
    text = rng.choice(
        [
            f"I am {name}, {years} years old, and I come from {city}.",
            f"{name} is {years} years old and lives in {city}.",
            f"My name is {name}. I live in {city} and I am {years}.",
            f"{name} from {city} turned {years} yesterday.",
            f"Hello, I'm {name}. I'm {an(job)} in {city}, and I'm {years} years old.",
            f"{name} ({age}) is {an(job)} and lives in {city}.",
            f"{name} is {years} today! The party is in {city}.",
        ]
    )
    values = {"name": name, "age": age, "city": city}
    return text, values | {"job": job} if job in text else values


def about_thing(rng):
    thing, look, (price, _) = rng.choice(THINGS), rng.choice(COLOURS), number(rng, 2, 900)
    text = rng.choice(
        [
            f"The {look} {thing} costs {price} euros.",
            f"I sell my {look} {thing} for {price} euros.",
            f"For sale: {an(look)} {thing}, {price} euros.",
            f"You can have the {look} {thing} for {price} euros.",
            f"{price} euros is the price of the {look} {thing}.",
        ]
    )
    return text, {rng.choice(["thing", "item", "product"]): thing, rng.choice(["color", "colour"]): look, "price": price}


def about_item(rng):
    food, (count, said) = rng.choice(FOODS), number(rng, 2, 13)
    measure = rng.choice([rng.choice(MEASURES) + " ", ""])
    text = rng.choice(
        [
            f"Put {said} {measure}{food} on the list.",
            f"We need {said} {measure}{food}.",
            f"Please buy {said} {measure}{food}.",
            f"Add {said} {measure}{food} to the shopping list, please.",
            f"Don't forget {said} {measure}{food}!",
            f"I want {said} {measure}{food}.",
        ]
    )
    return text, {rng.choice(["item", "product", "name"]): measure + food, rng.choice(["count", "amount", "number"]): count}


def about_meeting(rng):
    what = rng.choice(["concert", "meeting", "party", "race", "lesson", "dinner", "trip", "play", "game", "picnic"])
    day, city = rng.choice(passages.DAYS), rng.choice(CITIES)
    hour = rng.randrange(1, 13)
    dogs = rng.random() < 0.5
    rule = "Dogs are welcome." if dogs else "Please leave your dogs at home."
    text = rng.choice(
        [
            f"The {what} is on {day} at {hour} in {city}. {rule}",
            f"Come to our {what} in {city} on {day}, it begins at {hour}. {rule}",
            f"On {day} at {hour} there is a {what} in {city}. {rule}",
        ]
    )
    return text, {rng.choice(["title", "event", "what"]): what, "day": day, "hour": hour, rng.choice(["city", "place"]): city, "dogs_allowed": dogs}


def about_mail(rng):
    one = passages.mail(rng)
    return one["text"], one["values"]


def about_fault(rng):
    version = f"{rng.randrange(1, 9)}.{rng.randrange(0, 10)}" + (f".{rng.randrange(0, 10)}" if rng.random() < 0.5 else "")
    program, fault = (
        rng.choice(["editor", "printer", "app", "player", "camera", "clock", "radio", "map"]),
        rng.choice(["stops", "crashes", "shows nothing", "is very slow", "makes a noise", "forgets the settings"]),
    )
    always = rng.random() < 0.5
    often = "every time" if always else "now and then"
    text = rng.choice(
        [
            f"The {program} {fault} {often} since version {version}.",
            f"With version {version} the {program} {fault}, {often}.",
            f"I have version {version}. The {program} {fault} {often}.",
        ]
    )
    return text, {rng.choice(["summary", "problem"]): f"the {program} {fault}", "version": version, "always": always}


TEXTS = [(about_person, 5), (about_thing, 4), (about_item, 5), (about_meeting, 4), (about_mail, 5), (about_fault, 2)]
ASK = [
    "Write this as JSON with the keys {k}.",
    "Give me a JSON object with {k}.",
    "Answer as JSON with the keys {k}.",
    "Put this into JSON: {k}.",
    "JSON with {k}:",
    "Extract {k} as JSON.",
    "Take {k} from the text and write them as JSON.",
]
SCHEMA = [
    "Fill in a record from this text. Answer with JSON by this schema: {s}\n\n{t}",
    "{t}\n\nAnswer with a JSON object by this schema: {s}",
    "Read the text and fill in a form: answer with JSON by this JSON schema.\n{s}\n\nText:\n{t}",
]
KIND_OF = {str: "string", int: "integer", bool: "boolean"}


def record(rng):
    (about,) = rng.choices([about for about, _ in TEXTS], [share for _, share in TEXTS])
    text, values = about(rng)
    keys = rng.sample(list(values), min(len(values), rng.choice([1, 2, 3, 3, 4, 5])))
    answer = json.dumps({key: values[key] for key in keys}, ensure_ascii=False)
    if rng.random() < 0.25:
        schema = json.dumps({"type": "object", "properties": {key: {"type": KIND_OF[type(values[key])]} for key in keys}, "required": keys})
        return asked(rng.choice(SCHEMA).format(s=schema, t=text), answer)
    wish = rng.choice(ASK).format(k=", ".join(keys) if rng.random() < 0.7 else " and ".join(keys))
    return asked(f"{text}\n\n{wish}" if rng.random() < 0.7 else f"{wish}\n\n{text}", answer)


def whole(low, high):
    return {"type": "integer", "minimum": low, "maximum": high}


def text_of(length):
    return {"type": "string", "minLength": 1, "maxLength": length}


def item_request(rng):
    food, (count, said) = rng.choice(FOODS), number(rng, 1, 13)
    measure = rng.choice([rng.choice(MEASURES) + " ", ""]) if count > 1 else ""
    request = rng.choice(
        [
            f"Put {said} {measure}{food} on the list",
            f"We need {said} {measure}{food}",
            f"Add {said} {measure}{food}, please",
            f"I have to buy {said} {measure}{food}",
            f"Write {said} {measure}{food} on my shopping list",
            f"There is no {food} left, get {said} {measure}{food}",
        ]
    )
    return request, {"name": measure + food, "count": count}


def light(rng):
    theme = rng.choice(THEMES[:2])
    dark = [
        "The page hurts my eyes",
        "This is too bright",
        "Make it dark",
        "Night mode, please",
        "It glares, can you dim it",
        "I want dark colours",
        "Turn the page black",
    ]
    bright = ["It is too dark", "I cannot see anything, make it lighter", "Bright colours, please", "Make the page white", "Day mode", "Light, please"]
    return rng.choice(dark if theme == "dark" else bright), {"theme": theme}


def clock(rng):
    city = rng.choice(CITIES)
    return rng.choice(
        [
            f"How late is it in {city}?",
            f"Tell me the time in {city}",
            f"What is the time in {city}?",
            f"Is it already night in {city}?",
            f"Show me the clock of {city}",
        ]
    ), {"city": city}


UNITS = "km miles kg pounds litres gallons metres feet".split()


def units(rng):
    amount = rng.randrange(1, 500)
    one, other = rng.sample(UNITS, 2)
    return rng.choice(
        [
            f"How much are {amount} {one} in {other}?",
            f"Convert {amount} {one} to {other}",
            f"{amount} {one} in {other}?",
            f"I have {amount} {one}. How many {other} is that?",
        ]
    ), {"amount": amount, "from": one, "to": other}


def done(rng):
    food = rng.choice(FOODS)
    return rng.choice(
        [
            f"The {food} is in the basket",
            f"I got the {food}",
            f"Tick the {food}",
            f"Done with the {food}",
            f"I bought {food}",
            f"The {food} is no longer needed, cross it off",
        ]
    ), {"item": food}


def weather(rng):
    city = rng.choice(CITIES)
    return rng.choice([f"Will it rain in {city}?", f"Do I need a coat in {city}?", f"How is the weather in {city}?", f"Is the sun shining in {city}?"]), {
        "city": city
    }


def alarm(rng):
    hour = rng.randrange(5, 12)
    return rng.choice([f"Wake me at {hour}", f"I have to get up at {hour}", f"Set an alarm for {hour} o'clock", f"Ring at {hour}, please"]), {"hour": hour}


def note(rng):
    name = any_name(rng, rng.random() < 0.5, 0.3)
    return (lambda text: (rng.choice([f"Remember: {text}", f"Note that {text}", f"Write down: {text}", f"Make a note: {text}"]), {"text": text}))(
        rng.choice([f"{name} comes on {rng.choice(passages.DAYS)}", f"call {name}", f"the key is with {name}", f"{name} likes {rng.choice(FOODS)}"])
    )


def song(rng):
    title = f"The {capital(rng.choice(LOOKS))} {capital(rng.choice(THINGS))}"
    return rng.choice([f"Play {title}", f"I want to hear {title}", f"Put on the song {title}", f"Music! {title}, please"]), {"title": title}


# name | description, the schemas of its parameters, requests and their arguments
TOOLS = [
    ("add_item", "Puts an item on the shopping list", {"name": text_of(20), "count": whole(1, 99)}, item_request),
    ("set_theme", "Sets the colours of the page", {"theme": {"enum": THEMES}}, light),
    ("show_time", "Tells the time in a city", {"city": text_of(20)}, clock),
    ("convert", "Converts an amount to another unit", {"amount": {"type": "number"}, "from": {"enum": UNITS}, "to": {"enum": UNITS}}, units),
    ("tick_item", "Ticks an item of the shopping list", {"item": text_of(20)}, done),
    ("get_weather", "Tells the weather in a city", {"city": text_of(30)}, weather),
    ("set_alarm", "Sets an alarm", {"hour": whole(0, 23)}, alarm),
    ("save_note", "Saves a note", {"text": text_of(60)}, note),
    ("play_song", "Plays a song", {"title": text_of(40)}, song),
]
# Other names of the same functions, so that names are read and not remembered.
ALSO = {
    "add_item": ["put_on_list", "add_to_list", "buy"],
    "set_theme": ["change_colours", "theme", "set_mode"],
    "show_time": ["get_time", "clock", "time_in"],
    "convert": ["convert_units", "to_unit"],
    "tick_item": ["check_off", "mark_done"],
    "get_weather": ["weather", "forecast"],
    "set_alarm": ["alarm", "wake_up"],
    "save_note": ["note", "remember"],
    "play_song": ["music", "play"],
}


def tools(rng, count):
    chosen = []
    for name, about, parameters, make in rng.sample(TOOLS, count):
        chosen.append((name if rng.random() < 0.6 else rng.choice(ALSO[name]), about, parameters, make))
    return chosen


CHOOSE = [
    "Which of these functions fits this request: {f}?\n\n{r}",
    "You have these functions: {f}. Which one do you need for this?\n\n{r}",
    "Functions: {f}\nRequest: {r}\nWhich function?",
    "Choose one of {f} for this request. Say only its name.\n\n{r}",
    "{r}\n\nWhich function would you call: {f}?",
]


def choice(rng):
    """Which function fits."""
    known = tools(rng, rng.choice([2, 3, 3, 4]))
    name, _, _, make = rng.choice(known)
    with_parameters = rng.random() < 0.6
    listed = ", ".join(f"{one}({', '.join(parameters)})" if with_parameters else one for one, _, parameters, _ in known)
    return asked(rng.choice(CHOOSE).format(f=listed, r=make(rng)[0]), name)


# The words in which the package tells a model of its tools.
TOLD = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n{lines}\n</tools>\n\n"
    "For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n"
    '<tool_call>\n{{"name": <function-name>, "arguments": <args-json-object>}}\n</tool_call>'
)


def call(rng):
    """A call of a function, in the format of the package, and what is said about its result."""
    known = tools(rng, rng.choice([1, 2, 2, 3]))
    name, _, _, make = rng.choice(known)
    lines = []
    for one, about, parameters, _ in known:
        schema = {"type": "object", "properties": parameters, "required": list(parameters), "additionalProperties": False}
        lines.append(json.dumps({"type": "function", "function": {"name": one, "description": about, "parameters": schema}}))
    request, values = make(rng)
    written = json.dumps({"name": name, "arguments": values}, ensure_ascii=False)
    messages = [{"role": "system", "content": TOLD.format(lines="\n".join(lines))}, user(request), assistant(f"<tool_call>\n{written}\n</tool_call>")]
    if rng.random() < 0.5:
        result = {
            "count": f"The list has {values.get('count')} {values.get('name')}.",
            "theme": "The colours are set.",
            "city": f"It is {rng.randrange(1, 13)}:{rng.randrange(10, 60)} in {values.get('city')}.",
            "hour": "The alarm is set.",
        }
        said = next((text for key, text in result.items() if key in values), "Done.")
        messages += [user(f"<tool_response>\n{said}\n</tool_response>"), assistant(said)]
    return messages
