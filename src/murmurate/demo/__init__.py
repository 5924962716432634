"""Public data made here: the built-in city and Tony-900."""

from murmurate.demo.city import City, Daily, Truth, city, city_partitions
from murmurate.demo.files import write_city, write_tony900
from murmurate.demo.tony900 import Skaters, skate, tony900

__all__ = ["City", "Daily", "Skaters", "Truth", "city", "city_partitions", "skate", "tony900", "write_city", "write_tony900"]
