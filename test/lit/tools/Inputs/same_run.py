"""Checks that two JSON files of ss-run have the same figures, but for the times:
same_run.py FILE FILE [key ...]

Without keys: all of them.
"""
import json
import sys

KEYS = ["bits_per_byte", "kl_nats", "state_bytes", "rank", "compactions", "folds",
        "consolidations", "went_dense", "went_factored"]

runs = []
for path in sys.argv[1:3]:
    with open(path, encoding="utf-8") as stream:
        runs.append(json.load(stream))
for key in sys.argv[3:] or KEYS:
    assert runs[0][key] == runs[1][key], (key, runs[0][key], runs[1][key])
assert runs[0]["compactions"] > 0
print("the runs are the same")
