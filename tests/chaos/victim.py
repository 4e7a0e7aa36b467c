"""`domicile serve`, imported ahead and begun by a line on its input, so that restarts are quick.

python -m tests.chaos.victim CONFIGURATION
"""

import sys

import uvloop  # noqa: F401  what the command imports when it begins

from router.cli.main import main

if __name__ == "__main__" and sys.stdin.readline():
    main(["serve", "--config", sys.argv[1]])
