"""Turn plans into journeys: when people leave, the links they drive, when they arrive."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.demo.draws import DRIVES, bell, stream, uniform
from murmurate.demo.network import StreetMap
from murmurate.demo.people import HOME_AT, MAIN_AT, TASTE
from murmurate.demo.places import FOOD, WORK, Places
from murmurate.demo.traffic import link_times, state_of, towards, tree_towards
from murmurate.demo.weeks import blank_diary, plan_day, today_of
from murmurate.spaces.road.routing import Graph

DAY_S = 86_400
"""Seconds in a day."""
STEPS_A_DAY = 72
"""Steps of a daily trace, 20 minutes each."""


class Roads(NamedTuple):
    """Streets as arrays, and the routes found so far (kept, because people repeat themselves)."""

    out_offsets: Integers
    link_to: Integers
    length_m: Floats
    drive_s: Floats
    wait_s: Floats
    felt_ms: Floats
    in_offsets: Integers
    in_links: Integers
    link_from: Integers
    next_slot: NDArray[np.int8]
    """[state and taste, target, node]: which of the node's links leads to the target."""
    known: NDArray[np.bool_]


class Doors(NamedTuple):
    """Places as arrays."""

    node: Integers
    x: Floats
    y: Floats
    lunch: Integers
    """The three nearest places to eat from each place."""
    first_business: int
    """Homes come first in the list of places."""


class Journeys(NamedTuple):
    """One row a journey, and the links of all of them end to end."""

    person: Integers
    number: Integers
    """Counted from 0 for each person."""
    origin: Integers
    destination: Integers
    purpose: Integers
    depart_s: Integers
    """Local seconds since the first midnight."""
    arrive_s: Integers
    offsets: Integers
    link: Integers
    reached_ms: Integers
    """When a link's end is reached, since departure."""
    left_ms: Integers
    """When it is left again, after waiting there."""


def roads_of(streets: StreetMap, *, seed: int) -> Roads:
    """Compute travel times for every state of the streets; routes are found when first needed."""
    network = streets.network
    drive, wait, felt = link_times(network.length_m, network.speed_kmh, network.road_class, seed=seed)
    back = towards(network.link_from, network.link_to, network.n_nodes, felt[0, 0])
    n = network.n_nodes
    return Roads(
        streets.out_offsets,
        np.array(network.link_to),
        np.array(network.length_m),
        drive,
        wait,
        felt.reshape(-1, network.n_links).astype(np.float64),
        back.offsets,
        back.links,
        back.link_to,
        np.empty((felt.shape[0] * felt.shape[1], n, n), dtype=np.int8),
        np.zeros((felt.shape[0] * felt.shape[1], n), dtype=np.bool_),
    )


def doors_of(places: Places) -> Doors:
    """Return the places with the nearest places to eat."""
    first, last = places.starts[FOOD], places.starts[FOOD + 1]
    gap = np.hypot(places.x[:, None] - places.x[None, first:last], places.y[:, None] - places.y[None, first:last])
    return Doors(
        places.node, places.x, places.y, first + np.argsort(gap, axis=1, kind="stable")[:, :3], int(places.starts[WORK])
    )


def travel(people: Integers, first: int, days: int, roads: Roads, doors: Doors, *, seed: int) -> Journeys:
    """Return every journey of these people over the days."""
    return _travel(people, first, days, roads, doors, seed)


@njit(cache=True, nogil=True)
def _find_routes(roads: Roads, which: int, target: int) -> None:
    streets = Graph(roads.in_offsets, roads.in_links, roads.link_from, roads.felt_ms[which], roads.length_m)
    via, _ = tree_towards(streets, target)
    for node in range(len(via)):
        roads.next_slot[which, target, node] = via[node] - roads.out_offsets[node] if via[node] >= 0 else -1
    roads.known[which, target] = True


@njit(cache=True, nogil=True)
def _travel(  # noqa: PLR0917
    people: Integers, first: int, days: int, roads: Roads, doors: Doors, seed: int
) -> Journeys:
    capacity = len(people) * days * 4 + 64
    trips = np.empty((7, capacity), dtype=np.int64)
    offsets = np.zeros(capacity + 1, dtype=np.int64)
    links = np.empty((3, capacity * 40), dtype=np.int64)
    n_trips, n_links = 0, offsets[0]  # 0, of the type that `_drive` returns: it is compiled once
    diary = blank_diary()
    for position in range(len(people)):
        row = people[position]
        person = first + position
        here, free_from, number = row[HOME_AT], 0, 0
        across = abs(doors.x[here] - doors.x[row[MAIN_AT]]) + abs(doors.y[here] - doors.y[row[MAIN_AT]])
        around = (2.0 + across / 420.0, doors.lunch[row[MAIN_AT]], doors.first_business, len(doors.node))
        for day in range(days):
            plan_day(today_of(seed, person, day, row, around), diary)
            for line in range(diary.lines[0]):
                target, meant_s = diary.place[line], diary.leave_min[line] * 60
                depart = max(int(meant_s), free_from + 300)
                missed = depart > meant_s + 5400 and target != row[HOME_AT]
                if missed or doors.node[target] == doors.node[here]:
                    continue
                if n_trips == capacity:
                    capacity *= 2
                    trips = _grown(trips, capacity)
                    offsets = _grown(offsets.reshape(1, -1), capacity + 1)[0]
                state = stream(seed, DRIVES, person, number)
                if links.shape[1] < n_links + len(roads.out_offsets):
                    links = _grown(links, 2 * links.shape[1] + len(roads.out_offsets))
                before = n_links
                n_links = _drive(state, depart, row[TASTE], doors.node[here], doors.node[target], roads, links, n_links)
                arrive = depart + (links[2, n_links - 1] + 999) // 1000
                if arrive >= days * DAY_S:
                    n_links = before
                    break
                trips[0, n_trips], trips[1, n_trips], trips[2, n_trips] = person, number, here
                trips[3, n_trips], trips[4, n_trips], trips[5, n_trips], trips[6, n_trips] = (
                    target,
                    diary.purpose[line],
                    depart,
                    arrive,
                )
                n_trips += 1
                offsets[n_trips] = n_links
                here, free_from, number = target, arrive, number + 1
    kept, driven = trips[:, :n_trips], links[:, :n_links]
    return Journeys(
        kept[0].copy(), kept[1].copy(), kept[2].copy(), kept[3].copy(), kept[4].copy(), kept[5].copy(), kept[6].copy(),
        offsets[: n_trips + 1].copy(), driven[0].copy(), driven[1].copy(), driven[2].copy(),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _grown(table: Integers, capacity: int) -> Integers:
    larger = np.zeros((table.shape[0], capacity), dtype=np.int64)
    for row in range(table.shape[0]):  # a slice would bring numba's messages about shapes along, seconds of compilation
        for column in range(table.shape[1]):
            larger[row, column] = table[row, column]
    return larger


@njit(cache=True, nogil=True)
def _drive(  # noqa: PLR0917
    state: NDArray[np.uint64], depart: int, taste: int, start: int, end: int, roads: Roads, links: Integers, n: int
) -> int:
    """Append the links of one drive with the times their ends are reached and left."""
    street_state = state_of(depart % DAY_S, (depart // DAY_S) % 7)
    which = 2 * street_state + taste
    if not roads.known[which, end]:
        _find_routes(roads, which, end)
    pace = 1.0 + 0.06 * bell(state)
    now, node = 0.0, start
    while node != end:
        link = roads.out_offsets[node] + roads.next_slot[which, end, node]
        now += roads.drive_s[street_state, link] * pace
        links[0, n], links[1, n] = link, int(now * 1000)
        node = roads.link_to[link]
        if node != end and uniform(state) < 0.5:
            now += 4.0 * roads.wait_s[street_state, link] * uniform(state)
        links[2, n] = int(now * 1000)
        n += 1
    return n


@njit(cache=True, nogil=True)
def daily_places(  # noqa: PLR0917
    homes: Integers, first: int, days: int, person: Integers, destination: Integers, arrive_s: Integers
) -> NDArray[np.int32]:
    """Return [person, day, step of 20 minutes]: the place at the middle of the step; while travelling, the one of departure."""
    step_s = DAY_S // STEPS_A_DAY
    out = np.empty((len(homes), days, STEPS_A_DAY), dtype=np.int32)
    trip = 0
    for position in range(len(homes)):
        here = homes[position]
        for day in range(days):
            for step in range(STEPS_A_DAY):
                middle = day * DAY_S + step * step_s + step_s // 2
                while trip < len(person) and person[trip] == first + position and arrive_s[trip] <= middle:
                    here = destination[trip]
                    trip += 1
                out[position, day, step] = here
        while trip < len(person) and person[trip] == first + position:
            trip += 1
    return out
