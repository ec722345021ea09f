"""A process of its own that charges a ledger and prints every receipt it holds.

python charge_process.py LEDGER PREFIX COUNT EPSILON (COUNT = 0: until it is killed)
"""

import itertools
import sys
import time

from tempriv.errors import BudgetError
from tempriv.ledger.ledger import Ledger
from tempriv.ledger.scope import Scope
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.privacy.units import Event


def main(path: str, prefix: str, count: int, epsilon: float) -> None:
    promise = Guarantee(loss=Pure(epsilon), unit=Event())
    scope = Scope(members=("a", "b"), start=0, end=9, step=1)
    with Ledger.open(path) as ledger:
        for number in range(count) if count else itertools.count():
            try:
                receipt = ledger.charge("meters", promise, scope, f"{prefix}-{number}")
                print("charged", receipt.release_id, flush=True)
            except BudgetError:
                print("refused", flush=True)
            if not count:
                # SQLite is not fair: without a pause one process can keep the others waiting
                time.sleep(0.001)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
