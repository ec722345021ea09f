"""Makes the bundled sample: hourly energy use of six made-up homes, no real person's data.

python examples/make_sample.py src/tempriv/datasets/meters.csv
"""

import csv
import datetime
import sys
from pathlib import Path

import numpy as np

HOMES, DAYS = 6, 28
rng = np.random.default_rng(20260101)
start = datetime.datetime(2026, 1, 5)

with Path(sys.argv[1]).open("w", newline="") as file:
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["home", "time", "energy_kWh"])
    homes = [
        {
            "base": rng.uniform(0.15, 0.4),
            "wake": rng.normal(6.5, 1),
            "back": rng.normal(18, 1.5),
            "heat": rng.uniform(0.3, 1.2),
        }
        for _ in range(HOMES)
    ]
    for hour in range(24 * DAYS):
        moment = start + datetime.timedelta(hours=hour)
        away_weekend = moment.weekday() >= 5
        for number, home in enumerate(homes):
            of_day = moment.hour
            morning = np.exp(-(((of_day - home["wake"] - away_weekend) / 1.2) ** 2))
            evening = np.exp(-(((of_day - home["back"]) / 2.5) ** 2))
            midday = 0.4 * away_weekend * np.exp(-(((of_day - 13) / 3) ** 2))
            mean = home["base"] + home["heat"] * (0.6 * morning + 1.1 * evening + midday)
            value = mean * rng.lognormal(0, 0.25) + (rng.random() < 0.02) * rng.uniform(1, 3)
            rows.writerow([f"home-{number + 1}", moment.isoformat(sep=" "), f"{value:.3f}"])
