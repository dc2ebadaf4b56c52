"""Users' tables of designs and values: read, checked, and encoded as numbers.

A package of its own, apart from `propose`, as tasks and the command line read tables too and may
not import the runner.
"""
