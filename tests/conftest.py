"""Settings shared by all tests."""

from hypothesis import settings

# No deadline: a busy machine is not a bug. The same examples every time: neither is a lucky day.
settings.register_profile("ddobench", deadline=None, derandomize=True, database=None)
settings.load_profile("ddobench")
