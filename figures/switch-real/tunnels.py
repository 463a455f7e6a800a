#!/usr/bin/env python3
"""Eight EQDS tunnels into one output that trims: trims, what is sent again, the longest queue; in both worlds.

    tunnels.py simulated   `selvedge run` with tunnels.toml
    tunnels.py real        `selvedge eqds lab` with the same network; ../eqds-real/incast.py asks for the answers
"""

import json
import os
import sys
import tempfile

import worlds

SENDERS, ROUNDS, OUTPUT = 8, 5 if worlds.SMOKE else 50, "leaf0:h0"


def simulated():
    """Returns trims, packets sent again, longest queue in bytes, and rounds."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "results")
        sets = [f"workload.incast.repeat={ROUNDS}", "transport.eqds.window='32KB'"]
        worlds.simulate("tunnels.toml", sets, "--series", "tcp+cubic+eqds", "--no-controls", "--out", out)
        with open(os.path.join(out, "summary.json")) as file:
            metrics = json.load(file)["series"][0]["metrics"]
    of = lambda name: metrics[name]["mean"]  # noqa: E731
    return of("trims"), of("retransmissions"), of("queue_peak_kb") * 1e3, ROUNDS


def real():
    """Returns the same of a laboratory, whose first round opens windows and counts, too."""
    program = ["../eqds-real/incast.py", "--size", "20000", "--rounds", str(ROUNDS), "--seconds", "0"]
    first = ["--config-extra", "../eqds-real/trimming/at-once.toml"]
    text = worlds.run(["eqds", "lab", "--rack", "tunnels.toml", "--json", "--name", "svt", *first, "--", *program])
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
