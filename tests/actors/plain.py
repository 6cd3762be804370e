"""The user's classes that the engine tests run; plain Python."""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import sys
import threading
import time


class Counter:
    def __init__(self, start: int = 0) -> None:
        self.n = start

    def inc(self, x):
        self.n += 1
        return x + self.n

    def dbl_inc(self, x):
        self.n *= 2
        self.n += 1
        return x + self.n

    def add(self, *values, scale=1):
        return sum(values) * scale

    def keyword_only(self, *, a, b=10):
        return a * b

    def positional_only(self, a, b, /, c):
        return (a, b, c)

    def total(self, xs, bias=0):
        assert type(xs) is list
        return sum(xs) + bias

    def whole(self, pair):
        assert type(pair) is tuple
        return pair

    def two(self, x):
        return x, x * 10

    def two_as_list(self, x):
        return [x, x * 10]

    def one_tuple(self, x):
        return (x + 1,)

    def note(self, x):
        self.n += x

    def seen(self):
        return self.n

    def constant(self, k):
        return k

    def echo(self, x):
        return x

    def pid(self, x):
        return os.getpid()

    def say(self, x):
        print("said", x)
        print("complained", x, file=sys.stderr)
        os.system("echo from a child")
        return x


class Trouble:
    def raises(self, x):
        if x < 0:
            raise ValueError(f"negative: {x}")
        return x

    def odd_error(self, x):
        class Local(Exception):
            def __init__(self, a, b):
                super().__init__("odd", a, b)
                self.lock = threading.Lock()

        raise Local(1, 2)

    def exits(self, x):
        raise SystemExit(3)

    def is_cancelled(self, x):
        raise asyncio.CancelledError("no more")

    def interrupts(self, x):
        if x < 0:
            raise KeyboardInterrupt("mine")
        return [x]

    def three(self, x):
        return x, x, x

    def lock(self, x):
        return {"lock": threading.Lock(), "x": x}

    def task_error(self, x):
        """What ``ray.get`` raised, kept and returned."""
        from ray.exceptions import RayTaskError

        return RayTaskError("elsewhere", "a page of text", ValueError("theirs")) if x < 0 else [x]

    def task_errors(self, x):
        return x, self.task_error(x)

    def stubborn(self, x):
        return Stubborn() if x < 0 else [x]

    def hidden(self, x):
        """An object whose class only this process can import."""
        import types

        module = types.ModuleType("only_here")
        exec("class Thing:\n    def __init__(self, x): self.x = x\n", module.__dict__)
        sys.modules["only_here"] = module
        return module.Thing(x)

    def die(self, x):
        if x < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    def sleep(self, x):
        time.sleep(x)
        return x

    def meet(self, x, mine, other):
        """Waits for the other, which waits for this one: neither says that it is there before the other did."""
        while x and not os.path.exists(other):
            time.sleep(0.01)
        open(mine, "w").close()
        return x

    def linger(self, x):
        """Takes its time when its process ends."""
        atexit.register(time.sleep, x)
        return x

    def large(self, n):
        return bytes(n)

    def length(self, x):
        return len(x)

    def keep(self, x):
        """Holds on to its arguments."""
        self.kept = [*getattr(self, "kept", []), x]
        return len(self.kept)


class Stubborn:
    """Can be sent, and not looked into."""

    @property
    def __dict__(self):
        raise RuntimeError("leave me alone")

    def __reduce__(self):
        return Stubborn, ()


class Slow(Trouble):
    def __init__(self, seconds):
        time.sleep(seconds)


class BadConstructor:
    def __init__(self) -> None:
        self.helper()

    def helper(self) -> None:
        raise RuntimeError("no such checkpoint")

    def echo(self, x):
        return x


class Environment:
    def get(self, name):
        return os.environ.get(name)

    def buffer(self, x):
        from ray.dag import DAGContext

        return DAGContext.get_current().buffer_size_bytes

    def torch_is_loaded(self):
        return "torch" in sys.modules


def refuse():
    raise LookupError("nothing here")
