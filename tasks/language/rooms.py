"""Generated stories of people and things that move between rooms, after the tasks of bAbI (Weston et al., 2015).

    Ada is in the hall. Carl is in the attic. Mary is in the hall. The key is in the attic. The map is in the hall.
    Carl takes the key. Carl goes from the attic to the cellar. Where is the key? In the cellar. ...

What follows depends on sentences further back: who is there, the room that a person leaves, the thing that a person
can take or drop, and every answer.
"""

from dataclasses import dataclass, field
from random import Random

_PEOPLE = ("Ada", "Alan", "Carl", "Emmy", "Grace", "Kurt", "Mary", "Sofia")
_ROOMS = ("attic", "bathroom", "cellar", "garage", "garden", "hall", "kitchen", "office")
_THINGS = ("apple", "book", "clock", "hat", "key", "lamp", "map", "ring")
_EVENTS = 7

LONGEST = 3 * 6 + 2 * 7 + 9 * _EVENTS
"""Maximum number of words and punctuation marks of a story."""


def stories(number: int, seed: int) -> tuple[str, ...]:
    """Return so many stories: where three people and two things are, and seven events or questions."""
    random = Random(seed)  # noqa: S311  # data, not secrets
    return tuple(_story(random) for _ in range(number))


@dataclass(frozen=True)
class House:
    """The state of a story.

    Attributes:
        rooms: Rooms that occur.
        room: Room of each person and thing.
        holder: Person who holds a thing, of each that is held.
    """

    rooms: list[str]
    room: dict[str, str]
    holder: dict[str, str] = field(default_factory=dict)

    def move(self, person: str, room: str) -> None:
        """Move a person with what the person holds."""
        things = [thing for thing, holder in self.holder.items() if holder == person]
        self.room.update(dict.fromkeys((person, *things), room))


def _story(random: Random) -> str:
    people, things, rooms = random.sample(_PEOPLE, 3), random.sample(_THINGS, 2), random.sample(_ROOMS, 4)
    house = House(rooms, {name: random.choice(rooms) for name in (*people, *things)})
    places = [f"{person} is in the {house.room[person]}." for person in people]
    places += [f"The {thing} is in the {house.room[thing]}." for thing in things]
    events = [_event(house, random.choice(people), random.choice(things), random) for _ in range(_EVENTS)]
    return " ".join(places + events)


def _event(house: House, person: str, thing: str, random: Random) -> str:
    """Return a sentence about a person, a thing or both, and change the house accordingly."""
    here, holder = house.room[person], house.holder.get(thing)
    is_near = holder is None and house.room[thing] == here
    possible = ["move", "find person", "find thing", *["take"] * is_near, *["drop"] * (holder == person)]
    match random.choice(possible):
        case "move":
            there = random.choice([room for room in house.rooms if room != here])
            house.move(person, there)
            return f"{person} goes from the {here} to the {there}."
        case "take":
            house.holder[thing] = person
            return f"{person} takes the {thing}."
        case "drop":
            del house.holder[thing]
            return f"{person} drops the {thing}."
        case "find person":
            return f"Where is {person}? In the {here}."
        case _:
            return f"Where is the {thing}? In the {house.room[thing]}."
