import a_module_that_is_nowhere  # noqa: F401


class Never:
    def echo(self, x):
        return x
