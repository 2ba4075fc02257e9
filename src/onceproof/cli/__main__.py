"""`python -m onceproof.cli`."""

from onceproof.cli import main

main()
