"""What every mechanism must do: one suite of checks, each over a ``Case``.

A check raises AssertionError when a mechanism breaks it, so that ``mutants`` can be fed to it too.
A new mechanism gets cases here (and a plain reference in ``reference``); nothing else is written
for it. Randomness in the checks is derived from the case's name: a verdict never changes by itself.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance.case_checks import (
    Case,
    Small,
    named,
    near,
    plain_kernels,
    quick,
    recorded,
    same,
    with_status,
)
from tests.conformance.distribution_checks import (
    samplers_follow_their_laws,
    stated_errors_are_exact,
    stated_errors_are_met,
    the_promise_holds,
)
from tests.conformance.error_checks import bad_parameters_are_refused, bad_readings_are_refused
from tests.conformance.key_checks import (
    a_kept_key_only_goes_on,
    a_key_opens_each_series_once,
    a_step_is_released_once,
    every_number_varies_with_key_and_place,
    seeded_keys_promise_nothing,
    what_is_finished_stays_so,
)
from tests.conformance.spec_checks import (
    memory_stays_flat,
    spec_survives_json,
    state_holds_no_secret,
    with_budget,
    wrong_states_are_refused,
)
from tests.conformance.stream_checks import (
    _for_all_rows,
    compiled_and_plain_and_reference_agree,
    many_series_in_any_order,
    masked_readings_are_not_looked_at,
    resume_across_an_epoch,
    resume_from_any_state,
    same_bits_for_any_cutting,
    shape_is_free_of_values,
    the_past_does_not_move,
)

CHECKS: tuple[Callable[[Case], None], ...] = (
    same_bits_for_any_cutting,
    resume_from_any_state,
    resume_across_an_epoch,
    many_series_in_any_order,
    compiled_and_plain_and_reference_agree,
    the_past_does_not_move,
    shape_is_free_of_values,
    masked_readings_are_not_looked_at,
    every_number_varies_with_key_and_place,
    a_key_opens_each_series_once,
    a_step_is_released_once,
    what_is_finished_stays_so,
    a_kept_key_only_goes_on,
    seeded_keys_promise_nothing,
    spec_survives_json,
    state_holds_no_secret,
    wrong_states_are_refused,
    memory_stays_flat,
    bad_readings_are_refused,
    bad_parameters_are_refused,
    the_promise_holds,
    stated_errors_are_exact,
    stated_errors_are_met,
    samplers_follow_their_laws,
)

__all__ = [
    "CHECKS",
    "Case",
    "Small",
    "_for_all_rows",
    "a_kept_key_only_goes_on",
    "a_key_opens_each_series_once",
    "a_step_is_released_once",
    "bad_parameters_are_refused",
    "bad_readings_are_refused",
    "compiled_and_plain_and_reference_agree",
    "every_number_varies_with_key_and_place",
    "many_series_in_any_order",
    "masked_readings_are_not_looked_at",
    "memory_stays_flat",
    "named",
    "near",
    "plain_kernels",
    "quick",
    "recorded",
    "resume_across_an_epoch",
    "resume_from_any_state",
    "same",
    "same_bits_for_any_cutting",
    "samplers_follow_their_laws",
    "seeded_keys_promise_nothing",
    "shape_is_free_of_values",
    "spec_survives_json",
    "state_holds_no_secret",
    "stated_errors_are_exact",
    "stated_errors_are_met",
    "the_past_does_not_move",
    "the_promise_holds",
    "what_is_finished_stays_so",
    "with_budget",
    "with_status",
    "wrong_states_are_refused",
]
