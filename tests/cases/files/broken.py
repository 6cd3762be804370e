"""No Python: the bracket below is never closed."""


class Counter(
    pass
