"""A key: what it shows and refuses, how it is kept, and what it names."""

import contextlib
import copy
import json
import os
import pickle
import stat
import traceback

import numpy as np
import pytest

from tempriv.errors import KeyReuseError, StateError, UsageError
from tempriv.mechanisms.perturb import guarantee_of_run
from tempriv.mechanisms.stream import resume
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.sampling.keys import Key, fresh_series_key, new_id
from tempriv.sampling.keystream import Keystream, StepRange

# what a key shows and what it refuses


def test_nothing_that_is_shown_holds_the_secret():
    secret = bytes(range(100, 132))
    key = Key(secret, "release")
    series = key.series("spec", "series")
    shown = [
        repr(key),
        str(key),
        f"{key}",
        repr(series),
        str(series),
        repr(StepRange(series, 0, 3)),
        repr([key, series]),
        repr(Keystream([StepRange(series, 0, 3)], "noise")),
        key.release_id,
        series.check(),
        key.pseudonym("a"),
    ]
    for problem in (
        lambda: key.series("spec", "series"),
        lambda: series.at_epoch(-1),
        lambda: Key(secret[:31], "release"),
    ):
        with pytest.raises((KeyReuseError, UsageError)) as refusal:
            problem()
        shown.append("".join(traceback.format_exception(refusal.value)))
    for held in (secret, series.secret, series.cipher_key("noise")):
        for text in shown:
            assert held.hex() not in text
            assert repr(held)[2:-1] not in text
            assert str(list(held))[1:-1] not in text
    assert repr(key) == "Key(secret)"
    assert repr(series) == "SeriesKey(epoch=0)"
    assert repr(Key.from_seed(7)) == "Key(seed 7: not private)"
    assert repr(Key.generate()) == "Key(secret)"


def test_noise_of_a_series_is_handed_out_once():
    key = Key.generate()
    first = key.series("spec", "series")
    with pytest.raises(
        KeyReuseError, match=r"already made the noise of series 'series'.*Key\.generate"
    ):
        key.series("spec", "series")
    assert key.series("spec", "other") != first
    assert key.series("other", "series") != first
    with pytest.raises(KeyReuseError):
        key.series("spec", "series")
    # to go on from a saved state the same chain is needed, and asked for by name
    assert key.again("spec", "series") == first


def test_a_chain_goes_on_only_from_where_noise_has_been_handed_out():
    key = Key.generate()
    first = key.series("spec", "series")
    assert key.again("spec", "series", 0) == key.again("spec", "series", 10**6) == first
    key.note("spec", "series", 5)
    for step in (0, 4):
        with pytest.raises(
            KeyReuseError, match=rf"'series' up to step 5.*step {step} on.*latest state"
        ):
            key.again("spec", "series", step)
    with pytest.raises(KeyReuseError):
        key.again("spec", "series")
    assert key.again("spec", "series", 5) == key.again("spec", "series", 6) == first
    # it is this series under this spec that has come so far
    assert key.again("spec", "other") == key.series("spec", "other")
    assert key.again("other", "series") == key.series("other", "series")
    key.note("spec", "series", 9)
    with pytest.raises(KeyReuseError, match="up to step 9"):
        key.again("spec", "series", 8)


def test_a_state_left_behind_is_refused_and_the_latest_goes_on():
    mechanism = Laplace(epsilon=1.0, bounds=(0, 5))
    readings = np.linspace(0, 5, 9)
    key = Key.from_seed(3)
    stream = mechanism.start(key, "a")
    early = stream.state()
    whole = [stream.push(readings[:4])]
    latest = stream.state()
    with pytest.raises(KeyReuseError, match="up to step 4.*from step 0 on"):
        resume(mechanism, early, key)
    again = resume(mechanism, latest, key)
    whole.append(again.push(readings[4:]))
    # neither the stream that was resumed from, nor another from that state, goes on beside it
    with pytest.raises(KeyReuseError, match="up to step 9.*from step 4 on"):
        stream.push(readings[4:])
    with pytest.raises(KeyReuseError, match="up to step 9.*from step 4 on"):
        resume(mechanism, latest, key)
    assert resume(mechanism, again.state(), key).step == 9
    # in another process nothing is known of it: there the state alone says how far it has come
    expected = mechanism.start(Key.from_seed(3), "a").push(readings)
    np.testing.assert_array_equal(np.concatenate(whole), expected)
    rest = resume(mechanism, latest, Key.from_seed(3)).push(readings[4:])
    np.testing.assert_array_equal(rest, expected[4:])


# keys that are kept


@contextlib.contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def saved(key, path):
    """The key on file, free to be read."""
    key.save(path)
    key.close()
    return path


@pytest.mark.parametrize("mask", [0, 0o077, 0o477], ids=oct)
@pytest.mark.parametrize("make", [Key.generate, lambda: Key.from_seed(7)], ids=["secret", "seed"])
def test_a_kept_key_is_the_same_key_for_its_owner_alone(make, mask, tmp_path):
    key, path = make(), tmp_path / "key"
    chain, pseudonym = key.again("spec", "series"), key.pseudonym("anna")
    told = (key.release_id, key.seed, repr(key))
    with umask(mask):
        saved(key, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    read = Key.load(str(path))
    assert (read.release_id, read.seed, repr(read)) == told
    assert read.again("spec", "series") == chain
    assert read.pseudonym("anna") == pseudonym


def test_a_kept_key_goes_on_with_streams_and_starts_none(tmp_path):
    mechanism = Laplace(epsilon=1.0, bounds=(0, 5))
    readings = np.linspace(0, 5, 9)
    key = Key.generate()
    key.save(tmp_path / "key")
    stream = mechanism.start(key, "a")
    stream.push(readings[:2])
    early = stream.state()
    stream.push(readings[2:4])
    state = stream.state()
    key.close()
    with pytest.raises(KeyReuseError, match="closed"):
        stream.push(readings[4:])
    read = Key.load(tmp_path / "key")
    for series in ("a", "b"):  # nor one that was never begun: it cannot know
        with pytest.raises(KeyReuseError, match=r"starts none.*Key\.generate\(\)"):
            mechanism.start(read, series)
    # the file knows how far the stream had come, also in another process
    with pytest.raises(KeyReuseError, match="up to step 4"):
        resume(mechanism, early, read)
    resume(mechanism, state, read).push(readings[4:6])
    with pytest.raises(KeyReuseError, match="up to step 6"):
        resume(mechanism, state, read)
    read.close()
    with pytest.raises(KeyReuseError, match="up to step 6"):
        resume(mechanism, state, Key.load(tmp_path / "key"))
    assert guarantee_of_run(mechanism, read) == mechanism.guarantee


def test_one_key_object_at_a_time_uses_a_file(tmp_path):
    key = Key.generate()
    key.save(tmp_path / "key")
    with pytest.raises(KeyReuseError, match="is using this key"):
        Key.load(tmp_path / "key")
    key.close()
    Key.load(tmp_path / "key")


def test_a_key_is_not_copied():
    for copying in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(KeyReuseError, match="not copied"):
            copying(Key.generate())


def test_a_file_that_is_there_is_never_written_over(tmp_path):
    path = saved(Key.from_seed(1), tmp_path / "key")
    kept = path.read_bytes()
    with pytest.raises(UsageError, match=f"{path}: exists already.*a file of its own"):
        Key.from_seed(2).save(path)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(UsageError, match="exists already"):
        Key.generate().save(tmp_path / "link")
    assert path.read_bytes() == kept


def test_a_damaged_key_is_refused_and_its_content_not_shown(tmp_path):
    path = saved(Key.generate(), tmp_path / "key")
    whole = path.read_bytes()
    kept = json.loads(whole)
    secret = kept["secret"]
    damaged = [whole[:place] for place in range(0, len(whole), 7)]
    damaged += [b"", b"null", b"[]", b"7", b"\xff\xfe", whole + b"}", b'"' + whole]
    wrong = {
        "secret": [secret[:-2], secret + "00", secret[:-1], "g" + secret[1:], "", None, 7],
        "release": [None, 7, ["a"]],
        "seed": ["7", 1.5, [7]],
        "reached": [None, 7, [["a", "b"]], [["a", "b", "c"]]],
    }
    for field, values in wrong.items():
        damaged += [json.dumps({**kept, field: value}).encode() for value in values]
        damaged.append(json.dumps({k: v for k, v in kept.items() if k != field}).encode())
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(StateError, match=f"{path}: not a key, or damaged") as refusal:
            Key.load(path)
        assert secret[:8] not in str(refusal.value)
    with pytest.raises(StateError, match="no such file"):
        Key.load(tmp_path / "nowhere")


@pytest.mark.parametrize("field", ["secret", "release"])
def test_a_changed_key_is_not_the_one_a_stream_was_started_with(field, tmp_path):
    mechanism = Laplace(epsilon=1.0, bounds=(0, 5))
    key = Key.generate()
    stream = mechanism.start(key, "a")
    stream.push(np.zeros(3))
    path = saved(key, tmp_path / "key")
    kept = json.loads(path.read_bytes())
    kept[field] = kept[field][::-1]
    path.write_text(json.dumps(kept))
    with pytest.raises(StateError, match="not the one that the stream was started with"):
        resume(mechanism, stream.state(), Key.load(path))


# what a key is, and what it names


def test_a_key_is_32_bytes():
    for size in (0, 16, 31, 33):
        with pytest.raises(UsageError, match="32 secret bytes"):
            Key(bytes(size), "release")


def test_a_seed_gives_the_same_key_again_and_another_seed_another():
    one, again, other = Key.from_seed(7), Key.from_seed(7), Key.from_seed(8)
    assert one.series("s", "a") == again.series("s", "a")
    assert other.series("s", "a") != one.again("s", "a")
    assert one.seed == 7 and one.release_id == again.release_id != other.release_id
    assert Key.from_seed(0).seed == 0
    for seed in (-1, 1.5, "7", None):
        with pytest.raises(UsageError, match=f"seed={seed}: must be a whole number"):
            Key.from_seed(seed)


def test_generated_keys_differ_and_say_nothing_of_a_seed():
    keys = [Key.generate() for _ in range(20)]
    assert len({key.again("s", "a").secret for key in keys}) == 20
    assert len({key.release_id for key in keys}) == 20
    assert all(key.seed is None for key in keys)
    assert len({fresh_series_key().secret for _ in range(20)}) == 20
    assert len({new_id() for _ in range(20)}) == 20


def test_pseudonyms_are_stable_within_a_key_and_different_across_keys():
    names = ["anna", "ann", "a", "", "bob"]
    key = Key.generate()
    ours = [key.pseudonym(name) for name in names]
    assert ours == [key.pseudonym(name) for name in names]
    theirs = [Key.generate().pseudonym(name) for name in names]
    secret = bytes(32)
    releases = [Key(secret, release).pseudonym("anna") for release in ("one", "two")]
    everyone = ours + theirs + releases
    assert len(set(everyone)) == len(everyone)
    assert all(len(name) == 16 and int(name, 16) >= 0 for name in everyone)


def test_series_keys_travel_as_they_are():
    link = Key.from_seed(1).series("spec", "a").at_epoch(2)
    assert pickle.loads(pickle.dumps(link)) == link
