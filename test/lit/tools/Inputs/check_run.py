"""Checks the JSON of ss-run: check_run.py FILE [condition ...]

A condition is a Python expression over the figures, such as "kl_nats <= 1e-5".
"""
import json
import sys

KEYS = {
    "bits_per_byte": {"dense", "compressed"},
    "state_bytes": {"dense", "live_mean", "live_peak", "allocated_peak", "snapshots"},
    "state_seconds": {"dense", "compressed"},
    "rank": {"gdn", "mamba2", "kda"},
}

with open(sys.argv[1], encoding="utf-8") as stream:
    figures = json.load(stream)
for key, members in KEYS.items():
    assert set(figures[key]) == members, (key, figures[key])
for layer_type, rank in figures["rank"].items():
    assert 0 <= rank["mean"] <= rank["max"], (layer_type, rank)
for key in ("kl_nats", "compactions", "consolidations", "policy", "options", "version"):
    assert key in figures, key
figures["bits_difference"] = abs(
    figures["bits_per_byte"]["compressed"] - figures["bits_per_byte"]["dense"])
figures["live_share"] = (
    figures["state_bytes"]["live_mean"] / figures["state_bytes"]["dense"])
for condition in sys.argv[2:]:
    assert eval(condition, {"__builtins__": {}}, figures), (condition, figures)
print("figures hold")
