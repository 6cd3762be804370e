"""The verbs of the command line, by what they read: specs, runs, or neither."""
