"""Which of the wanted seeds are not stored yet, however many are wanted."""

from ddobench.seeds import Seeds
from ddobench.store.runs import Place, Store


def pending(store: Store, place: Place, wanted: Seeds) -> Seeds:
    """Return the seeds without a sound file; only those that have a file are looked at."""
    found = [seed for seed in place.seeds() if seed in wanted]
    unsound = set(store.missing(place, found))
    return wanted.without(seed for seed in found if seed not in unsound)
