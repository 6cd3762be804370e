"""cgspec runs Ray Compiled Graphs from one checked-in YAML file."""
