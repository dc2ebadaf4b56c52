"""Run `python -m ddobench`."""

from ddobench.cli import main

if __name__ == "__main__":
    main()
