"""Words are a pure function of key and place: cutting, order and company change nothing."""

import contextlib
import copy
import hashlib
import itertools
import json
import os
import pickle
import stat
import traceback

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tempriv.errors import KeyReuse, StateRefusal, UsageRefusal
from tempriv.mechanisms import Laplace
from tempriv.mechanisms.protocol import promise
from tempriv.mechanisms.stream import resume
from tempriv.randomness import (
    BRANCH_BITS,
    EPOCH,
    Key,
    Run,
    SeriesKey,
    Words,
    blocks_of_runs,
    fingerprint,
    fresh_series_key,
    new_id,
)
from tests.statistics import COMPILED, assert_cells, assert_proportion

pytest_plugins = ["tests.statistics"]

exactly = settings(derandomize=True, deadline=None, max_examples=150)

starts = st.one_of(
    st.integers(0, 20),
    st.integers(EPOCH - 20, EPOCH + 20),
    st.integers(3 * EPOCH - 9, 3 * EPOCH + 9),
)
counts = st.one_of(st.integers(0, 40), st.integers(EPOCH - 3, EPOCH + 3))
lanes = st.integers(0, 3)
KEYS = [Key.from_seed(1).series("spec", str(name)) for name in range(4)]
runs_of_series = st.lists(
    st.builds(Run, st.sampled_from(KEYS), starts, st.integers(0, 25)), max_size=7
)


def words_of(key, start, count, purpose="noise"):
    return Words([Run(key, start, count)], purpose)


# the documented layout, from its description


def keyed_hash(key, *parts):
    data = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return hashlib.blake2b(data, key=key, digest_size=32).digest()


def word_by_hand(secret, purpose, prefix, step):
    """AES-256 of a 96-bit lane and a 32-bit block number; two words to a block."""
    for _ in range(step // EPOCH):
        secret = keyed_hash(secret, b"next epoch")
    cipher_key = keyed_hash(secret, b"purpose", purpose.encode())
    counter = prefix.to_bytes(12, "big") + (step % EPOCH // 2).to_bytes(4, "big")
    block = Cipher(algorithms.AES(cipher_key), modes.ECB()).encryptor().update(counter)
    return int.from_bytes(block[8 * (step % 2) :][:8], "little")


def test_aes_is_that_of_the_standard():
    # FIPS 197, C.3
    key = bytes(range(32))
    block = bytes.fromhex("00112233445566778899aabbccddeeff")
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)
    assert cipher.hex() == "8ea2b7ca516745bfeafc49904b496089"


@pytest.mark.parametrize("step", [0, 1, 2, 7, EPOCH - 1, EPOCH, EPOCH + 1, 5 * EPOCH + 3])
def test_a_word_is_aes_of_lane_and_step_under_the_key_of_its_epoch_and_purpose(step):
    secret = bytes(range(32))
    key = SeriesKey(secret, 0)
    words = words_of(key, step, 3)
    for row in range(3):
        for lane in (0, 1, 4095):
            assert words.take(lane)[row] == word_by_hand(secret, "noise", lane, step + row)
            assert words.one(row, lane) == word_by_hand(secret, "noise", lane, step + row)
        # a branch is a digit of 12 bits before the lane, counted from one
        inner = words.branch(5)
        assert inner.take(2)[row] == word_by_hand(secret, "noise", 6 << 12 | 2, step + row)
        inner = inner.branch(0)
        expected = word_by_hand(secret, "noise", 6 << 24 | 1 << 12 | 3, step + row)
        assert inner.take(3)[row] == expected


def test_the_key_of_a_series_is_a_hash_of_secret_spec_release_and_series():
    secret = bytes(range(32))
    key = Key(secret, "a release")
    expected = keyed_hash(secret, b"series", b"a spec", b"a release", b"a series")
    assert key.series("a spec", "a series") == SeriesKey(expected, 0)
    seeded = keyed_hash(b"tempriv seed", b"7")
    expected = keyed_hash(seeded, b"series", b"a spec", b"seed-7", b"a series")
    assert Key.from_seed(7).series("a spec", "a series").secret == expected


def test_the_words_of_a_fixed_seed_never_change():
    words = words_of(Key.from_seed(2024).series("spec", "series"), EPOCH - 2, 4)
    assert [f"{word:016x}" for word in words.take(1).tolist()] == [
        "3593372bfbd06928",
        "48575d63b427435b",
        "ef04379a4e6a8645",
        "fb35cdac460b9c1e",
    ]


# any cutting, any order, any company


@exactly
@given(starts, counts, st.lists(st.integers(0, EPOCH + 3), max_size=5), lanes)
def test_any_cutting_gives_the_same_words(start, count, cuts, lane):
    whole = words_of(KEYS[0], start, count).take(lane)
    assert whole.dtype == np.uint64 and len(whole) == count
    edges = [0, *sorted(cut for cut in cuts if cut < count), count]
    parts = [Run(KEYS[0], start + a, b - a) for a, b in itertools.pairwise(edges)]
    apart = [Words([part], "noise").take(lane) for part in parts]
    np.testing.assert_array_equal(np.concatenate(apart), whole)
    together = Words(parts, "noise")
    assert together.count == count
    np.testing.assert_array_equal(together.take(lane), whole)


@exactly
@given(runs_of_series, lanes, st.randoms(use_true_random=False))
def test_many_series_in_one_block_each_get_their_own_words_in_any_order(runs, lane, shuffler):
    alone = [Words([run], "noise").take(lane).tolist() for run in runs]
    together = Words(runs, "noise").take(lane).tolist()
    assert together == list(itertools.chain.from_iterable(alone))
    order = list(range(len(runs)))
    shuffler.shuffle(order)
    shuffled = Words([runs[i] for i in order], "noise").take(lane).tolist()
    assert shuffled == list(itertools.chain.from_iterable(alone[i] for i in order))


@exactly
@given(runs_of_series, lanes, st.lists(st.integers(0, 4094), max_size=3), st.data())
def test_some_rows_get_the_words_they_get_among_all(runs, lane, branches, data):
    words = Words(runs, "noise")
    for number in branches:
        words = words.branch(number)
    whole = words.take(lane)
    chosen = data.draw(st.lists(st.booleans(), min_size=words.count, max_size=words.count))
    rows = np.flatnonzero(np.array(chosen, dtype=bool))
    some = words.only(rows)
    assert some.count == len(rows)
    np.testing.assert_array_equal(some.take(lane), whole[rows])
    # some of the some, and branches opened before or after
    again = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    fewer = np.flatnonzero(np.array(again, dtype=bool))
    np.testing.assert_array_equal(some.only(fewer).take(lane), whole[rows][fewer])
    np.testing.assert_array_equal(
        some.branch(3).only(fewer).take(lane), words.branch(3).take(lane)[rows][fewer]
    )
    for row in range(min(words.count, 3)):
        assert words.one(row, lane) == whole[row]


@exactly
@given(runs_of_series, st.lists(st.integers(0, 4094), max_size=2), st.integers(1, 3), st.data())
def test_words_of_several_branches_at_once_are_those_of_each(runs, path, every, data):
    words = Words(runs, "noise")
    assume(words.count)  # there is nothing to finish where there are no rows
    for number in path:
        words = words.branch(number)
    if every > 1:
        words = words.only(np.arange(0, words.count, every))
    count = data.draw(st.integers(1, 6))
    # a row may want words of several branches, in any order
    places = st.tuples(st.integers(0, words.count - 1), st.integers(0, count - 1))
    chosen = data.draw(st.lists(places, max_size=12))
    chosen.sort(key=lambda pair: pair[0])
    rows = np.array([row for row, _ in chosen], dtype=np.intp)
    numbers = np.array([number for _, number in chosen], dtype=np.intp)
    taken = words.take_branches(rows, numbers, count)
    assert taken.dtype == np.uint64
    assert taken.tolist() == [words.branch(number).one(row, 0) for row, number in chosen]
    for number in range(count):
        wanted = np.unique(rows[numbers == number])
        together = words.branch(number).only(wanted).take().tolist()
        assert together == words.take_branches(wanted, np.full(len(wanted), number), count).tolist()


def test_words_of_branches_are_where_the_layout_says():
    secret = bytes(range(32))
    rows, numbers = np.array([0, 0, 1, 4]), np.array([3, 0, 2, 3])
    words = words_of(SeriesKey(secret, 0), EPOCH - 3, 5).branch(6)
    expected = [
        word_by_hand(secret, "noise", (7 << 12 | number + 1) << 12, EPOCH - 3 + row)
        for row, number in zip(rows.tolist(), numbers.tolist(), strict=True)
    ]
    assert words.take_branches(rows, numbers, 4).tolist() == expected
    for _ in range(6):
        words = words.branch(0)
    with pytest.raises(KeyReuse, match="too deep"):
        words.take_branches(rows, numbers, 4)


@exactly
@given(runs_of_series, st.integers(1, 30), lanes)
def test_blocks_of_runs_hold_all_steps_in_order_and_no_more_than_asked(runs, most, lane):
    groups = list(blocks_of_runs(runs, most))
    assert all(sum(run.count for run in group) <= most for group in groups)
    whole = Words(runs, "noise").take(lane)
    parts = [Words(group, "noise").take(lane) for group in groups]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_run_longer_than_epochs_is_cut_where_the_key_changes():
    key = KEYS[0]
    whole = words_of(key, EPOCH - 3, 2 * EPOCH + 6).take()
    apart = [
        words_of(key, EPOCH - 3, 3),
        words_of(key.at_epoch(1), EPOCH, EPOCH),
        words_of(key.at_epoch(2), 2 * EPOCH, EPOCH),
        words_of(key.at_epoch(3), 3 * EPOCH, 3),
    ]
    np.testing.assert_array_equal(np.concatenate([words.take() for words in apart]), whole)


def test_taking_twice_gives_the_same_and_leaves_the_first_alone():
    words = words_of(KEYS[0], 1, 100)
    first = words.take()
    kept = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(words.take(), kept)


# different places


def test_lanes_branches_purposes_series_specs_releases_and_keys_all_differ():
    count = 40
    key = Key.from_seed(1)
    first = key.series("spec", "series")
    root = words_of(first, 0, count)
    sources = {f"lane {lane}": root.take(lane) for lane in (0, 1, 2, 13, 4095)}
    for path in [(0,), (1,), (4094,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (1, 12), (12, 1),
                 (0,) * 7, (4094,) * 7]:  # fmt: skip
        words = root
        for number in path:
            words = words.branch(number)
        for lane in (0, 1, 4095):
            sources[f"branch {path} lane {lane}"] = words.take(lane)
    for purpose in ("", "nois", "noise ", "budget"):
        sources[f"purpose {purpose}"] = words_of(first, 0, count, purpose).take()
    # columns are series and purposes of their own: names cannot run into one another
    for spec, series in [("spec", "other"), ("other", "series"), ("specs", "eries"),
                         ("spe", "cseries"), ("", "specseries")]:  # fmt: skip
        sources[f"{spec}/{series}"] = words_of(key.series(spec, series), 0, count).take()
    sources["seed"] = words_of(Key.from_seed(2).series("spec", "series"), 0, count).take()
    secret = b"s" * 32
    for release in ("one", "two"):
        sources[release] = words_of(Key(secret, release).series("spec", "series"), 0, count).take()
    for epoch in (1, 2):
        sources[f"epoch {epoch}"] = words_of(first, epoch * EPOCH, count).take()
    everything = np.concatenate(list(sources.values()))
    # the chance that two of 2600 words are the same by accident is 2e-13
    assert len(everything) > 1000
    assert len(np.unique(everything)) == len(everything)


@exactly
@given(st.lists(st.integers(0, 4094), max_size=6), st.lists(st.integers(0, 4094), max_size=6),
       st.integers(0, 4095), st.integers(0, 4095))  # fmt: skip
def test_no_two_places_share_a_counter(path, other, lane, other_lane):
    def word(path, lane):
        words = words_of(KEYS[0], 0, 1)
        for number in path:
            words = words.branch(number)
        return words.take(lane)[0]

    same = path == other and lane == other_lane
    assert (word(path, lane) == word(other, other_lane)) == same


def test_places_that_do_not_exist_are_refused():
    words = words_of(KEYS[0], 0, 4)
    for number in (-1, (1 << BRANCH_BITS) - 1, 1 << BRANCH_BITS):
        with pytest.raises(KeyReuse, match=f"branch {number}: too many"):
            words.branch(number)
    # lane 4096 would be lane 0 of branch 0
    for lane in (-1, 1 << BRANCH_BITS):
        with pytest.raises(KeyReuse, match=f"lane {lane}: too many"):
            words.take(lane)
    for number in range(7):
        words = words.branch(number)
    with pytest.raises(KeyReuse, match="too deep"):
        words.branch(0)


# the chain of keys


@given(st.integers(0, 6), st.integers(0, 6))
@exactly
def test_the_chain_goes_forward_in_any_steps(first, second):
    start = KEYS[0]
    stepwise = start
    for epoch in range(1, first + second + 1):
        stepwise = stepwise.at_epoch(epoch)
    assert start.at_epoch(first + second) == stepwise
    assert start.at_epoch(first).at_epoch(first + second) == stepwise
    assert stepwise.epoch == first + second


def test_the_chain_does_not_go_back():
    later = KEYS[0].at_epoch(3)
    assert later.at_epoch(3) == later
    for epoch in (2, 0, -1):
        with pytest.raises(KeyReuse, match=f"epoch {epoch}: its key has been erased"):
            later.at_epoch(epoch)
    with pytest.raises(KeyReuse, match="epoch 2: its key has been erased"):
        words_of(later, 3 * EPOCH - 1, 2)


def test_a_later_link_gives_the_words_of_its_steps():
    start = KEYS[0]
    np.testing.assert_array_equal(
        words_of(start.at_epoch(2), 2 * EPOCH + 5, 9).take(),
        words_of(start, 2 * EPOCH + 5, 9).take(),
    )


def test_links_and_checks_all_differ():
    links = [key.at_epoch(epoch) for key in KEYS for epoch in range(5)]
    assert len({link.secret for link in links}) == len(links)
    assert len({link.check() for link in links}) == len(links)
    for link in links:
        assert bytes.fromhex(link.check()) not in link.secret
        assert link.check() == SeriesKey(link.secret, link.epoch).check()


# what a key shows and what it refuses


def test_nothing_that_is_shown_holds_the_secret():
    secret = bytes(range(100, 132))
    key = Key(secret, "release")
    series = key.series("spec", "series")
    shown = [repr(key), str(key), f"{key}", repr(series), str(series), repr(Run(series, 0, 3)),
             repr([key, series]), repr(Words([Run(series, 0, 3)], "noise")), key.release_id,
             series.check(), key.pseudonym("a")]  # fmt: skip
    for problem in (
        lambda: key.series("spec", "series"),
        lambda: series.at_epoch(-1),
        lambda: Key(secret[:31], "release"),
    ):
        with pytest.raises((KeyReuse, UsageRefusal)) as refusal:
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
    with pytest.raises(KeyReuse, match=r"already made the noise of series 'series'.*Key\.generate"):
        key.series("spec", "series")
    assert key.series("spec", "other") != first
    assert key.series("other", "series") != first
    with pytest.raises(KeyReuse):
        key.series("spec", "series")
    # to go on from a saved state the same chain is needed, and asked for by name
    assert key.again("spec", "series") == first


def test_a_chain_goes_on_only_from_where_noise_has_been_handed_out():
    key = Key.generate()
    first = key.series("spec", "series")
    assert key.again("spec", "series", 0) == key.again("spec", "series", 10**6) == first
    key.note("spec", "series", 5)
    for step in (0, 4):
        with pytest.raises(KeyReuse, match=rf"'series' up to step 5.*step {step} on.*latest state"):
            key.again("spec", "series", step)
    with pytest.raises(KeyReuse):
        key.again("spec", "series")
    assert key.again("spec", "series", 5) == key.again("spec", "series", 6) == first
    # it is this series under this spec that has come so far
    assert key.again("spec", "other") == key.series("spec", "other")
    assert key.again("other", "series") == key.series("other", "series")
    key.note("spec", "series", 9)
    with pytest.raises(KeyReuse, match="up to step 9"):
        key.again("spec", "series", 8)


def test_a_state_left_behind_is_refused_and_the_latest_goes_on():
    mechanism = Laplace(epsilon=1.0, bounds=(0, 5))
    readings = np.linspace(0, 5, 9)
    key = Key.from_seed(3)
    stream = mechanism.start(key, "a")
    early = stream.state()
    whole = [stream.push(readings[:4])]
    latest = stream.state()
    with pytest.raises(KeyReuse, match="up to step 4.*from step 0 on"):
        resume(mechanism, early, key)
    again = resume(mechanism, latest, key)
    whole.append(again.push(readings[4:]))
    # neither the stream that was resumed from, nor another from that state, goes on beside it
    with pytest.raises(KeyReuse, match="up to step 9.*from step 4 on"):
        stream.push(readings[4:])
    with pytest.raises(KeyReuse, match="up to step 9.*from step 4 on"):
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
    with pytest.raises(KeyReuse, match="closed"):
        stream.push(readings[4:])
    read = Key.load(tmp_path / "key")
    for series in ("a", "b"):  # nor one that was never begun: it cannot know
        with pytest.raises(KeyReuse, match=r"starts none.*Key\.generate\(\)"):
            mechanism.start(read, series)
    # the file knows how far the stream had come, also in another process
    with pytest.raises(KeyReuse, match="up to step 4"):
        resume(mechanism, early, read)
    resume(mechanism, state, read).push(readings[4:6])
    with pytest.raises(KeyReuse, match="up to step 6"):
        resume(mechanism, state, read)
    read.close()
    with pytest.raises(KeyReuse, match="up to step 6"):
        resume(mechanism, state, Key.load(tmp_path / "key"))
    assert promise(mechanism, read) == mechanism.guarantee


def test_one_key_object_at_a_time_uses_a_file(tmp_path):
    key = Key.generate()
    key.save(tmp_path / "key")
    with pytest.raises(KeyReuse, match="is using this key"):
        Key.load(tmp_path / "key")
    key.close()
    Key.load(tmp_path / "key")


def test_a_key_is_not_copied():
    for copying in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(KeyReuse, match="not copied"):
            copying(Key.generate())


def test_a_file_that_is_there_is_never_written_over(tmp_path):
    path = saved(Key.from_seed(1), tmp_path / "key")
    kept = path.read_bytes()
    with pytest.raises(UsageRefusal, match=f"{path}: exists already.*a file of its own"):
        Key.from_seed(2).save(path)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(UsageRefusal, match="exists already"):
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
        with pytest.raises(StateRefusal, match=f"{path}: not a key, or damaged") as refusal:
            Key.load(path)
        assert secret[:8] not in str(refusal.value)
    with pytest.raises(StateRefusal, match="no such file"):
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
    with pytest.raises(StateRefusal, match="not the one that the stream was started with"):
        resume(mechanism, stream.state(), Key.load(path))


# fingerprints of what was consumed


MARKS = [bytes(range(i, i + 32)) for i in range(3)]
numbers_64 = st.integers(0, 2**64 - 1)


def as_words(numbers):
    return np.array(numbers, dtype=np.uint64)


def fingerprint_by_hand(mark, pairs):
    """The first half of AES-256 of (place, reading), added up."""
    cipher = Cipher(algorithms.AES(mark), modes.ECB()).encryptor()
    total = 0
    for place, bits in pairs:
        block = cipher.update(place.to_bytes(8, "little") + bits.to_bytes(8, "little"))
        total += int.from_bytes(block[:8], "little")
    return total % 2**64


@exactly
@given(
    st.sampled_from(MARKS),
    st.lists(st.tuples(numbers_64, numbers_64), max_size=12),
    st.integers(0, 12),
    st.randoms(use_true_random=False),
)
def test_a_fingerprint_is_a_keyed_sum_in_any_order_and_cutting(mark, pairs, cut, shuffler):
    def of(some):
        places, bits = as_words([p for p, _ in some]), as_words([b for _, b in some])
        return fingerprint(mark, places, bits)

    whole = of(pairs)
    assert whole == fingerprint_by_hand(mark, pairs)
    assert (of(pairs[:cut]) + of(pairs[cut:])) % 2**64 == whole
    shuffled = list(pairs)
    shuffler.shuffle(shuffled)
    assert of(shuffled) == whole
    # rows of columns count by their places
    if len(pairs) % 2 == 0:
        table = as_words(pairs).reshape(-1, 2, 2)
        assert fingerprint(mark, table[:, :, 0], table[:, :, 1]) == whole


@exactly
@given(st.lists(numbers_64, min_size=1, max_size=8), st.integers(0, 7), st.integers(0, 63))
def test_a_fingerprint_tells_marks_places_and_readings_apart(readings, i, bit):
    places, bits = as_words(range(len(readings))), as_words(readings)
    i %= len(readings)
    found = {fingerprint(mark, places, bits) for mark in MARKS}
    moved, changed = places.copy(), bits.copy()
    moved[i] ^= np.uint64(1 << bit) | np.uint64(8)
    changed[i] ^= np.uint64(1 << bit)
    found |= {fingerprint(MARKS[0], moved, bits), fingerprint(MARKS[0], places, changed)}
    found.add(fingerprint(MARKS[0], places[:-1], bits[:-1]))
    assert len(found) == 6
    # two readings that change places are other readings
    swapped = bits.copy()
    swapped[[0, i]] = bits[[i, 0]]
    alike = fingerprint(MARKS[0], places, swapped) == fingerprint(MARKS[0], places, bits)
    assert alike == (readings[0] == readings[i])


def test_a_key_is_32_bytes():
    for size in (0, 16, 31, 33):
        with pytest.raises(UsageRefusal, match="32 secret bytes"):
            Key(bytes(size), "release")


def test_a_seed_gives_the_same_key_again_and_another_seed_another():
    one, again, other = Key.from_seed(7), Key.from_seed(7), Key.from_seed(8)
    assert one.series("s", "a") == again.series("s", "a")
    assert other.series("s", "a") != one.again("s", "a")
    assert one.seed == 7 and one.release_id == again.release_id != other.release_id
    assert Key.from_seed(0).seed == 0
    for seed in (-1, 1.5, "7", None):
        with pytest.raises(UsageRefusal, match=f"seed={seed}: must be a whole number"):
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
    link = KEYS[0].at_epoch(2)
    assert pickle.loads(pickle.dumps(link)) == link


# words look uniform


COUNT = 1 << 20 if COMPILED else 1 << 18
# a share of ones off by one percent of a half (two with fewer words) is detected in every bit
OFF = 0.01 if COMPILED else 0.02


def test_every_bit_of_a_word_is_one_half_the_time(seed):
    words = words_of(Key.from_seed(seed).series("spec", "series"), 12345, COUNT).take()
    for bit in range(64):
        ones = int((words >> np.uint64(bit) & np.uint64(1)).sum())
        assert_proportion(ones, COUNT, 0.5, detects=OFF)


def test_bits_do_not_remember_the_row_before_nor_the_lane_nor_the_branch_beside(seed):
    words = words_of(Key.from_seed(seed).series("spec", "series"), 0, COUNT + 1)
    first = words.take()
    pairs = [
        first[1:] ^ first[:-1],
        (first ^ words.take(1))[1:],
        (first ^ words.branch(0).take())[1:],
        (words.branch(0).take() ^ words.branch(1).take())[1:],
    ]
    for changed in pairs:
        for bit in (0, 1, 15, 16, 31, 32, 47, 48, 62, 63):
            ones = int((changed >> np.uint64(bit) & np.uint64(1)).sum())
            assert_proportion(ones, COUNT, 0.5, detects=OFF)


def test_bytes_of_words_are_uniform(seed):
    words = words_of(Key.from_seed(seed).series("spec", "series"), 0, COUNT).take()
    as_bytes = words.view(np.uint8).reshape(-1, 8)
    for place in range(8):
        counts = np.bincount(as_bytes[:, place], minlength=256)
        assert_cells(counts, np.full(256, 1 / 256), detects=2 * OFF)
