"""cgspec runs Ray Compiled Graphs from one checked-in YAML file."""

__version__ = "0.1.0"
