"""Short texts of many kinds with their summaries: mishaps, news, notices, letters, fables and small stories. A summary
has the point in the text's own words: who, the trouble, how it ended. Names and nouns are of the wide vocabulary."""

import re

from . import lexicon
from .deeds import Person
from .grammar import capital, fill, rows

# The sentences, a summary, perhaps another one. A star is where a sentence without weight may stand.
# {A} {B} {C} are names; {he} {him} {his} {He} belong to {A}; {J} {K} are jobs, {N} {M} animals, {T} {U} things, {t} a thing
# of one word, {F} {G} foods, {P} {Q} towns, {W} {X} say where, {V} is a building, {when} says when, {n} {m} are numbers,
# {day} {day2} days, {month} a month, {O} a colour, {R} a relative of {A}, {L} a family's name, {E} an event.
SCENES = rows("""
{A} left the {T} {W}. * In the night it rained, and in the morning the {T} was ruined. {A} had to buy a new one. | {A} left the {T} out in the rain, so {he} had to buy a new one. | {A}'s {T} was ruined by the rain.
A {N} got into the {V} {when}. * The {J} tried to catch it for {n} hours. In the end a child led it out with {F}. | A {N} got into the {V}, and a child led it out with {F}. | After {n} hours a child led a {N} out of the {V}.
{A} had baked {F} for {R}. * The {N} ate all of them while nobody was looking. {A} laughed and cooked {G} instead. | The {N} ate the {F} that {A} had baked for {R}, so {A} cooked {G} instead.
The {V} of {P} burned down {when}. * Nobody was hurt. The people of {P} collected money, and now a new {V} stands there. | The {V} of {P} burned down, and the people collected money for a new one.
{A} wanted to become a {J}. Everybody said that {he} was too small for it. * {He} practised for {n} years. Today {he} is the best {J} of {P}. | Everybody said {A} was too small to become a {J}, but today {he} is the best one of {P}.
{B} dropped {his2} {T} into the river. * {A} dived for it {n} times and found nothing. On the next day a {N} brought it to the shore. | {B} dropped a {T} into the river, and a {N} brought it to the shore.
{A} and {B} built a raft. * It sank after {n} metres. They had to swim back, and on that day {A} learned that {B} could not swim. | The raft of {A} and {B} sank, and {A} learned that {B} could not swim.
The {N} of {A} had been gone for {n} days. * {A} put up notices {W}. A {J} from {P} called: it was sleeping in the {V}. | {A}'s {N} was gone for {n} days, and a {J} found it sleeping in the {V}. | {A} lost a {N}. It was found in the {V}.
{A} was afraid to speak in front of the class. * {B} told {him} to look only at the {T} on the wall. {A} did that, and everybody clapped. | {A} was afraid to speak in front of the class, but {B}'s advice helped, and everybody clapped.
The lift in the {V} has been broken since {day}. A {J} is coming to repair it on {day2}. * Until then, please use the stairs. | The lift in the {V} is broken and will be repaired on {day2}. | The lift in the {V} is broken until {day2}, so people have to use the stairs.
{A} planted {n} {O} tulips {W}. * A {N} dug up all of them. Next year {A} planted them in pots on the roof. | A {N} dug up {A}'s tulips, so next year {he} planted them on the roof.
The {J} of {P} gave away {F} {when}. * So many people came that the street had to be closed. At noon everything was gone. | The {J} of {P} gave away {F}, and so many people came that the street had to be closed.
{A} sent {B} a {T}. * The parcel went to {P} by mistake. {B} got it {n} months later, and it still made {him2} happy. | {A}'s parcel for {B} went to {P} by mistake and came {n} months late.
A proud {N} said that nobody was stronger. * A {M} said nothing and bit through the rope that held the bridge. The {N} fell into the water and never boasted again. | A proud {N} fell into the water because of a small {M}, and never boasted again.
The {N} had collected {F} the whole summer, and the {M} had only sung. * When the snow came, the {M} was hungry. The {N} shared with it, and the {M} sang for the {N} all winter. | The {N} had food for the winter and shared it with the {M}, which sang for it.
A {N} found a {T} and did not know what it was. * It asked the {M}, and the {M} did not know either. In the end they used it as a bed. | A {N} and a {M} did not know what a {T} was, so they used it as a bed.
Two {Ns} wanted to cross the same narrow bridge. * Neither would go back. They pushed each other until both fell into the water. | Two {Ns} would not make way for each other on a bridge, and both fell into the water.
A {N} was caught in a net. * A {M} gnawed through the net for half the night. Since then the two have been friends. | A {N} was caught in a net, and a {M} freed it. | A {M} freed a {N} from a net, and they became friends.
A hungry {N} saw {F} on the other side of the fence. It jumped {n} times and could not get over. * "They are surely rotten," it said and went away. | A {N} could not reach the {F}, so it said that they were rotten.
A {N} saw itself in the water and thought that it was another {N} with more {F}. * It snapped at it and its own food fell into the water. | A greedy {N} snapped at its own image in the water and lost its food.
The animals wanted a new king. The {N} shouted the loudest, and the {M} ran the fastest. * But the old {M2} was the only one who listened. So they chose the {M2}. | The animals chose the {M2} as king because it was the only one who listened.
Dear {B}, I arrived in {P} yesterday. * My room is small, but I can see the {V}. I have already found work as a {J}. Please send me my {T}. Yours, {A} | {A} has arrived in {P}, works as a {J}, and asks {B} to send the {T}. | {A} has found work in {P} and needs the {T}.
Dear {B}, I am sorry that I did not come {when}. * I had a cold and could not get up. Can we meet on {day} {W}? Your {A} | {A} had a cold and did not come, and wants to meet {B} on {day}.
Dear Mr. {L}, the {T} that I bought in your shop was broken after {n} days. * I would like a new one or my money back. Yours, {A} | {A} bought a {T} that broke after {n} days, and wants a new one or the money back.
Hi {B}, thank you for the {T}! It was just what I needed. * {R1} was jealous. Come and visit us in {month}. {A} | {A} thanks {B} for the {T} and invites {him2} to visit in {month}.
Dear neighbours, we are having a party on {day} {W}. * It may be loud until {m} o'clock. You are all invited, and there will be {F}. {A} and {B} | {A} and {B} invite the neighbours to a party on {day}.
Dear {R0}, the camp is great. * I can already swim. Only the {F} are terrible. Could you send me some {G}? Love, {A} | {A} likes the camp, but not the {F}, and asks for {G}.
To all employees: the office in {P} moves to {Q} in {month}. * Everybody gets a free ticket for the train. Please pack your desks by {day}. | The office moves from {P} to {Q} in {month}, and everybody should pack by {day}. | The office in {P} moves to {Q} in {month}.
Found: a {T} with the name {B} on it. * It lay {W}. The owner can fetch it from the {J}. | A {T} with the name {B} was found {W}, and the owner can fetch it from the {J}.
Lost: a {O} {N} called {B}. It ran away {W} {when}. * Whoever finds it gets {n} euros. | A {O} {N} called {B} ran away, and the finder gets {n} euros.
For sale: a {T}, nearly new. * I bought it for my sister and it was never used. It costs {n} euros and can be fetched in {P}. | A {T} that is nearly new is for sale in {P} for {n} euros.
The {V} needs helpers. * We are looking for people who can paint walls on {day}. Everybody gets {F} and tea. | The {V} is looking for people who can paint walls on {day}.
The new {V} in {P} opens on {day}. * The first {n} visitors get {F} for free. The mayor will cut the ribbon. | The new {V} in {P} opens on {day}, and the first {n} visitors get {F} for free. | The new {V} in {P} opens on {day}.
Please do not feed the {Ns} {W}. * Last week {n} of them became ill from {F}. The {J} gives them all they need. | People should not feed the {Ns}, because {n} of them became ill from {F}. | The {Ns} must not be fed.
The course for beginners with {B} is cancelled because {B} is ill. * Those who have paid get their money back. The next course begins in {month}. | The course with {B} is cancelled because of illness, and the next one begins in {month}.
On {day} the street {W} is closed for cars because of a race. * The buses go through {P}. From {m} o'clock everything is as usual. | On {day} the street {W} is closed because of a race. | The street {W} is closed on {day} because of a race, and buses go through {P}.
From {month} on, the {V} opens at {m} o'clock instead of {m2}. * Many visitors had asked for it. | From {month} on, the {V} opens at {m} o'clock.
The {E} in {P} has been moved to {day} because of the snow. * All tickets stay valid. | The {E} in {P} has been moved to {day} because of the snow.
{n} {Ns} escaped from the {V} of {P} {when}. * The police closed the roads. A {J} caught the last one with {F}. | {n} {Ns} escaped from the {V} of {P}, and a {J} caught the last one.
A truck with {n} boxes of {F} turned over near {P}. * The driver was not hurt. The children of the village collected the {F} in buckets. | A truck with {F} turned over near {P}, and children collected the {F}. The driver was not hurt.
In {P} the lights went out for {n} hours because a {N} had bitten through a cable. * The people sat outside and told stories. | In {P} the lights went out for {n} hours because of a {N}.
The oldest person of {P}, {A}, turned one hundred and {m} years old {when}. * {He} still cuts {his} own wood. {A}'s advice is to eat {F} every day. | {A}, the oldest person of {P}, turned one hundred and {m} and says that one should eat {F} every day.
A {J} from {P} has built a {T} out of {n} old {Us}. * It took him {m} years. Now it stands in the {V}. | A {J} from {P} has built a {T} out of old {Us}, and it stands in the {V}.
Scientists have found a new kind of {N} {W}. * It is {O} and only as long as a finger. They named it after the {J} who had seen it first. | Scientists have found a new kind of {N} and named it after the {J} who saw it first. | A new kind of {N} has been found.
The team of {P} lost against {Q} by {n} to one. * The only goal was shot by {A}, who is a {J}. | The team of {P} lost against {Q} by {n} to one.
{A} from {P} has won the race of the {Js}. * {He} was last for a long time. Then it began to hail, and the others stopped under a tree. | {A} won the race of the {Js} because the others stopped when it began to hail.
Thieves stole the {T} of the {V} {when}. * The {J} saw them and followed them to {P}. There the police arrested them. | Thieves stole the {T} of the {V}, and the police arrested them in {P} with the help of the {J}.
{A} always took the same way to school. * One day a tree lay across it. So {A} went through the {V} and met {B}, and since then they have gone together. | Because a tree lay across the way, {A} took another one and met {B}. | A fallen tree led {A} another way, and there {he} met {B}.
{A} was the worst {J} of {P}. * Everything {he} touched broke. Then {B} gave {him} new glasses, and from then on {he} made no more mistakes. | {A} was a bad {J} until {B} gave {him} new glasses.
{A} had promised to water the flowers of {B}. * {He} forgot it for {n} weeks. {He} bought new flowers, but {B} noticed it at once and laughed. | {A} forgot to water {B}'s flowers and bought new ones, but {B} noticed it.
{A} wrote to {B} every week for {n} years. * They had never met. When they met {W}, they were too shy to speak. So they sat down and wrote each other a letter. | {A} and {B} wrote to each other for {n} years, and when they met they were too shy to speak.
{A} gave {his} {T} to {B}, who had none. * {R2} was angry at first. The next day {B} came with {F} for the whole family. | {A} gave {B} {his} {T}, and {B} brought {F} for the whole family.
{A} hated {F}. * At the house of {B} there was nothing else. {A} tried one spoon, then a second one, and in the end {he} asked for more. | {A} hated {F}, but at {B}'s house {he} tried them and asked for more.
Every night {A} heard a knocking {W}. * {He} thought that it was a ghost. {B} went to look with a lamp, and it was only a {N}. | {A} thought that a ghost was knocking {W}, but it was only a {N}. | The knocking that {A} heard was only a {N}.
{A} counted the money {n} times, and each time one coin was missing. * {He} accused {B}. Then the coin fell out of {his} own sleeve, and {A} said sorry. | {A} accused {B} because a coin was missing, but it was in {his} own sleeve, so {he} said sorry.
{A} was in such a hurry that {he} put on two different shoes. * {He} noticed it only {W}. {B} thought that it was the new fashion and did the same. | {A} put on two different shoes in a hurry, and {B} took it for the new fashion.
The {T} of {A} had stopped. * {He} took it to the {J}, who found a dead fly in it. It cost nothing, and the {J} gave {him} {F} as well. | {A}'s {T} stopped because of a dead fly, and the {J} repaired it for nothing.
{A} climbed a tree to fetch a {T} and could not come down again. * {B} called the firefighters. They also brought down a {N} that had sat there for {n} days. | {A} could not come down from a tree, and the firefighters brought {him} and a {N} down.
{A} read the map the wrong way round. * Instead of {P} {he} came to {Q}. {He} liked it so much that {he} stayed for {n} years. | {A} read the map wrong, came to {Q} instead of {P}, and stayed there for {n} years.
{A} ordered one box of {F} and got {n}. * The shop did not take them back. So {A} opened a stand {W} and sold them all. | {A} got {n} boxes of {F} instead of one, so {he} opened a stand and sold them.
{A} and {B} had quarrelled about a {T} and did not speak for {n} years. * When the river rose, {B} came with a boat and took {A} along. Neither of them thought of the {T} any more. | {A} and {B} had quarrelled about a {T}, but when the river rose, {B} saved {A}.
{A} wanted to teach the {N} to speak. * {He} repeated the same word for {n} weeks. The {N} said nothing. But one morning the postman heard it say, "{F}, please." | {A} taught a {N} to speak, and after {n} weeks it asked for {F}.
The roof of the {V} was leaking. * {A} put {n} buckets under it. The drops made such fine music that people came to listen and paid for a new roof. | The leaking roof of the {V} made such fine music that people paid for a new one.
{A} moved to {P} and knew nobody there. * {He} put a {T} in front of the door with the words "Please take it". {B} took it and came back with {F}. Now they are friends. | {A} knew nobody in {P} until {he} gave away a {T} and became friends with {B}.
{A} dreamed that there was a treasure {W}. * {He} dug for {n} days and found nothing but stones. But in the loose soil {F} grew better than ever. | {A} dug for a treasure and found only stones, but then {F} grew there better than ever.
It was {A}'s first day as a {J}. * {He} did everything wrong, and a guest even got salt in his tea. The guest only said that everybody begins like that. He was the owner of the {V}. | On {his} first day as a {J} {A} did everything wrong, but the owner of the {V} was kind.
{A} was the only one without a costume. * {He} wanted to go home. Then {B} tied a {O} cloth around {him}, and {A} won the prize for the best ghost. | {A} had no costume, but {B} tied a cloth around {him} and {he} won a prize.
{A} lent {B} {his} {T}. * {B} left it {W}, and it was gone. {B} worked as a {J} for {n} weeks and bought {A} a better one. | {B} lost the {T} that {A} had lent {him2} and worked until {he2} could buy a better one.
A young {N} lay {W} with a hurt leg. * {A} put it in a box with wool and fed it for {n} weeks. In {month} it went off on its own. | {A} fed a young {N} with a hurt leg until it could go off on its own.
The {F} of {A} were the best of {P}, but {he} did not tell anybody the recipe. * When {he} grew old, {he} wrote it on the wall of the {V}. Now everybody in {P} bakes them. | {A} kept the recipe of {his} {F} secret, but in the end {he} wrote it on a wall for everybody.
{A} painted the fence {O}. {B} wanted it to be {O2}. * In the night {B} painted it over, and the next night {A} did the same. Now every board has another colour, and both like it. | {A} and {B} fought about the colour of a fence, and now every board has another colour.
The radio said that it would be sunny. {A} left the umbrella at home. * It poured the whole day. Only {B}, who never listens to the radio, stayed dry. | {A} believed the radio and got wet, and {B} stayed dry.
{A} collected {Ts}. {He} had {n} of them, and there was no room for a bed any more. * So {he} gave one to every child in {P} and kept only the smallest. | {A} had so many {Ts} that {he} gave one to every child in {P}.
The well of {P} had run dry. * The {J} wanted to sell water for much money. Then {A} showed everybody a spring {W}, and the water was free. | When the well of {P} ran dry, {A} showed everybody a spring, so nobody had to buy water.
{A} could not sleep because the {N} of {B} was so loud. * {He} complained, but {B} only laughed. Then {A} bought a trumpet. After {n} nights the {N} slept in the cellar. | {B}'s {N} was too loud for {A}, until {A} bought a trumpet.
{A} found a message in a bottle {W}. * A girl from {Q} had written it {n} years ago. {A} answered, and the girl, now a {J}, came to visit. | {A} found an old message in a bottle and answered, and the writer came to visit.
During the {E} a string of {A}'s {I} broke. * {He} played on with the three others. The audience did not notice it and asked for more. | A string of {A}'s {I} broke during the {E}, but {he} played on and nobody noticed.
{A}, {B} and {C} found one {T} together. * Each of them wanted it. They decided that each would have it for one month. But after a month nobody wanted it any more. | {A}, {B} and {C} shared a {T}, and after a month nobody wanted it any more.
The wind blew {A}'s hat into the {V}. * The {J} would not let {him} in. {B}, who worked there, threw it out of the window, and it landed on {A}'s head. | The wind blew {A}'s hat into the {V}, and {B} threw it back out of the window.
{A} had to write about {Ns} for school and knew nothing about them. * {He} sat down {W} and watched one for {n} hours. The teacher read {his} text to the whole class. | {A} watched a {N} for {n} hours, and the teacher read {his} text about it to the class.
The snow was so high that {A} could not open the door. * {He} climbed out of the window and slid down. {n} children saw it and wanted to do the same, so {his} house became a slide. | {A} could not open the door because of the snow, and {his} house became a slide for the children.
{A} wanted to cut down the old tree {W}. * {B} showed {him} the nest of a {N} in it. {A} put the saw away and built a bench around the tree. | {A} wanted to cut down a tree, but because of a {N}'s nest {he} built a bench around it.
My {N} {B} is afraid of thunder. * {when1} there was a storm, and {B} hid in my bed. I was afraid too, but with {B} beside me I fell asleep. | In a storm, the {N} {B} hid in the writer's bed, and both felt better.
My cousin {A} bet that {he} could eat {n} plates of {F}. * After half of them {he} turned {O}. Now {he} does not even want to hear the word {F}. | {A} bet that he could eat {n} plates of {F}, and now {he} cannot even hear the word. | The cousin {A} ate too many {F}.
Our neighbour {B} never said hello. * Then my mother brought {him2} {F} when {he2} was ill. Now {he2} waves at us every morning. | The neighbour {B} never said hello, but after a gift of {F} {he2} waves every morning.
We drove to {P} to see the {V}. * After {n} hours we noticed that {A} was still {W}. We turned round, and {A} had not even missed us. | The family drove to {P} and forgot {A}, who had not even missed them.
{A} tried to build a {T} without reading the instructions. * At the end {n} screws were left over. It held for one day, then it fell on {his} foot. | {A} built a {T} without the instructions, and it fell on {his} foot. | The {T} that {A} built without the instructions fell apart.
The {J} told {A} to rest for {n} days. * {A} went skating on the second day and broke an arm as well. Now {he} has to rest for {m} weeks. | {A} did not rest as the {J} had said, broke an arm, and now has to rest for {m} weeks.
The app can now sort {Ts} by colour. * A fault was mended that made it stop when the list was empty. To get the new version, close it and open it again. | The new version of the app sorts {Ts} by colour and no longer stops when the list is empty.
The printer on floor {m} does not work. * It needs a part that comes on {day}. Please use the one {W}. | The printer on floor {m} does not work until a part comes on {day}.
The forest near {P} has been dry for {n} weeks. Nobody may make a fire there. * Those who do have to pay {m} hundred euros. | Nobody may make a fire in the forest near {P} because it is dry. | Fires are forbidden in the dry forest near {P}.
{Ns} sleep up to {n} hours a day. * They eat {F} and live {W}. Because there are only a few left, nobody may hunt them. | {Ns} sleep up to {n} hours a day and may not be hunted because only a few are left.
The bread in {P} has become dearer because the {J} has to pay more for flour. * One loaf now costs {m} euros. Many people bake at home. | The bread in {P} has become dearer because flour costs more, so many people bake at home.
{A} invented a machine that peels {F}. * It worked well, but it was as loud as a train. {He} sold only one, to {B}, who is deaf. | {A}'s machine for peeling {F} was so loud that only {B} bought one.
The captain wanted to sail on in spite of the fog. {A}, the cook, heard {Ns} cry and knew that land was near. * The captain stopped the ship just before the rocks. | {A}, the cook, heard {Ns} in the fog, and the captain stopped the ship before the rocks.
For {n} years nobody could open the {T} of {R}. * {A} tried every key of the house. Then little {B} pushed it instead of pulling, and it was open. | Nobody could open the {T} of {R}, until little {B} pushed it.
A rich {J} said that he would give his {V} to the one who made him laugh. * Clowns and singers tried in vain. Then {A} slipped on {F} at the door, and he laughed until he cried. | A rich {J} offered his {V} to anyone who made him laugh, and {A} did it by slipping on {F}.
The king of {P} wanted to know who was the wisest. * {n} men spoke for hours. {A} said only, "I do not know." The king made {him} his adviser. | The king of {P} looked for the wisest, and chose {A}, who said, "I do not know."
{A} lost {his} {T} [on the way to {P}|in the crowd|somewhere in {P}]. * {B}, a [young|friendly|retired] {J}, found it {W}. [As thanks|To say thank you] {A} brought {him2} {F}. | {A} lost {his} {T}, and {B} found it {W}. | {B} found the {T} that {A} had lost, and {A} brought {him2} {F}.
{A} broke the {T} of {B} [by accident|while dancing|while playing]. * {He} [saved every coin|worked in the {V}] for {n} weeks. Then {he} [put|laid] a new one in front of {B}'s door. | {A} broke {B}'s {T} and gave {him2} a new one after {n} weeks. | {A} broke the {T} of {B}, so {he} got {him2} a new one.
{A} borrowed a {T} from {B} and forgot to give it back. * [Years later|After {n} years] {he} found it {W}. {He} took the [train|bus] to {P} and gave it to {B}, who had long had another one. | {A} forgot to give back {B}'s {T} and brought it to {him2} years later.
{B} laughed at {A}'s {T} because it was so [old|ugly|small]. * But when the lights went out {W}, it was the only thing that [helped|worked]. {B} asked whether {he2} could have one too. | {B} laughed at {A}'s {T}, but it was the only thing that helped when the lights went out.
{A} the {J} [never took a day off|worked day and night]. * [One morning|At last] {he} fell asleep {W}. {B} did all the work for {him}, and when {A} woke up, everything was done. | {A} worked until {he} fell asleep, and {B} did all the work for {him}.
[Nobody in {P} would buy|No one wanted] {A}'s {F}. * Then {he} wrote "Only today" on a {U}. By noon [all of it was|everything was] sold. | {A} could not sell {his} {F} until {he} wrote "Only today" on a {U}.
{A} and {B} were rowing across the lake when an oar broke. * [They shouted, but nobody heard them.|Nobody was on the shore.] {A} took a {U} as an oar, and at midnight they reached {P}. | {A} and {B} broke an oar on the lake and came to {P} with a {U} instead.
The {M} of the {J} ate {n} {F} from the {V}. * The [owner|cook] was furious. The {J} had to [wash dishes|sweep the floor] there for a week. | A {J} had to work for a week because a {M} had eaten {F} from the {V}.
{A} wanted to be alone and climbed up to the {V}. * [But {B} was already there.|There sat {B}, who had wanted the same.] They said nothing for {n} hours, and both found it [wonderful|just right]. | {A} wanted to be alone, but {B} was there too, and they were silent together.
{A} said that {he} had seen a {O} {N} {W}. * Nobody believed {him}. {n} days later it walked through the middle of {P}, and everybody [said sorry|came to ask {him} about it]. | Nobody believed that {A} had seen a {O} {N}, until it walked through {P}.
{A} had a ticket for the {E} in {P}, but {he} was ill. * {He} gave it to {B}, who had never been to one. {B} told {him} everything so well that it was as if {A} had been there. | {A} was ill and gave the ticket for the {E} to {B}, who told {him} everything.
[For {n} days|All week] it had snowed, and {P} was cut off. * {A} went to {Q} on skis and came back with medicine for everybody. The children carried {him} through the streets. | {P} was cut off by the snow, and {A} brought medicine from {Q} on skis.
{A} set a trap for the {N} that stole {his} {F}. * In the morning {B} sat in it. {B} had wanted to set a trap too. | {A} set a trap for a {N} and caught {B} in it.
{A} learned {n} words of a new language for the trip to {P}. * When {he} arrived, {he} noticed that it was the wrong language. {He} bought {F} by pointing at them. | {A} had learned the wrong language for the trip to {P} and had to point at things.
{A} put a lamp in the window and lit it every evening. * A [sailor|stranger] saw it in the fog and found the way to the shore. He came to {A}'s door and [thanked {him}|brought {F}]. | {A}'s lamp in the window showed a lost man the way to the shore.
[When the {V} closed|After work], {A} heard a [cry|noise] from a box. * {He} opened it. Inside sat a small {N}, wet and cold. {A} took it home and called it {B}. | {A} found a small {N} in a box, took it home, and called it {B}.
The {J} and the {K} of {P} wanted to marry. * The ring fell into a pot of {F}. All guests had to eat until {A} bit on it, and then there was a great cheer. | At a wedding the ring fell into the {F}, and {A} found it by biting on it.
"Who will clean the {V}?" asked the {J}. * Nobody answered. Only {A} stood up and took a broom. At the end of the day {he} found {n} coins that somebody had hidden for [the one who helped|whoever cleaned it]. | Only {A} helped to clean the {V}, and {he} found {n} coins.
{A} threw the {T} away because it was [useless|too old]. * {B} took it out of the rubbish and [repaired|cleaned] it. Now it stands in the {V}, and {A} pays to look at it. | {A} threw away a {T}, {B} mended it, and now it stands in the {V}.
The {N} did not want to leave the {V}. * They tried it with {F}, with {G} and with a rope. Then {A} simply opened the other door, and the {N} walked out. | The {N} did not want to leave the {V}, until {A} opened the other door.
{A} wanted to send a letter to {B}, but {he} had no stamp. * {He} tied it to the leg of a {N}. It came to {P}, and there {C} read it and carried it to {B}. | {A} had no stamp, so {he} tied the letter for {B} to a {N}, and {C} carried it the rest of the way.
The fountain of {P} had been dry since {month}. * {A} looked into the pipe and found {n} {Ns} in it. The people of {P} decided to let them stay and to dig a pond. | The fountain of {P} was dry because of {n} {Ns} in the pipe, and the people let them stay.
The {J} had lost his voice and could not sing at the {E}. * {A}, who cleaned the {V}, knew every song. {He} sang in his clothes, and nobody noticed it until the end. | {A}, a cleaner, sang at the {E} because the {J} had lost his voice.
Nobody could lift the stone {W}. * The strongest men of {P} tried it. {A} dug a hole next to it, and the stone rolled in by itself. | Nobody could lift a stone, but {A} dug a hole and it rolled in.
{A} had a hole in {his} sack. * On the way to {P} all the {F} fell out, one by one. A year later there were green plants along the whole road. | {A} lost all the {F} through a hole in the sack, and a year later plants grew along the road.
{A} gave {his} seat to an old man on the bus. * The man got off and forgot his {T}. {A} ran after him, and it turned out that he was a famous {J}. | {A} gave {his} seat to an old man and brought him his {T}, and he was a famous {J}.
For {n} weeks {A} wrote a poem for {R}. * On the day of the party {he} could not find it. {He} spoke without a paper, and everybody had tears in their eyes. | {A} lost the poem for {R} and spoke without a paper, and everybody was moved.
The {N} of {B} barked at everyone but {A}. * "It knows who is kind," said {B}. The truth was that {A} always had {F} in {his} pocket. | {B}'s {N} liked {A} because {he} always had {F} in {his} pocket.
{A} bet that {he} could stay awake for {n} nights. * In the second night {he} fell asleep in the middle of a word. {B} won the {T}. | {A} bet that {he} could stay awake for {n} nights, but {he} fell asleep, and {B} won.
{A} got {n} letters for somebody with the same name. * {He} visited the other {A}, who had got {n} letters for {him}. They now have one mailbox. | {A} and somebody with the same name got each other's letters, and now they share a mailbox.
A {N} sat on the tracks near {P}, and the train could not go on. * The passengers tried to chase it away. When {A} played the {I}, it got up and followed {him} to the meadow. | A {N} stopped the train near {P}, and {A} led it away with music.
{A} wanted to be brave and slept in the {V} alone. * At midnight the door creaked. It was {B}, who was afraid at home and wanted company. | {A} wanted to sleep in the {V} alone, but {B} came because {he2} was afraid.
{A} had to choose between the {T} and the {U}. * {He} thought about it for so long that the shop closed. The next day both were sold. | {A} thought for so long about the {T} and the {U} that both were sold.
{A} told {B} a secret. {B} told it to {C}. * {C} told it to everybody in {P}. In the evening {A} heard it from the {J} as the latest news. | {A} told {B} a secret, and in the evening all of {P} knew it.
{A} had never won anything. * At the {E} {he} bought the last ticket, number {n}. {He} won a {N}. Now {he} needs a garden. | {A}, who had never won anything, won a {N} at the {E}.
The computer of the {V} was down, and nobody could get a ticket. * {A} wrote tickets by hand until midnight. The guests kept them as a souvenir. | The computer of the {V} was down, so {A} wrote all tickets by hand.
{A} promised {B} to be there at {m} o'clock. * The bus had a flat tyre. {A} ran the last {n} kilometres, and when {he} arrived, {B} was late too. | {A} ran to {B} because the bus broke down, but {B} was late too.
The {J} of {P} put a box of books in front of the {V}. * Everybody may take one and put one in. After {n} months there were more books than before. | A {J} put a box of books in front of the {V}, and after {n} months it held more than before.
The frost killed the plums of the farmers near {P}. * {A} kept a fire burning all night between the trees. {His} were the only plums of that year, and {he} shared them. | Frost killed the plums near {P}, but {A} saved {his} with a fire and shared them.
{A} thought that everybody had forgotten {his} birthday. * {He} went home sadly. When {he} opened the door, {B}, {C} and all the others were standing there with {F}. | {A} thought that everybody had forgotten {his} birthday, but they were waiting at home with {F}.
{A} was learning to ride a bicycle. * {He} fell {n} times. When {B} let go without saying so, {A} rode to the end of the street and did not even notice. | {A} fell {n} times, but when {B} let go, {he} could ride a bicycle.
A stranger came to {P} and asked for a bed. * Everybody sent him away. Only {A}, who had just one bed, gave it to him and slept on the floor. In the morning there was a {T} of gold on the table. | Only {A} gave a stranger a bed, and in the morning {he} found a {T} of gold.
The {N} wanted feathers like the {M}. * It picked up some and stuck them on with honey. The others laughed, and the bees came. Then it jumped into the pond and was content with itself. | A {N} stuck on feathers to be like a {M}, was laughed at, and then was content with itself.
The {N} boasted of its {n} tricks. The {M} knew only one: to climb. * When the hunter came, the {M} climbed a tree. The {N} was still choosing a trick when it was caught. | The {N} knew {n} tricks and was caught, and the {M} knew only one and got away.
A {N} hid its {F} so well that it could not find them again. * In spring a little tree grew there. Its children still eat from it. | A {N} could not find its hidden {F}, and a tree grew out of them.
The wind and the river argued about who could make {A} take off {his} coat. * The wind blew, and {A} held it tight. The river shone in the sun, and {A} took it off and went swimming. | The wind and the river argued about who could make {A} take off the coat, and the river won.
Our teacher Mrs. {L} is leaving the school in {month}. * She has taught here for {n} years. The class is collecting money for a {T}. | Mrs. {L} is leaving the school in {month}, and the class is collecting money for a present.
Children can learn the {I} at the {V} from {month} on. * The lessons are on {day} and cost nothing. Those who have no {I} can borrow one. | Children can learn the {I} at the {V} for free from {month} on.
The train to {P} leaves from track {m} today, not from track {m2}. * It is about {n} minutes late. We are sorry for the trouble. | The train to {P} leaves from track {m} and is about {n} minutes late.
The heating in the {V} will be switched off on {day} from {m} o'clock. * A {J} has to change a valve. Please dress warmly. | The heating in the {V} will be off on {day} because a valve has to be changed.
The garden {W} has been left to us by {B}. * We want to grow flowers there. Whoever would like to help can come on {day} at {m} o'clock. | A garden was left by {B}, and people who want to help to grow flowers can come on {day}.
The water {W} is not clean at the moment. * Please do not drink it and do not swim in it. We will tell you when it is safe again. | The water {W} is not clean, so people should not drink it or swim in it.
Our shop has been sold. * From {month} on, {A} will sell {F} here instead of {Ts}. We thank all customers for {n} good years. | The shop has been sold, and from {month} on {A} will sell {F} here.
{A} is the new {J} of {P}. * {He} comes from {Q} and has done this work for {n} years. The old one, {B}, wants to travel. | {A} from {Q} is the new {J} of {P}, because {B} wants to travel.
I was late for work because a {N} was sitting in my car. * I did not dare to open the door. My boss did not believe me until I showed her the photo. | The writer was late for work because a {N} was sitting in the car.
Yesterday I found my old {T} {W}. * I had thought that {B} had taken it, and I had not spoken to {him2} for {n} years. Today I called and said sorry. | The writer had blamed {B} for taking a {T}, found it, and said sorry.
My sister wanted to dye her hair {O}. * It became {O2}. She cried for an hour, and then half of her class asked her how she had done it. | The sister's hair became {O2} instead of {O}, and then others wanted the same.
When I was small, my {R1s} told me that the {N} {W} could talk. * I talked to it every day for {n} weeks. It never answered, but it listened better than anybody else. | As a child the writer talked to a {N} that never answered, but listened.
{A} was always late. * {R2} set all the clocks of the house {m} minutes ahead. The next day {A} came to school so early that it was still locked. | {A} was always late, so {R0} set the clocks ahead, and then {he} was too early.
""")

# Texts to ask about: the sentences, and questions with their answers. The slots are the same.
NARRATIVES = rows("""
{A} the {N} could not hear well, because {he} had grown old. When the {M} shouted "Fire!" {n} times, {A} went on eating {F}. {B} ran into the {V} and pulled {him} out by the ear. Now {B} sits next to {A} and tells {him} everything that is said. | Who could not hear well? = {A} | Why could {A} not hear well? = Because {he} had grown old | How many times did the {M} shout? = {n} | Who shouted? = The {M} | What did the {M} shout? = "Fire!" | What was {A} eating? = {F} | Who pulled {A} out? = {B} | Who is the story about? = {A}, the {N} | What is {A}? = A {N} | What does {B} do now? = {B} tells {A} everything that is said
{A} wanted to taste {F}, but {he} had no money. So {he} swept the yard of the {J} for {n} hours. The {J} gave {him} a whole bag. On the way home {he} met {B}, who was crying, and gave {him2} half of it. | What did {A} want to taste? = {F} | Why did {A} sweep the yard? = Because {he} had no money | How long did {A} sweep the yard? = {n} hours | Who gave {A} a bag? = The {J} | Whom did {A} meet? = {B} | Who was crying? = {B} | Whose yard did {A} sweep? = The yard of the {J} | What did {A} give to {B}? = Half of the {F}
{B} keeps {n} {Ns} {W}. {When} {he2} feeds them with {F}, and on {day} {he2} brings the milk to {P}. {His2} {T} hangs at the door. The oldest {N} is called {C}. | How many {Ns} does {B} keep? = {n} | Where does {B} keep the {Ns}? = {W} | What do the {Ns} get to eat? = {F} | When does {B} bring the milk to {P}? = On {day} | What does {B} do on {day}? = {B} brings the milk to {P} | What is the oldest {N} called? = {C} | Where does the {T} hang? = At the door
{A} and {B} went to {P} by train. {A} carried a {T}, and {B} carried a box of {F}. In {Q} a {J} got on and sat down next to {B}. When the train stopped, {B} had fallen asleep, and the {J} woke {him2}. | How did {A} and {B} go to {P}? = By train | What did {A} carry? = A {T} | What did {B} carry? = A box of {F} | Where did the {J} get on? = In {Q} | Who got on in {Q}? = A {J} | Who fell asleep? = {B} | Who woke {B}? = The {J} | Next to whom did the {J} sit? = {B}
At {m} o'clock {A} heard a noise {W}. {He} took a {T} and went out. There was a {N} with {n} young ones. {A} was not afraid, because {he} had seen {Ns} before. {He} gave them {F} and went back to bed. | When did {A} hear a noise? = At {m} o'clock | Where was the noise? = {W} | What did {A} take? = A {T} | How many young ones were there? = {n} | Why was {A} not afraid? = Because {he} had seen {Ns} before | What did {A} give them? = {F} | What did {A} do in the end? = {He} went back to bed
{A}, a {J}, has a shop {W}. It is open from {m} to {m2} o'clock, but not on {day}. {He} sells {Ts} and {F}. The {Ts} cost {n} coins each. {B} helps {him} on {day2}. | What is {A}? = A {J} | Where is the shop? = {W} | When is the shop closed? = On {day} | What does {A} sell? = {Ts} and {F} | How much is a {T}? = {n} coins | Who helps {A}? = {B} | When does {B} help? = On {day2} | Is the shop open on {day}? = No, it is closed on {day}
The {V} of {P} is {n} hundred years old. A {J} named {L} built it, and it took {m} years. Its door is {O}. Every {day} {A} shows it to visitors, and children may ring the bell. | How old is the {V}? = {n} hundred years | Who built the {V}? = A {J} named {L} | How long did it take? = {m} years | Is the door {O2}? = No, it is {O} | What colour is the door? = {O} | Who shows the {V} to visitors? = {A} | When is it shown? = Every {day} | What may children do? = They may ring the bell
{A} got a parcel from {R}. In it there were {n} {Ts} and a letter. "Give one of them to {B}," said the letter. {A} gave {B} the smallest one. {B} was so happy that {he2} danced {W}. | From whom did {A} get a parcel? = From {R} | How many {Ts} were in it? = {n} | What was in the parcel? = {n} {Ts} and a letter | What did the letter say? = "Give one of them to {B}" | Which one did {A} give to {B}? = The smallest one | Why did {B} dance? = Because {he2} was happy | Where did {B} dance? = {W}
When {A} was a child, {he} lived in {P} with {R}. There was no school, so {R0} taught {him} to read {W}. Later {he} became a {J} in {Q}. Today {he} has {n} {Ns} and writes books about {Ts}. | Where did {A} live as a child? = In {P} | Why did {A} not go to school? = Because there was no school | Who taught {A} to read? = {R0} | What did {A} become? = A {J} | How many {Ns} does {A} have? = {n} | What does {A} write about? = About {Ts} | Where did {A} learn to read? = {W}
The {N} was hungry and asked the {M} for {F}. "First you must fetch water," said the {M}. The {N} fetched {n} buckets. Then they ate together {W}, and the {M2} was allowed to join them. | Who was hungry? = The {N} | What did the {N} ask for? = {F} | What did the {N} have to do? = Fetch water | How many buckets did the {N} fetch? = {n} | Where did they eat? = {W} | Who was allowed to join them? = The {M2} | Whom did the {N} ask? = The {M}
{A} has two {Ns}, {B} and {C}. {B} is {O} and likes {F}. {C} is {O2} and sleeps {W}. In {month} they will move to {P} together, because the rent has become too high. | What are the {Ns} called? = {B} and {C} | What colour is {B}? = {O} | What colour is {C}? = {O2} | Which of them likes {F}? = {B} | Where does {C} sleep? = {W} | When will they move? = In {month} | Where will they move? = To {P} | Why will they move? = Because the rent has become too high | Is {B} {O2}? = No, {B} is {O}
On {day} {A} climbed up to the {V} with {B}. It took {n} hours. At the top they found a {T} that {C} had lost. {A} was thirsty, but {B} had forgotten the water, so they ate {F}. On {day2} they brought the {T} back to {C}. | When did {A} climb up to the {V}? = On {day} | How long did it take? = {n} hours | What did they find? = A {T} | Who had lost the {T}? = {C} | Who had forgotten the water? = {B} | Who was thirsty? = {A} | What did they eat? = {F} | When did they bring the {T} back? = On {day2}
Dear {B}, the {E} is on {day} at {m} o'clock {W}. Please bring {n} plates and the {T}. {C} will pick you up with the car, because your bicycle is broken. Yours, {A} | Who wrote this? = {A} | Who is the letter for? = {B} | When is the {E}? = On {day} at {m} o'clock | Where is the {E}? = {W} | What should {B} bring? = {n} plates and the {T} | How many plates are needed? = {n} | Who will pick {B} up? = {C} | Why will {C} pick {B} up? = Because {B}'s bicycle is broken
""")


def narrative(rng):
    """A passage to ask about."""
    s = slots(rng)
    s |= {"When": rng.choice(["Every morning", "Every evening", "At noon"]), "His2": capital(s["his2"])}
    told, *pairs = rng.choice(NARRATIVES)
    text = joined(fill(rng, told, s))
    if rng.random() < 0.3:
        text = f"{lexicon.scenery(rng)} {text}"
    filled = [pair.split(" = ") for pair in pairs]
    questions = [(fill(rng, question, s), capital(fill(rng, reply, s)) + ("" if reply.endswith('"') else ".")) for question, reply in filled]
    return {"text": text, "questions": questions}


EVENTS = "concert|race|flea market|play|football game|fair|spelling contest|summer party|wedding|exhibition|parade|reading|chess tournament|school feast|dance|lecture|picnic|market".split(
    "|"
)
INSTRUMENTS = "violin guitar harp cello banjo lute zither mandolin".split()


def slots(rng):
    a = Person(rng)
    b = Person(rng, (a.name,))
    c = Person(rng, (a.name, b.name))
    things, animals = rng.sample(lexicon.THINGS, 2), rng.sample(lexicon.ANIMALS, 3)
    looks = [f"{rng.choice(lexicon.LOOKS)} " if rng.random() < 0.4 else "" for _ in range(2)]
    foods, jobs = rng.sample(lexicon.SNACKS, 2), rng.sample(lexicon.JOBS, 2)
    spots, days = rng.sample(lexicon.SPOTS, 2), rng.sample("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(), 2)
    colours = rng.sample(lexicon.COLOURS, 2)
    relative = rng.choice(["mother", "father", "grandmother", "grandfather", "aunt", "uncle"])
    when = rng.choice(lexicon.TIMES)
    numbers = rng.sample("three four five six seven eight nine ten eleven twelve".split(), 3)
    return {
        "A": a.name,
        "B": b.name,
        "C": c.name,
        "he": a.he,
        "him": a.him,
        "his": a.his,
        "He": capital(a.he),
        "he2": b.he,
        "him2": b.him,
        "his2": b.his,
        "kindA": a.kind,
        "T": looks[0] + things[0],
        "Ts": looks[0] + lexicon.plural(things[0]),
        "U": looks[1] + things[1],
        "Us": lexicon.plural(things[1]),
        "t": things[0],
        "N": animals[0],
        "Ns": lexicon.plural(animals[0]),
        "M": animals[1],
        "M2": animals[2],
        "F": foods[0],
        "G": foods[1],
        "J": jobs[0],
        "Js": lexicon.plural(jobs[0]),
        "K": jobs[1],
        "P": lexicon.town(rng),
        "Q": lexicon.town(rng),
        "W": spots[0],
        "X": spots[1],
        "V": rng.choice(lexicon.VENUES),
        "when": when,
        "when1": capital(when),
        "n": numbers[0] if rng.random() < 0.8 else str(rng.randrange(13, 99)),
        "m": numbers[1],
        "m2": numbers[2],
        "day": days[0],
        "day2": days[1],
        "month": rng.choice("January February March April May June July August September October November December".split()),
        "O": colours[0],
        "O2": colours[1],
        "R": f"{a.his} {relative}",
        "R0": capital(relative),
        "R1": f"My {relative}",
        "R2": capital(f"{a.his} {relative}"),
        "R1s": relative,
        "His": capital(a.his),
        "L": lexicon.family(rng),
        "E": rng.choice(EVENTS),
        "I": rng.choice(INSTRUMENTS),
    }


def joined(text):
    """Sentences that begin with a capital, with one space between them."""
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"([.!?] |\.\" )([a-z])", lambda match: match.group(1) + match.group(2).upper(), capital(text))


def scene(rng):
    """A passage."""
    s = slots(rng)
    told, *summaries = rng.choice(SCENES)
    is_tale = not told.startswith(("Dear", "Hi ", "To all", "Found", "Lost", "For sale", "The app", "The printer", "Please", "The lift", "{Ns} sleep"))
    detail = lexicon.scenery(rng) if is_tale and rng.random() < 0.45 else ""
    text = joined(fill(rng, told.replace("*", detail), s))
    summaries = [capital(joined(fill(rng, summary, s))) for summary in summaries]
    if s["kindA"] and told.startswith("{A} ") and not told.startswith("{A} and") and rng.random() < 0.7:
        # The hero is somebody with a kind: a fox, a baker.
        text = text.replace(s["A"], f"{s['A']} {s['kindA']}", 1)
        if rng.random() < 0.5:
            summaries = [re.sub(rf"^{re.escape(s['A'])} ", f"{s['A']} {s['kindA']} ", one) for one in summaries]
    questions = [(rng.choice(["What is the text about?", "What is this about?", "What happened?", "What is this text about?"]), rng.choice(summaries))]
    if "Yours" not in text and told.startswith(("{A} ", "The {T} of {A}")) and "{A} and" not in told:
        questions.append(
            (rng.choice(["Who is the text about?", "Who is this about?", "Who is the story about?"]), rng.choice([f"It is about {s['A']}.", f"{s['A']}."]))
        )
    return {"text": text, "summaries": summaries, "questions": questions}
