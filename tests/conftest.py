"""What all tests need."""

import signal

# A shell that runs the tests in its background has Ctrl-C ignored, and what the tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
