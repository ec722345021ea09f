"""Release orders that hide when a value was read: the paper's figures and statements again.

The source is Ye, Hu, Li, Meng, Zheng and Yan, "Beyond Value Perturbation: Local Differential
Privacy in the Temporal Setting" (2021). Its three mechanisms stand beside three of ours in every
figure.
"""

from __future__ import annotations

from collections.abc import Iterator

from tempriv.studies.common import ResultTable, Study, all_rows
from tempriv.studies.tldp import costs, data, tasks
from tempriv.studies.tldp.data import TldpInputs
from tempriv.studies.tldp.experiment import FULL, QUICK, TldpSize
from tempriv.studies.tldp.figures import PICTURES

REMARKS = (
    "Definition 2.2, read literally, holds for none of the paper's mechanisms: an output may show "
    "a value before it arrives in the other order. What holds is a statement about one released "
    "slot by itself (Backward, Threshold), or nothing (Forward). BlockShuffle keeps the definition "
    "for swaps inside its blocks, NoisyOrder for every swap within the window.",
    "Misprints: in Equation 7 the factor (j - i) must be j; above Equation 12 'Backward' must be "
    "'Forward'; in Definition 2.1 |i - j| <= k must be <= k - 1; the flipping probability of "
    "Section V-A2 is the probability of not flipping.",
    "Lemma 4.1 and Theorem 4.2 are right and useless in floating point: their alternating sums "
    "cancel. Algorithm 2 does not find the largest threshold that it looks for.",
    "'10 for k = 10, 16 for k = 50' are not the most that Threshold can derive, as Section V-B2 "
    "says; they are close to where it stops being cheaper than the baselines.",
    "For moving averages of the close over k days Threshold is not the best in most cases, as "
    "Section V-C2 says, but Forward is at all budgets; the paper's own unit costs say so too. On "
    "values without a trend, averaged over many windows, Threshold is the best.",
    "Sensitivities of the Laplace baseline are taken from the data, as in the paper. That is not "
    "private, and it favors the baseline.",
    "Table II is of other taxis than the paper's (Shenzhen, 300 steps of 15 seconds): of the data "
    "that the paper names, too few trips with 300 steps are at hand. Another run of the same "
    "mechanism moves a number of it by up to 0.24, since k-medoids ends elsewhere.",
)


def _tables(inputs: TldpInputs, size: TldpSize) -> Iterator[ResultTable]:
    yield from costs.tables(size)
    yield from tasks.tables(inputs, size)


STUDY = Study(
    name="tldp",
    title="Local differential privacy in the temporal setting, checked",
    files=data.FILES,
    holds=f"{data.STOCK} (daily closes) and {data.TAXIS} (taxi segments)",
    read=data.read,
    quick=QUICK,
    full=FULL,
    tables=_tables,
    rows=all_rows(costs, tasks),
    pictures=PICTURES,
    remarks=REMARKS,
)
"""With ``FULL`` size as many steps as in the paper, and more runs."""
