#!/usr/bin/env python3
"""Eight EQDS tunnels into one output that trims: trims, what is sent again, the longest queue; in both worlds.

    tunnels.py simulated   `selvedge run` with tunnels.toml
    tunnels.py real        `selvedge eqds lab` with the same network; ../eqds-real/incast.py asks for the answers
"""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SELVEDGE = os.environ.get("SELVEDGE", "selvedge")
SMOKE = os.environ.get("SELVEDGE_SMOKE") == "1"
RUN = int(os.environ.get("SELVEDGE_RUN") or 0)
SENDERS, ROUNDS, OUTPUT = 8, 5 if SMOKE else 50, "leaf0:h0"


def run(words):
    """Runs a command and returns its output; ends with its message if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, cwd=HERE)
    if done.returncode != 0:
        print(f"`{' '.join(words)}` failed: {done.stderr.strip()}", file=sys.stderr)
        sys.exit(2)
    return done.stdout


def simulated():
    """Returns trims, packets sent again, longest queue in bytes, and rounds."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "results")
        sets = [f"seeds=[{RUN + 1}]", f"workload.incast.repeat={ROUNDS}", "transport.eqds.window='32KB'"]
        changes = [word for change in sets for word in ("--set", change)]
        words = ["run", "tunnels.toml", "-q", "--series", "tcp+cubic+eqds", "--no-controls", *changes, "--out", out]
        run([SELVEDGE, *words])
        with open(os.path.join(out, "summary.json")) as file:
            metrics = json.load(file)["series"][0]["metrics"]
    of = lambda name: metrics[name]["mean"]  # noqa: E731
    return of("trims"), of("retransmissions"), of("queue_peak_kb") * 1e3, ROUNDS


def real():
    """Returns the same of a laboratory, whose first round opens windows and counts, too."""
    program = ["../eqds-real/incast.py", "--size", "20000", "--rounds", str(ROUNDS), "--seconds", "0"]
    first = ["--config-extra", "../eqds-real/trimming/at-once.toml"]
    text = run([SELVEDGE, "eqds", "lab", "--rack", "tunnels.toml", "--json", "--name", "svt", *first, "--", *program])
    lines, counters = text[: text.index("\n{\n")], json.loads(text[text.index("\n{\n") :])
    daemon = next(line for line in map(json.loads, lines.splitlines()) if line["figure"] == "daemon")
    output = counters["switches"]["places"][OUTPUT]
    if daemon["trimmed"] > output["trims"]:
        raise SystemExit(f"the receiver was told of {daemon['trimmed']} trims, and there were {output['trims']}")
    return output["trims"], daemon["retransmissions"], output["peak_bytes"], ROUNDS + 1


if sys.argv[1:] in (["real"], ["simulated"]):
    trims, again, peak, rounds = real() if sys.argv[1] == "real" else simulated()
    values = {"trims_per_answer": trims / rounds / SENDERS, "again_per_trim": again / trims, "queue_peak_kb": peak / 1e3}
    print(json.dumps({"figure": "output", **values}))
else:
    print(__doc__, file=sys.stderr)
    sys.exit(2)
