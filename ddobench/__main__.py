"""Run `python -m ddobench`."""

from ddobench.cli.main import main

if __name__ == "__main__":
    main()
