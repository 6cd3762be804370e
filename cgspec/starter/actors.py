"""Actors of graph.yaml: plain classes; cgspec makes Ray actors of them."""


class Source:
    def __init__(self, scale: int) -> None:
        self.scale = scale

    def make(self, n: int) -> list[int]:
        return [self.scale * k for k in range(n)]


class Total:
    def add(self, values: list[int]) -> int:
        return sum(values)
