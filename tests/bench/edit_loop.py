#!/usr/bin/env python3
"""Edit -> rebuild -> verdict: an extracted kernel against its own application, side by side.

For one kernel of each example: an edit of the file that defines the kernel, then
  application:  incremental rebuild (ninja), run on the (software) GPU, the application's own check
  reproducer:   rebuild of the kernel (ninja), `kerncap validate`
in turn, several times. Prints both medians and the median of the ratios, pair by pair; --json for machines.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import kerncap_tests
from example_cases import CASES
from kerncap_tests import EXAMPLES, gpu_options


def must(command, **options):
    result = kerncap_tests.run(command, **options)
    if result.code != 0:
        sys.exit(str(result))
    return result


def seconds(*commands):
    started = time.perf_counter()
    for command in commands:
        must(command)
    return time.perf_counter() - started


class Touch:
    """A real edit: another comment at the end of the file each time, so that no cache can answer."""

    def __init__(self, path):
        self.path, self.text, self.count = path, path.read_text(), 0

    def __call__(self):
        self.count += 1
        self.path.write_text(f"{self.text}\n// edit {self.count}\n")


def measure(prefix, case, rounds, scratch):
    kerncap = prefix.kerncap
    sources, build, project = scratch / "sources", scratch / "build", scratch / "project"
    shutil.copytree(EXAMPLES, sources)
    must([kerncap, "build", "--", "cmake", "-S", sources / case.example, "-B", build, "-G", "Ninja"])
    must([kerncap, "build", "--", "cmake", "--build", build])
    application = [build / case.example, *case.arguments]
    must([kerncap, "extract", "--no-validate", *gpu_options(), "-k", case.kernel, "--dispatch", case.dispatch,
          "-o", project, "--", *application])
    must(["cmake", "-S", project, "-B", project / "build", "-G", "Ninja"])
    must(["cmake", "--build", project / "build", "--target", "kernel"])

    run = [kerncap, "softgpu", "--arch", "gfx90a", "--", *application] if gpu_options() else application
    in_application = Touch(next(iter((sources / case.example).rglob(case.definition))))
    in_project = Touch(next(iter((project / "src").rglob(case.definition))))
    pairs = []
    for _ in range(rounds + 1):  # the first is a warm-up
        in_application()
        slow = seconds(["ninja", "-C", build], run)
        in_project()
        fast = seconds(["ninja", "-C", project / "build", "kernel"], [kerncap, "validate", *gpu_options(), project])
        pairs.append((slow, fast))
    return pairs[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", required=True, help="Kerncap's build tree or installed prefix")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("cases", nargs="*", help="case names (default: the first one of each example)")
    options = parser.parse_args()
    prefix = kerncap_tests.Prefix(options.prefix)
    cases = [case for case in CASES if case.name in options.cases]
    if not options.cases:
        cases = list({case.example: case for case in reversed(CASES)}.values())[::-1]
    rows = []
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="kerncap-bench-") as folder:
            pairs = measure(prefix, case, options.rounds, pathlib.Path(folder))
        ratios = sorted(slow / fast for slow, fast in pairs)
        rows.append({"kernel": case.name,
                     "application_s": statistics.median(slow for slow, _ in pairs),
                     "reproducer_s": statistics.median(fast for _, fast in pairs),
                     "ratio": statistics.median(ratios), "ratio_min": ratios[0], "ratio_max": ratios[-1]})
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'kernel':34} {'application':>12} {'reproducer':>11} {'times faster (min-max)':>24}")
    for row in rows:
        print(f"{row['kernel']:34} {row['application_s']:>10.2f} s {row['reproducer_s']:>9.2f} s "
              f"{row['ratio']:>12.2f} ({row['ratio_min']:.2f}-{row['ratio_max']:.2f})")


if __name__ == "__main__":
    main()
