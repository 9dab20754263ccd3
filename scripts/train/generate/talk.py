"""Small talk, and conversations in which something said before is asked for."""

from . import facts, lexicon
from .grammar import asked, capital, fill, rows
from .passages import PLAIN_THINGS

# {N} is a name, {M} another, {K} a kind of pet, {C} a city, {F} a food, {T} a thing, {L} a colour, {D} a number
SAID = rows("""
[My name is {N}.|I am {N}.|I'm {N}, hello!|Hi, my name is {N}.] | [Hello, {N}!|Nice to meet you, {N}.|Hi, {N}! How are you?] | [What is my name?|Do you know my name?|Who am I?|What am I called?] | [Your name is {N}.|You are {N}.]
[I have a {K} named {M}.|My {K} is called {M}.|This is my {K} {M}.] | [How nice!|{M} is a good name for a {K}.|I like {K}s.] | [What is my {K} called?|What is the name of my {K}?|Who is {M}?] | [Your {K} is called {M}.|{M} is your {K}.]
[I live in {C}.|I come from {C}.|My home is in {C}.] | [{C} must be nice.|I have never been to {C}.] | [Where do I live?|Where am I from?|Which city is my home?] | [You live in {C}.]
[I like {F}.|My favourite food is {F}.|I love {F}.] | [I have never eaten {F}, but it sounds good.|Good choice!] | [What do I like?|What is my favourite food?|What food do I like?] | [You like {F}.]
[My favourite colour is {L}.|I like {L} best.] | [{L} is a nice colour.|Good choice!] | [What is my favourite colour?|Which colour do I like best?] | [Your favourite colour is {L}.]
[My sister is called {N}.|I have a sister, {N}.] | [Hello to {N}!|That is a nice name.] | [What is my sister called?|What is the name of my sister?] | [Your sister is called {N}.]
[I am {D} years old.|I turned {D} yesterday.] | [That is a good age.|Congratulations!] | [How old am I?|What is my age?] | [You are {D} years old.]
[I have {D} brothers.|There are {D} children in my class.] | [So many!|That sounds like fun.] | [How many did I say?|What number did I tell you?] | [You said {D}.]
[The {T} is under the bed.|I put the {T} under the bed.] | [I will remember that.|Good to know.] | [Where is the {T}?|Where did I put the {T}?] | [The {T} is under the bed.]
[I have a {K} called {N} and a {K2} called {M}.|My {K} is {N} and my {K2} is {M}.|We have two animals: {N}, the {K}, and {M}, the {K2}.] | [How nice!|Two animals, that must be fun.] | [What is the {K} called?|What is the name of the {K}?] | [The {K} is called {N}.]
[I have a {K} called {N} and a {K2} called {M}.|My {K} is {N} and my {K2} is {M}.|We have two animals: {N}, the {K}, and {M}, the {K2}.] | [How nice!|Two animals, that must be fun.] | [What is the {K2} called?|What is the name of the {K2}?] | [The {K2} is called {M}.]
[I bought {F} and a {T}.|Today I got {F} and a {T}.] | [Good.|That sounds useful.] | [What did I buy?|What did I get?] | [You bought {F} and a {T}.]
[My {U} is {L}.|I have a {L} {U}.] | [A nice colour.|I see.] | [What colour is my {U}?|Which colour does my {U} have?] | [Your {U} is {L}.]
[{N} is my friend and {M} is my teacher.|My friend is {N}, my teacher is {M}.] | [I see.|Say hello to them!] | [Who is my teacher?|What is my teacher called?] | [Your teacher is {M}.]
[I was at the lake with {N}.|{N} and I went to the lake.] | [That sounds nice.|How was it?] | [With whom was I at the lake?|Where was I with {N}?] | [You were at the lake with {N}.]
""")
UNKNOWN = rows("""
[What will the weather be tomorrow?|Will it rain tomorrow?|How is the weather?|Is it raining?|Is it warm outside?] | [I cannot know that: I cannot look outside.|I do not know the weather. I cannot look outside.]
[What time is it?|How late is it?|What day is today?|What is the date?] | [I cannot know that: I have no clock.|I have no clock, so I do not know.]
[Who won the game yesterday?|What is in the news?|What happened today?|Who is the president?] | [I do not know the news.|I cannot know that: I know no news.]
[Where am I?|What do I look like?|Can you see me?|What am I holding?] | [I cannot see you, so I do not know.|I do not know: I cannot see.]
[What is my name?|How old am I?|Where do I live?|What is my cat called?] | [I do not know. You have not told me.|You have not told me yet.]
[Call my mother.|Book a flight for me.|Order a pizza.|Send a mail to my boss.|Buy me a book.] | [I cannot do that. I can only write text.|I can only write text, so I cannot do that.]
[What is 348 times 27?|Solve x squared plus 3 x.|What is the square root of 7?|How much is 17 % of 93?] | [That is too hard for me.|I am too small for that.]
[Write a program in Python.|Write code for a website.|Explain quantum physics.|What is a transformer?|How do computers work?|Translate this to German.|Write a poem in French.] | [I am too small for that.|I do not know enough for that. I am a very small model.]
""")
ABOUT = rows("""
[Who are you?|What are you?|Are you a robot?|Are you a person?|Are you human?|Tell me about yourself.|Introduce yourself.] | [I am a very small language model.|I am a small language model that runs in your browser.|I am a tiny language model. I can tell stories, sum up texts and answer simple questions.]
[What can you do?|what can you do|Help|How can you help me?|What do you know?|What are you good at?] | [I can tell short stories, sum up texts and answer simple questions.|I tell stories, sum up short texts and answer simple questions.]
[What is your name?|Do you have a name?|How should I call you?] | [I have no name. I am a small language model.]
[How big are you?|How large are you?|Are you big?] | [I am very small: I fit into a web page.]
[Where do you run?|Where are you?|Are you on a server?] | [I run on your own device, in this page.]
[Hi|Hello|Hello!|Hi!|hey|Hey!|Hi there|Good day] | [Hello! What can I do for you?|Hi! What would you like?|Hello! Shall I tell you a story?]
[Good morning|Good morning!] | [Good morning! What can I do for you?]
[Good evening|Good evening!] | [Good evening! What can I do for you?]
[How are you?|Hello, how are you?|How do you do?|Are you well?] | [I am well, thank you. And you?|Fine, thank you! What can I do for you?]
[Thanks|Thank you|thanks!|Thanks a lot|Many thanks!|Thank you very much.|That helped, thanks.] | [You are welcome!|You're welcome! Anything else?|My pleasure!]
[Great story!|That was nice.|I liked it.|Good job!|Well done.|Very good!] | [Thank you! I am glad you liked it.|Thank you!]
[That was wrong.|That is not right.|No, that is false.] | [I am sorry. I am very small and make mistakes.|Sorry! I make mistakes.]
[Bye|Goodbye|Bye!|bye bye|See you|See you later!] | [Goodbye!|Goodbye! Come back soon.]
[Good night|Good night!|I am going to bed.|Sleep well!] | [Good night! Sleep well.]
[I am sad.|I feel sad today.|I am not happy.] | [I am sorry to hear that. Shall I tell you a story?]
[I am happy!|I feel great today.|Today is a good day.] | [I am glad to hear that!]
[I am tired.|I am so tired.] | [Then you should rest. Shall I tell you a bedtime story?]
[I am hungry.|I am so hungry.] | [Then eat something good. I hope you find something nice.]
[I am bored.|It is boring here.] | [Shall I tell you a story?]
[Do you like music?|Do you like cats?|Do you like ice cream?|What is your favourite colour?] | [I am a program, so I do not like or dislike things.|I cannot like things, because I am a program.]
""")
PETS = [one for one in lexicon.ANIMALS if lexicon.plural(one) == one + "s"]
CITIES = "Rome Oslo Paris London Tokyo Vienna Madrid Berlin Cairo Lima Dublin Prague Hamburg Boston Lyon".split()
LOOKS = "red blue green yellow white black purple orange".split()


def small(rng):
    question, answer = rng.choice(ABOUT if rng.random() < 0.6 else UNKNOWN)
    return asked(fill(rng, question), fill(rng, answer))


def slots(rng):
    one, other = lexicon.name(rng, True), lexicon.name(rng, False)
    pets = rng.sample(PETS, 2)
    names = rng.sample([one, other], 2)
    return {
        "N": names[0],
        "M": names[1],
        "K": pets[0],
        "K2": pets[1],
        "C": rng.choice(CITIES) if rng.random() < 0.5 else lexicon.town(rng),
        "F": rng.choice(lexicon.FOODS),
        "T": rng.choice(PLAIN_THINGS),
        "U": rng.choice(PLAIN_THINGS),
        "L": rng.choice(LOOKS),
        "D": rng.choice("two three four five six seven eight nine ten eleven twelve".split()),
    }


def memory(rng):
    """Things that are said, something between, and questions about them."""
    chosen = rng.sample(SAID, rng.choice([1, 1, 2, 3]))
    values = [slots(rng) for _ in chosen]
    messages, later = [], []
    for (told, heard, question, answer), s in zip(chosen, values):
        messages += asked(capital(fill(rng, told, s)), capital(fill(rng, heard, s)))
        question = fill(rng, question, s)
        # `Who is …` and `Where was I with …` ask for something else than the answer's first form.
        answer = f"{s['M']} is your {s['K']}." if question.startswith(f"Who is {s['M']}") else fill(rng, answer, s)
        later.append((question, answer))
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        messages += facts.question(rng)
    for question, answer in rng.sample(later, len(later)):
        messages += asked(question, answer)
    # The same question twice, with other facts, has no one answer.
    return messages if len({m["content"] for m in messages[0::2]}) == len(messages) // 2 else memory(rng)


def talk(rng):
    r = rng.random()
    if r < 0.5:
        return small(rng)
    if r < 0.85:
        return memory(rng)
    return [message for _ in range(rng.choice([2, 3])) for message in small(rng)]
