"""A module that the driver can import and an actor cannot."""

import sys

if "default_worker" in sys.argv[0] or "default_worker" in " ".join(sys.orig_argv):
    raise ImportError("not in an actor")


class Shy:
    def echo(self, x):
        return x
