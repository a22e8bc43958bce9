"""`python -m farm.cli`: the same as `farm`."""

from . import run

if __name__ == "__main__":
    run()
