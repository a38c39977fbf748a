"""Runs a program and checks its exit code: exit_code.py CODE PROGRAM [argument ...]"""
import subprocess
import sys

found = subprocess.run(sys.argv[2:], check=False).returncode
if found != int(sys.argv[1]):
    sys.exit(f"exit code {found}, expected {sys.argv[1]}")
