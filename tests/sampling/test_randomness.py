"""Words are a pure function of key and place: cutting, order and company change nothing."""

import hashlib
import itertools

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tempriv.errors import KeyReuseError
from tempriv.sampling.keys import EPOCH, Key, SeriesKey, fingerprint
from tempriv.sampling.keystream import SUBSTREAM_BITS, Keystream, StepRange, blocks_of_runs
from tests.support.statistics import COMPILED, assert_cells, assert_proportion

pytest_plugins = ["tests.support.statistics"]

exactly = settings(derandomize=True, deadline=None, max_examples=150)

starts = st.one_of(
    st.integers(0, 20),
    st.integers(EPOCH - 20, EPOCH + 20),
    st.integers(3 * EPOCH - 9, 3 * EPOCH + 9),
)
counts = st.one_of(st.integers(0, 40), st.integers(EPOCH - 3, EPOCH + 3))
streams = st.integers(0, 3)
KEYS = [Key.from_seed(1).series("spec", str(name)) for name in range(4)]
runs_of_series = st.lists(
    st.builds(StepRange, st.sampled_from(KEYS), starts, st.integers(0, 25)), max_size=7
)


def words_of(key, start, count, purpose="noise"):
    return Keystream([StepRange(key, start, count)], purpose)


# the documented layout, from its description


def keyed_hash(key, *parts):
    data = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return hashlib.blake2b(data, key=key, digest_size=32).digest()


def word_by_hand(secret, purpose, prefix, step):
    """AES-256 of a 96-bit stream and a 32-bit block number; two words to a block."""
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
        for stream in (0, 1, 4095):
            assert words.read(stream)[row] == word_by_hand(secret, "noise", stream, step + row)
            assert words.read_one(row, stream) == word_by_hand(secret, "noise", stream, step + row)
        # a substream is a digit of 12 bits before the stream, counted from one
        inner = words.substream(5)
        assert inner.read(2)[row] == word_by_hand(secret, "noise", 6 << 12 | 2, step + row)
        inner = inner.substream(0)
        expected = word_by_hand(secret, "noise", 6 << 24 | 1 << 12 | 3, step + row)
        assert inner.read(3)[row] == expected


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
    assert [f"{word:016x}" for word in words.read(1).tolist()] == [
        "3593372bfbd06928",
        "48575d63b427435b",
        "ef04379a4e6a8645",
        "fb35cdac460b9c1e",
    ]


# any cutting, any order, any company


@exactly
@given(starts, counts, st.lists(st.integers(0, EPOCH + 3), max_size=5), streams)
def test_any_cutting_gives_the_same_words(start, count, cuts, stream):
    whole = words_of(KEYS[0], start, count).read(stream)
    assert whole.dtype == np.uint64 and len(whole) == count
    edges = [0, *sorted(cut for cut in cuts if cut < count), count]
    parts = [StepRange(KEYS[0], start + a, b - a) for a, b in itertools.pairwise(edges)]
    apart = [Keystream([part], "noise").read(stream) for part in parts]
    np.testing.assert_array_equal(np.concatenate(apart), whole)
    together = Keystream(parts, "noise")
    assert together.count == count
    np.testing.assert_array_equal(together.read(stream), whole)


@exactly
@given(runs_of_series, streams, st.randoms(use_true_random=False))
def test_many_series_in_one_block_each_get_their_own_words_in_any_order(runs, stream, shuffler):
    alone = [Keystream([run], "noise").read(stream).tolist() for run in runs]
    together = Keystream(runs, "noise").read(stream).tolist()
    assert together == list(itertools.chain.from_iterable(alone))
    order = list(range(len(runs)))
    shuffler.shuffle(order)
    shuffled = Keystream([runs[i] for i in order], "noise").read(stream).tolist()
    assert shuffled == list(itertools.chain.from_iterable(alone[i] for i in order))


@exactly
@given(runs_of_series, streams, st.lists(st.integers(0, 4094), max_size=3), st.data())
def test_some_rows_get_the_words_they_get_among_all(runs, stream, substreams, data):
    words = Keystream(runs, "noise")
    for number in substreams:
        words = words.substream(number)
    whole = words.read(stream)
    chosen = data.draw(st.lists(st.booleans(), min_size=words.count, max_size=words.count))
    rows = np.flatnonzero(np.array(chosen, dtype=bool))
    some = words.rows(rows)
    assert some.count == len(rows)
    np.testing.assert_array_equal(some.read(stream), whole[rows])
    # some of the some, and substreams opened before or after
    again = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    fewer = np.flatnonzero(np.array(again, dtype=bool))
    np.testing.assert_array_equal(some.rows(fewer).read(stream), whole[rows][fewer])
    np.testing.assert_array_equal(
        some.substream(3).rows(fewer).read(stream), words.substream(3).read(stream)[rows][fewer]
    )
    for row in range(min(words.count, 3)):
        assert words.read_one(row, stream) == whole[row]


@exactly
@given(runs_of_series, st.lists(st.integers(0, 4094), max_size=2), st.integers(1, 3), st.data())
def test_words_of_several_branches_at_once_are_those_of_each(runs, path, every, data):
    words = Keystream(runs, "noise")
    assume(words.count)  # there is nothing to finish where there are no rows
    for number in path:
        words = words.substream(number)
    if every > 1:
        words = words.rows(np.arange(0, words.count, every))
    count = data.draw(st.integers(1, 6))
    # a row may want words of several substreams, in any order
    places = st.tuples(st.integers(0, words.count - 1), st.integers(0, count - 1))
    chosen = data.draw(st.lists(places, max_size=12))
    chosen.sort(key=lambda pair: pair[0])
    rows = np.array([row for row, _ in chosen], dtype=np.intp)
    numbers = np.array([number for _, number in chosen], dtype=np.intp)
    taken = words.read_substreams(rows, numbers, count)
    assert taken.dtype == np.uint64
    assert taken.tolist() == [words.substream(number).read_one(row, 0) for row, number in chosen]
    for number in range(count):
        wanted = np.unique(rows[numbers == number])
        together = words.substream(number).rows(wanted).read().tolist()
        assert (
            together == words.read_substreams(wanted, np.full(len(wanted), number), count).tolist()
        )


def test_words_of_branches_are_where_the_layout_says():
    secret = bytes(range(32))
    rows, numbers = np.array([0, 0, 1, 4]), np.array([3, 0, 2, 3])
    words = words_of(SeriesKey(secret, 0), EPOCH - 3, 5).substream(6)
    expected = [
        word_by_hand(secret, "noise", (7 << 12 | number + 1) << 12, EPOCH - 3 + row)
        for row, number in zip(rows.tolist(), numbers.tolist(), strict=True)
    ]
    assert words.read_substreams(rows, numbers, 4).tolist() == expected
    for _ in range(6):
        words = words.substream(0)
    with pytest.raises(KeyReuseError, match="too deep"):
        words.read_substreams(rows, numbers, 4)


@exactly
@given(runs_of_series, st.integers(1, 30), streams)
def test_blocks_of_runs_hold_all_steps_in_order_and_no_more_than_asked(runs, most, stream):
    groups = list(blocks_of_runs(runs, most))
    assert all(sum(run.count for run in group) <= most for group in groups)
    whole = Keystream(runs, "noise").read(stream)
    parts = [Keystream(group, "noise").read(stream) for group in groups]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_run_longer_than_epochs_is_cut_where_the_key_changes():
    key = KEYS[0]
    whole = words_of(key, EPOCH - 3, 2 * EPOCH + 6).read()
    apart = [
        words_of(key, EPOCH - 3, 3),
        words_of(key.at_epoch(1), EPOCH, EPOCH),
        words_of(key.at_epoch(2), 2 * EPOCH, EPOCH),
        words_of(key.at_epoch(3), 3 * EPOCH, 3),
    ]
    np.testing.assert_array_equal(np.concatenate([words.read() for words in apart]), whole)


def test_taking_twice_gives_the_same_and_leaves_the_first_alone():
    words = words_of(KEYS[0], 1, 100)
    first = words.read()
    kept = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(words.read(), kept)


# different places


def test_lanes_branches_purposes_series_specs_releases_and_keys_all_differ():
    count = 40
    key = Key.from_seed(1)
    first = key.series("spec", "series")
    root = words_of(first, 0, count)
    sources = {f"stream {stream}": root.read(stream) for stream in (0, 1, 2, 13, 4095)}
    for path in [
        (0,),
        (1,),
        (4094,),
        (0, 0),
        (0, 1),
        (1, 0),
        (0, 0, 0),
        (1, 12),
        (12, 1),
        (0,) * 7,
        (4094,) * 7,
    ]:
        words = root
        for number in path:
            words = words.substream(number)
        for stream in (0, 1, 4095):
            sources[f"substream {path} stream {stream}"] = words.read(stream)
    for purpose in ("", "nois", "noise ", "budget"):
        sources[f"purpose {purpose}"] = words_of(first, 0, count, purpose).read()
    # columns are series and purposes of their own: names cannot run into one another
    for spec, series in [
        ("spec", "other"),
        ("other", "series"),
        ("specs", "eries"),
        ("spe", "cseries"),
        ("", "specseries"),
    ]:
        sources[f"{spec}/{series}"] = words_of(key.series(spec, series), 0, count).read()
    sources["seed"] = words_of(Key.from_seed(2).series("spec", "series"), 0, count).read()
    secret = b"s" * 32
    for release in ("one", "two"):
        sources[release] = words_of(Key(secret, release).series("spec", "series"), 0, count).read()
    for epoch in (1, 2):
        sources[f"epoch {epoch}"] = words_of(first, epoch * EPOCH, count).read()
    everything = np.concatenate(list(sources.values()))
    # the chance that two of 2600 words are the same by accident is 2e-13
    assert len(everything) > 1000
    assert len(np.unique(everything)) == len(everything)


@exactly
@given(
    st.lists(st.integers(0, 4094), max_size=6),
    st.lists(st.integers(0, 4094), max_size=6),
    st.integers(0, 4095),
    st.integers(0, 4095),
)
def test_no_two_places_share_a_counter(path, other, stream, other_stream):
    def word(path, stream):
        words = words_of(KEYS[0], 0, 1)
        for number in path:
            words = words.substream(number)
        return words.read(stream)[0]

    same = path == other and stream == other_stream
    assert (word(path, stream) == word(other, other_stream)) == same


def test_places_that_do_not_exist_are_refused():
    words = words_of(KEYS[0], 0, 4)
    for number in (-1, (1 << SUBSTREAM_BITS) - 1, 1 << SUBSTREAM_BITS):
        with pytest.raises(KeyReuseError, match=f"substream {number}: too many"):
            words.substream(number)
    # stream 4096 would be stream 0 of substream 0
    for stream in (-1, 1 << SUBSTREAM_BITS):
        with pytest.raises(KeyReuseError, match=f"stream {stream}: too many"):
            words.read(stream)
    for number in range(7):
        words = words.substream(number)
    with pytest.raises(KeyReuseError, match="too deep"):
        words.substream(0)


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
        with pytest.raises(KeyReuseError, match=f"epoch {epoch}: its key has been erased"):
            later.at_epoch(epoch)
    with pytest.raises(KeyReuseError, match="epoch 2: its key has been erased"):
        words_of(later, 3 * EPOCH - 1, 2)


def test_a_later_link_gives_the_words_of_its_steps():
    start = KEYS[0]
    np.testing.assert_array_equal(
        words_of(start.at_epoch(2), 2 * EPOCH + 5, 9).read(),
        words_of(start, 2 * EPOCH + 5, 9).read(),
    )


def test_links_and_checks_all_differ():
    links = [key.at_epoch(epoch) for key in KEYS for epoch in range(5)]
    assert len({link.secret for link in links}) == len(links)
    assert len({link.check() for link in links}) == len(links)
    for link in links:
        assert bytes.fromhex(link.check()) not in link.secret
        assert link.check() == SeriesKey(link.secret, link.epoch).check()


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


# words look uniform


COUNT = 1 << 20 if COMPILED else 1 << 18
# a share of ones off by one percent of a half (two with fewer words) is detected in every bit
OFF = 0.01 if COMPILED else 0.02


def test_every_bit_of_a_word_is_one_half_the_time(seed):
    words = words_of(Key.from_seed(seed).series("spec", "series"), 12345, COUNT).read()
    for bit in range(64):
        ones = int((words >> np.uint64(bit) & np.uint64(1)).sum())
        assert_proportion(ones, COUNT, 0.5, detects=OFF)


def test_bits_do_not_remember_the_row_before_nor_the_lane_nor_the_branch_beside(seed):
    words = words_of(Key.from_seed(seed).series("spec", "series"), 0, COUNT + 1)
    first = words.read()
    pairs = [
        first[1:] ^ first[:-1],
        (first ^ words.read(1))[1:],
        (first ^ words.substream(0).read())[1:],
        (words.substream(0).read() ^ words.substream(1).read())[1:],
    ]
    for changed in pairs:
        for bit in (0, 1, 15, 16, 31, 32, 47, 48, 62, 63):
            ones = int((changed >> np.uint64(bit) & np.uint64(1)).sum())
            assert_proportion(ones, COUNT, 0.5, detects=OFF)


def test_bytes_of_words_are_uniform(seed):
    words = words_of(Key.from_seed(seed).series("spec", "series"), 0, COUNT).read()
    as_bytes = words.view(np.uint8).reshape(-1, 8)
    for place in range(8):
        counts = np.bincount(as_bytes[:, place], minlength=256)
        assert_cells(counts, np.full(256, 1 / 256), detects=2 * OFF)
