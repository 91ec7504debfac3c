"""Started by the host: `python3 -B <this folder>`."""

from skillhost._worker import main

main()
