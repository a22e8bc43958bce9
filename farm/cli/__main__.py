"""`python -m farm.cli`: the same as `farm`."""

import signal
import sys

from . import main

status = main()
signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is over: a late Ctrl-C has nothing left to interrupt
sys.exit(status)
