"""Releases the bundled table from Python: a guarantee, a ledger, files and a picture.

Run it with ``python examples/release_csv.py``; it writes to tempriv-demo/ in the current folder.
"""

from pathlib import Path

import tempriv as tp
from tempriv.datasets import METERS

folder = Path("tempriv-demo")
folder.mkdir(exist_ok=True)

# bounds come from what is known of the meters, not from the data
hourly = tp.Laplace(epsilon=1.0, bounds=(0, 5))
print("expected error of one value:", round(hourly.errors[0], 3), "kWh")

with tp.Ledger.create(folder / "ledger.sqlite") as ledger:
    if "meters" not in ledger.datasets():
        ledger.create_dataset("meters", unit=tp.Event(), epsilon=3.0)
    try:
        release = tp.release(
            METERS,
            hourly,
            values="energy_kWh",
            time="time",
            series="home",
            clip=True,
            ledger=ledger,
            dataset="meters",
        )
    except tp.BudgetError as refusal:
        raise SystemExit(f"refused: {refusal}") from None

print(release.guarantee.sentence)
print(release.guarantee.plain)
print(release.published.sentence)
receipt = release.about["ledger"]
print("left of the budget:", receipt["totals"][0]["remaining"])

output = release.write(folder / "from_python.csv", force=True)
print("written:", output, "and", f"{output}.release.json")

try:
    figure = release.plot("home-1")
except ImportError:
    print("no picture: install the extra with pip install 'tempriv[plots]'")
else:
    figure.savefig(folder / "home-1.png", dpi=150)
    print("picture:", folder / "home-1.png")
