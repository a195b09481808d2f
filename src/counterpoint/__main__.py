"""`python -m counterpoint` is the same as `counterpoint`."""

from counterpoint.cli import main

main()
