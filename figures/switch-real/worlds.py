"""Runs of Selvedge in the simulator or in a laboratory, for the programs of this folder."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SELVEDGE = os.environ.get("SELVEDGE", "selvedge")
SMOKE = os.environ.get("SELVEDGE_SMOKE") == "1"
RUN = int(os.environ.get("SELVEDGE_RUN") or 0)


def run(words):
    """Runs `selvedge` and returns its output; ends with its message if it fails."""
    done = subprocess.run([SELVEDGE, *words], capture_output=True, text=True, cwd=HERE)
    if done.returncode != 0:
        print(f"`{SELVEDGE} {' '.join(words)}` failed: {done.stderr.strip()}", file=sys.stderr)
        sys.exit(2)
    return done.stdout


def simulate(scenario, sets, *options):
    """Runs a scenario of this folder with one seed and these settings."""
    changes = [word for change in [f"seeds=[{RUN + 1}]", *sets] for word in ("--set", change)]
    run(["run", scenario, "-q", *changes, *options])


def record(world, rack, buffer, seconds, folder):
    """Records leaf0 while h0 and h1 send, for `seconds` in the simulator; returns the path of the capture."""
    if world == "real":
        program = [sys.executable, os.path.join(HERE, "paced.py"), "send"]
        run(["lab", rack, "--set", buffer, "--name", "svp", "--trace-dir", folder, "--", *program])
        return os.path.join(folder, "lab.pcapng")
    traces = ["--trace", "port=leaf0", "--trace-dir", folder, "--out", os.path.join(folder, "results")]
    simulate(rack, [buffer, f"stop.time='{seconds}s'"], *traces)
    return next(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".pcapng"))
