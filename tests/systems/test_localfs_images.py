"""When filled images are kept, and when brought back."""

from __future__ import annotations

from ascar.systems.localfs_images import FRESH_S_WORTHWHILE, SavedImages

SLOW = 2 * FRESH_S_WORTHWHILE


def images(state="auto", limit_bytes=100):
    return SavedImages(state, limit_bytes)


def keep(store, layout, size_bytes=10):
    for name in store.make_room(size_bytes):
        assert name
    name = store.next_name()
    store.saved(layout, name, size_bytes)
    return name


def test_restored_keeps_every_layout_at_once():
    store = images("restored")
    store.filled("a", 0.01)
    assert store.is_worth_saving("a", 10)
    name = keep(store, "a")
    assert store.name_of("a") == name
    assert store.name_of("b") is None
    assert not store.is_worth_saving("a", 10)
    assert store.loaded("a", 99.0) is None


def test_fresh_and_reuse_keep_nothing():
    for state in ("fresh", "reuse"):
        store = images(state)
        store.filled("a", SLOW)
        store.filled("a", SLOW)
        assert not store.is_worth_saving("a", 10)


def test_auto_tries_what_comes_twice_and_takes_long():
    store = images()
    store.filled("a", SLOW)
    assert not store.is_worth_saving("a", 10)
    store.filled("a", SLOW)
    assert store.is_worth_saving("a", 10)
    for _ in range(2):
        store.filled("quick", FRESH_S_WORTHWHILE / 2)
    assert not store.is_worth_saving("quick", 10)


def test_auto_gives_up_what_is_slower_restored():
    store = images()
    for _ in range(2):
        store.filled("a", SLOW)
    name = keep(store, "a")
    assert store.loaded("a", SLOW / 2) is None
    assert store.loaded("a", SLOW * 2) == name
    assert store.name_of("a") is None
    store.filled("a", SLOW)
    assert not store.is_worth_saving("a", 10)


def test_disk_space_is_bounded_and_the_longest_unused_goes_first():
    store = images("restored")
    first, second = keep(store, "a", 40), keep(store, "b", 40)
    assert store.name_of("a") == first
    assert store.make_room(40) == [second]
    assert store.name_of("b") is None
    assert store.name_of("a") == first
    assert not store.is_worth_saving("huge", 101)


def test_names_are_never_used_twice():
    store = images("restored")
    names = [keep(store, layout, 60) for layout in ("a", "b", "c")]
    assert len(set(names)) == 3
