"""Runs lit and ends with one plain line: `N passed, N failed, N skipped`.

usage: run_lit.py LIT FOLDER [lit options]
"""
import json
import os
import subprocess
import sys
import tempfile

PASSED = ("PASS", "XFAIL", "FLAKYPASS")
SKIPPED = ("UNSUPPORTED", "SKIPPED", "EXCLUDED")


def main(lit, folder, options):
    with tempfile.TemporaryDirectory() as scratch:
        result = os.path.join(scratch, "result.json")
        command = [sys.executable, lit, "-sv", "-j2", "-o", result, *options, folder]
        code = subprocess.run(command).returncode
        if not os.path.exists(result):
            print(f"lit wrote no result (exit code {code})", file=sys.stderr)
            return code or 1
        with open(result, encoding="utf-8") as file:
            codes = [test["code"] for test in json.load(file)["tests"]]
    passed = sum(code in PASSED for code in codes)
    skipped = sum(code in SKIPPED for code in codes)
    print(f"{passed} passed, {len(codes) - passed - skipped} failed, {skipped} skipped")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
