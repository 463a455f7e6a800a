# Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
# SPDX-License-Identifier: Apache-2.0
"""Builds one module with Verilator and runs test_modules.py on it. `cargo xtask rtl cocotb` calls it.

usage: run.py MODULE BITMAP PIPELINED VECTORS FOLDER SEED
"""

import os
import sys
from pathlib import Path
from xml.etree import ElementTree

from cocotb.runner import get_runner


def main():
    """Status 1, and the reason, if a test fails."""
    module, bitmap, pipelined, vectors, folder, seed = sys.argv[1:]
    rtl = Path(__file__).resolve().parent.parent
    folder = Path(folder)
    parameters = {}
    if module == "melo_rx":
        parameters = {"Blocks": bitmap}
    elif module != "timeout":
        parameters = {"W": bitmap, "Pipelined": f"1'b{pipelined}"}
    runner = get_runner("verilator")
    runner.build(
        verilog_sources=[rtl / "src/irn_pkg.sv", rtl / f"src/{module}.sv"],
        includes=[rtl / "src"],
        hdl_toplevel=module,
        parameters=parameters,
        build_args=["-y", str(rtl / "src"), "-Wno-fatal", "--coverage-line", "--timescale", "1ns/1ps"],
        build_dir=folder,
    )
    environment = {
        "RTL_MODULE": module, "RTL_BITMAP": bitmap, "RTL_PIPELINED": pipelined, "RTL_VECTORS": vectors, "RTL_SEED": seed,
        "RTL_COVERAGE": str(folder / "coverage.json"), "RTL_NAME": folder.name,
        "PYTHONPATH": os.pathsep.join([str(rtl / "cocotb"), os.environ.get("PYTHONPATH", "")]),
    }
    results = runner.test(
        hdl_toplevel=module, test_module="test_modules", build_dir=folder, test_dir=folder, extra_env=environment
    )
    failures = [case for case in ElementTree.parse(results).iter("testcase") if case.find("failure") is not None]
    for case in failures:
        print(f"error: {module}: {case.get('name')} fails; see {folder}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
