"""``python -m cgspec``."""

from cgspec.cli import main

if __name__ == "__main__":
    main()
