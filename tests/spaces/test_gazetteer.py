"""The gazetteer: boxes that hold their cities, names that are found."""

import pytest

from murmurate.errors import ParameterError
from murmurate.spaces.gazetteer import cities, cities_around, city, looks_swapped, outward


def test_every_box_holds_its_city_and_stays_a_city():
    assert len(cities()) > 300
    assert len({(one.name, one.country) for one in cities()}) == len(cities())
    for one in cities():
        south, west, north, east = one.box
        assert south < one.lat < north, one
        assert west < one.lng < east, one
        assert north - south < 2, one
        assert east - west < 3, one


def test_names_are_found_in_any_case_and_others_are_suggested():
    assert city("new york").country == "US"
    assert city("San Jose, CR").country == "CR"
    with pytest.raises(ParameterError, match="Did you mean 'Helsinki'"):
        city("Helsinky")


@pytest.mark.parametrize("name", ["Rome", "Porto", "San Francisco", "Beijing", "New York", "Helsinki", "Sydney", "Sao Paulo"])
def test_swapped_places_are_noticed_in_every_region(name):
    one = city(name)
    assert not looks_swapped([one.lat], [one.lng])
    assert looks_swapped([one.lng], [one.lat])


def test_places_in_no_city_are_left_alone():
    assert not looks_swapped([0.0], [-30.0])
    assert cities_around([0.0], [-30.0]) == []


def test_boxes_are_rounded_outward():
    assert outward((41.83, 12.41, 41.97, 12.58)) == (41.8, 12.4, 42.0, 12.6)
    assert outward((-33.91, -71.0, -33.9, -70.91)) == (-34.0, -71.0, -33.9, -70.9)
    assert outward((-90, -180, 90, 180)) == (-90, -180, 90, 180)


def test_places_of_two_cities_and_places_far_off_name_the_same_cities_as_a_look_at_each():
    lat = [city("Rome").lat] * 6 + [city("Helsinki").lat] * 3 + [-80.0]
    lng = [city("Rome").lng] * 6 + [city("Helsinki").lng] * 3 + [170.0]
    each = {one.name: one.share_of(lat, lng) for one in cities() if one.share_of(lat, lng) >= 0.2}
    assert {one.name: share for one, share in cities_around(lat, lng, min_share=0.2)} == each
    assert {"Rome", "Helsinki"} <= each.keys()
    assert cities_around([], []) == []
