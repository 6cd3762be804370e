"""Classes that the cases name; nothing imports this file."""

import functools
import json

import ray


class Counter:
    """A total that calls add to."""

    def __init__(self, start=0):
        self.total = start

    def inc(self, x):
        self.total += x
        return self.total

    def add(self, x, y):
        return x + y

    def echo(self, value):
        return value

    def several(self, *values):
        return list(values)

    def split(self, x):
        return x, -x

    @ray.method(num_returns=2)
    def halves(self, x):
        return x / 2, x / 2

    def forget(self, x):
        self.total = 0

    def bare():
        return 0

    @property
    def size(self):
        return self.total


class Model:
    """A model with a constructor that needs something."""

    def __init__(self, hidden, layers=2, *, device="cpu"):
        self.hidden = hidden

    def forward(self, x, scale=1.0):
        return x

    def generate(self, x, *, seed):
        return x


Decoder = json.JSONDecoder
add = functools.partial(max, 0)


@functools.lru_cache
def cached(x):
    return x


def wrapped(function):
    return function


class Patched:
    """A class of which not everything can be known."""

    def __getattr__(self, name):
        return self.inc


def batch(size, seed=0):
    return [seed] * size


class Streams:
    async def later(self, x):
        return x

    def parts(self, x):
        yield x
