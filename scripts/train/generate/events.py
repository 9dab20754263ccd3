"""Short reports of what happened, each with its summary: unlike a plot of plots.py, nobody has to want anything."""

from . import passages
from .grammar import capital, fill, rows
from .words import LOOKS

# the text, in parts that follow one another | summaries that are right
# The slots are those of passages.py. A detail may stand where there is an asterisk.
EVENTS = rows("""
The {L} {T} of {A} fell into the river. * {B} jumped in after it at once. Both came out wet, but the {T} was saved. | {A}'s {T} fell into the river, and {B} saved it.
{A} shared {his} last bread with a hungry {N}. * {A} thought no more of it. A week later {he} was lost in the snow, and the same {N} showed {him} the way home. | {A} gave {his} bread to a hungry {N}, which later showed {him} the way home.
All the lamps of {P} went out. * {A} lit candles and carried them from house to house. By midnight every window shone. | When all lamps of {P} went out, {A} brought candles to every house.
{A} told everybody that {he} could [swim|ride|cook|dance] better than {B}. * But when they tried it, {A} could not do it at all. {A} blushed and asked {B} for lessons. | {A} bragged, but {B} was better, so {A} asked {B} for lessons.
The {N} of {A} stopped eating. * The doctor found nothing. Then {B} brought a second {N}, and the two ate from one bowl. | {A}'s {N} would not eat until {B} brought a second {N}.
{A} and {B} both wanted the same {T}. * They argued the whole morning. In the end {C} bought it, and they both laughed. | {A} and {B} argued about a {T}, and then {C} bought it.
A letter lay in the old {T} that {A} had bought. * It was fifty years old and was meant for {B}. {A} carried it to {B}, who read it and cried with joy. | {A} found an old letter in a {T} and brought it to {B}, who was very happy.
{A} had painted for years and sold nothing. * One day {B} saw a picture through the window and bought it. Now {A}'s pictures hang in {P}. | {A} sold no pictures until {B} bought one, and now they hang in {P}.
A {N} stole the dinner of {A}. * {A} ran after it through the whole village. In its nest sat five young ones, so {A} let it keep the food. | A {N} stole {A}'s dinner for its young, and {A} let it keep it.
{A} bought a {T} from a stranger. * At home it did not work. {A} went back, but the stranger was gone. Then {B} repaired it with a drop of oil. | {A} bought a {T} that did not work, and {B} repaired it.
{A} [sang|played the {I}] in the street. * Nobody stopped. Only {B} listened to the end and invited {him} to play at a wedding. | {A} made music in the street, and {B} invited {him} to a wedding.
{A} forgot {his} {T} on the [bus|train|boat]. * The driver found it and read the name on it. In the evening he stood at the door of {A}. | {A} forgot {his} {T}, and the driver brought it back.
A {N} had a thorn in its foot and howled. * Everybody ran away. Only {A} went near and pulled it out, and the {N} followed {him} home. | {A} pulled a thorn out of the foot of a {N}, which then followed {him} home.
{A} broke the {T} of {R} and hid the pieces. * {He} could not sleep all night. In the morning {he} told the truth, and {R} was not angry. | {A} broke the {T} of {R}, told the truth, and was forgiven.
The winter was long, and {P} had no more wood. * {A} gave the {T} from {his} own house for the fire. Then everybody brought something, and all stayed warm. | In a long winter {A} gave the {T} for the fire, and everybody followed.
{A} won {n} coins. * {He} did not tell anybody. {He} bought new shoes for all children of the street. | {A} won {n} coins and bought shoes for the children.
From {day} on, the [bus|ferry|train] to {P} goes [every hour|twice a day|only in the morning]. * The old tickets are valid until the end of {month}. | From {day} on, the way to {P} has other times.
{A} was the [slowest|smallest|youngest] in the class. * At the feast a ring fell into a narrow hole. Only {A} could get it out. | Only {A} could get a ring out of a hole.
{A} left the [gate|stable|barn] open, and all the hens ran off. * {B} came with a bag of corn and shook it. One after the other they came back. | {A} let the hens out, and {B} brought them back with corn.
The [tooth|foot|back] of {A} hurt for days. * {He} said that it was nothing. When {he} could not [eat|walk|sleep] any more, {he} went to the doctor, and soon it was over. | {A} waited too long with {his} pain, but the doctor helped.
{A} wrote a song for {B} and was too shy to sing it. * {C} found the sheet and sang it at the feast. Everybody asked who had written it, and {A} stood up. | {A} was too shy to sing {his} own song, so {C} sang it.
The [soup|porridge|sauce] that {A} cooked was much too salty. * {A} wanted to throw it away. {B} put in two potatoes, and then it was good. | {A} cooked too salty, and {B} saved it with potatoes.
A [ball|stone|branch] flew through the window of {B}. * The children ran away. Only {A} rang the bell and offered to pay for it. {B} gave {him} the ball back and a piece of cake. | {A} did not run away after the window broke, and {B} was kind.
In {P} nobody had seen the sun for [nine|ten|twelve] days. * {A} painted a big yellow sun on the wall of the [school|station|dairy]. The people stopped in front of it and smiled. | {A} painted a sun on a wall in {P}, which made the people smile.
The shop of {A} had hardly any customers. * {B} told {him} to put a bench in front of it. First the old people came to sit there, and then everybody came to buy. | A bench in front of {A}'s shop brought the customers.
{A} took the wrong [coat|bag|parcel] home. * In it there was a key with an address. {A} went there, and {B} was just as glad to get it back. | {A} took the wrong thing home and brought it back to {B}.
The [roof|tent|boat] of {A} had a hole. * {A} put a bucket under it every time. In spring {B} helped {him} to mend it, and the bucket became a flower pot. | {A} and {B} mended the hole at last.
{A} found a young {N} at the side of the road. * {He} fed it with a spoon until it was strong. In summer it went off with the others, but it still comes by. | {A} fed a young {N} until it was strong enough to leave.
The lift stopped between the third and the fourth floor. * {A} and {B}, who had never spoken to each other, told stories for an hour. When it went on, they were sorry. | {A} and {B} became friends in a lift that had stopped.
From {day} on there is no water in Mill Street, because the pipes are renewed. * It comes back after {number} days. Please fill your buckets before. | Mill Street has no water from {day} on because the pipes are renewed.
The choir of {P} looks for new voices. * It sings on {day} evenings in the dairy. Nobody has to read notes. | The choir of {P} looks for singers for its {day} evenings.
A {N} ran onto the field during the game. * All players ran after it. The game ended without a goal, and everybody said that it was the best one of the year. | A {N} disturbed the game, and everybody enjoyed it.
{A} waited for a letter from {B} every day. * None came. In the end {B} stood at the door in person. | {A} waited for a letter from {B}, and then {B} came in person.
""")


def event(rng):
    """A passage."""
    s = passages.slots(rng)
    # The same word in the text and in the summary.
    s |= {
        "L": rng.choice(LOOKS),
        "day": rng.choice(passages.DAYS),
        "month": rng.choice(passages.MONTHS),
        "number": rng.choice(passages.NUMBERS),
        "n": rng.randrange(20, 900),
    }
    told, summary = rng.choice(EVENTS)
    detail = fill(rng, rng.choice(passages.DETAILS)[0], s) if "{A}" in told and rng.random() < 0.5 else ""
    text = fill(rng, told, s).replace("*", detail).replace("  ", " ")
    summary = capital(fill(rng, summary, s))
    questions = [(rng.choice(["What happened?", "What is the text about?", "What is it about?"]), summary)]
    if "{A}" in told:
        questions.append((rng.choice(["Who is the text about?", "Who is this about?"]), rng.choice([f"It is about {s['A']}.", f"{s['A']}."])))
    return {"text": text, "summaries": [summary], "questions": questions}
