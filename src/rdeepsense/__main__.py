"""`python -m rdeepsense` is the command line."""

from rdeepsense.cli import main

main()
