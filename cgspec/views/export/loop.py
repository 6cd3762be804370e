"""The part of the script that runs the graph: inputs, the loop with its window, and what is printed at the end."""

from __future__ import annotations

from dataclasses import dataclass

ONE_AT_A_TIME = '''
def run(graph, iterations{check_parameter}):
    """Runs the graph, one iteration at a time: latencies in s, seconds in all, the last iteration."""
    latencies, last{past_names} = [], None{past_values}
{limit}    for i in range(iterations):
        sent = {inputs}
        started = time.perf_counter()
        {values} = ray.get(graph.execute({execute}), timeout=TIMEOUT)
        latencies.append(time.perf_counter() - started)
{outputs}{taken}        del {held}  # an array in them is a view of the channel: held, it would block the next write
{over}    return latencies, sum(latencies), last
'''

WINDOW = '''
def run(graph, iterations{check_parameter}):
    """Runs the graph with a window of iterations: latencies in s, seconds in all, the last iteration."""
    latencies, last, under_way{past_names} = [], None, deque(){past_values}

    def take():
        nonlocal last
        i, sent, started, refs = under_way.popleft()
        {values} = ray.get(refs, timeout=TIMEOUT)
        latencies.append(time.perf_counter() - started)
{outputs}{taken}
    began = time.perf_counter()
{limit}    for i in range(iterations):
        if len(under_way) == INFLIGHT:
            take()
        sent = {inputs}
        under_way.append((i, sent, time.perf_counter(), graph.execute({execute})))
{over}    while under_way:
        take()
    return latencies, time.perf_counter() - began, last
'''

QUANTILE = '''
def quantile(values, share):
    """Of the values in order, the one at that share, between two of them by their distance."""
    values = sorted(values)
    place = share * (len(values) - 1)
    low, high = values[math.floor(place)], values[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))
'''


@dataclass(frozen=True)
class Loop:
    """What a loop depends on; every field but the numbers is an expression or empty.

    Attributes:
        inputs: what makes an iteration's inputs.
        execute: the arguments of ``execute``.
        outputs: from ``values`` and ``sent`` to the outputs; empty where they are the same.
        remembers: iterations whose outputs are kept for feedback.
        checks, checks_last: whether there is a ``check``, a ``check_last``.
        duration: seconds after which nothing more is sent.
        goes_on: whether a task's exception does not end the run.
    """

    inflight: int
    inputs: str
    execute: str
    outputs: str
    remembers: int
    checks: bool
    duration: float | None
    goes_on: bool

    def text(self) -> str:
        """The function ``run``."""
        template = ONE_AT_A_TIME if self.inflight == 1 else WINDOW
        deep = 8
        text = template.format(
            check_parameter=", check=None" if self.checks else "",
            past_names=", past" if self.remembers else "",
            past_values=", {}" if self.remembers else "",
            inputs=self.inputs,
            execute=self.execute,
            values="values" if self.outputs else "outputs",
            held="values, outputs" if self.outputs else "outputs",
            outputs=f"        outputs = {self.outputs}\n" if self.outputs else "",
            taken=_indented(self._taken(), deep),
            limit=f"    limit = time.perf_counter() + {self.duration!r}\n" if self.duration else "",
            over=self._over(),
        )
        return self._going_on(text) if self.goes_on else text

    def _taken(self) -> list[str]:
        """What is done with an iteration's outputs."""
        lines = ["if check is not None:", "    check(i, sent, outputs)"] if self.checks else []
        if self.remembers:
            lines += ["past[i] = copy.deepcopy(outputs)", f"past.pop(i - {self.remembers}, None)"]
        if self.duration:
            return [*lines, "last = i, sent, copy.deepcopy(outputs)"]
        return [*lines, "if i == iterations - 1:", "    last = i, sent, copy.deepcopy(outputs)"]

    def _over(self) -> str:
        return "        if time.perf_counter() >= limit:\n            break\n" if self.duration else ""

    def _going_on(self, text: str) -> str:
        got = "s = ray.get("
        line = next(line for line in text.splitlines() if got in line)
        past = ["past[i] = None"] if self.remembers else []
        end = "return" if self.inflight > 1 else "continue"
        told = ['print(f"iteration {i}: {error}")', *past, end]
        tried = ["try:", f"    {line.strip()}", "except RayTaskError as error:", *(f"    {each}" for each in told)]
        return text.replace(line + "\n", _indented(tried, 8))


def _indented(lines: list[str], by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in lines)
