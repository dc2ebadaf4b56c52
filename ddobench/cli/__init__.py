"""The command line: what a user types becomes one composed configuration, or one sentence."""
