#!/usr/bin/env python3
"""How often `bench --vs` is right: a kernel against itself (the answer should be "same"), and against one that does 3 %
more work ("slower", and the other way round "faster"), on the software GPU's counting clock or on the GPU that is there.

    bench_answers.py --prefix build/dev [--runs 100]

Needs a build tree with its tests. Prints how many of the runs had each answer; exit code 1 below 95 % and 90 %."""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

LEAST_SAME, LEAST_FOUND = 0.95, 0.90


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--iterations", type=int, default=20, help="pairs of samples a run")
    options = parser.parse_args()
    prefix = options.prefix.resolve()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("KERNCAP_", "LD_PRELOAD"))}
    if not os.access("/dev/kfd", os.R_OK | os.W_OK):
        environment.update(LD_PRELOAD=str(prefix / "lib/kerncap/libkerncap-softgpu.so"), KERNCAP_SOFTGPU_ARCH="gfx90a")
    folder = prefix / "replay/candidates"
    base, more = folder / "loops_400.hsaco", folder / "loops_414.hsaco"
    questions = [("same", base, base, LEAST_SAME), ("slower", more, base, LEAST_FOUND), ("faster", base, more, LEAST_FOUND)]
    good = True
    with tempfile.TemporaryDirectory(prefix="kerncap-bench-") as scratch:
        snapshot = pathlib.Path(scratch) / "snapshot"
        subprocess.run([prefix / "tests/replay_make_snapshot", folder / "captured.hsaco", snapshot], env=environment, check=True,
                       timeout=60)
        server = subprocess.Popen([prefix / "bin/kerncap-replay", "serve", snapshot], env=environment, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        for wanted, candidate, reference, least in questions:
            answers, ratios = collections.Counter(), []
            for _ in range(options.runs):
                server.stdin.write(json.dumps({"method": "bench", "code_object": str(candidate), "vs": str(reference),
                                               "iterations": options.iterations, "captured_inputs_only": True}) + "\n")
                server.stdin.flush()
                result = json.loads(server.stdout.readline())["result"]
                comparison = result["verdict"]["bench"]["comparison"]
                answers[comparison["answer"]] += 1
                ratios.append(comparison["ratio"]["value"])
            share = answers[wanted] / options.runs
            good = good and share >= least
            print(f"{candidate.stem} against {reference.stem}: wanted {wanted}, got {dict(answers)}; "
                  f"ratios {min(ratios):.4f} to {max(ratios):.4f}")
        server.stdin.close()
        server.wait(timeout=60)
        server.stdout.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
