"""What a decision of DeepSense costs: torch, ONNX Runtime, C on a window and in a stream.

The network has its default sizes, two sensors of three axes, 4.8 s at 50 Hz and 6 classes. Its
weights hardly matter for time, so it is trained for one epoch on drawn windows.
"""

from __future__ import annotations

import argparse

import numpy as np

import rdeepsense as rds

NAMES = ("torch", "onnxruntime", "c-float32", "c-int8", "c-exact", "c-running")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 240, 6)), np.arange(60) // 7 % 6
    model = rds.RDeepSenseClassifier(
        network=rds.networks.DeepSense(), epochs=1, effort="quick", verbose=False, random_state=0
    ).fit(X, y)
    report = rds.profile(model, candidates=NAMES, rounds=rounds).to_json()
    print(report["machine"])
    for form in report["forms"]:
        if not form["available"]:
            print(f"{form['name']:12} {form['reason']}")
            continue
        print(
            f"{form['name']:12} {form['microseconds']:8.1f} us  {form['multiply_adds']:9,} "
            f"multiply-adds  {form['instructions'] or 0:10,} instructions  "
            f"{form['weight_bytes']:8,} bytes"
        )


if __name__ == "__main__":
    main()
