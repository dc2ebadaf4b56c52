"""How the command lines that are not Hydra's complain: one sentence and exit code 2."""

import argparse
import sys
from typing import NoReturn


class SentenceParser(argparse.ArgumentParser):
    """Reads options, and complains as the other command lines do."""

    def error(self, message: str) -> NoReturn:
        """Say in one sentence what is wrong with the request."""
        complain(f"{message}; --help shows how to write it")


def complain(sentence: str) -> NoReturn:
    """Say what is wrong and stop."""
    print(f"ddobench: {sentence}", file=sys.stderr)
    raise SystemExit(2) from None
