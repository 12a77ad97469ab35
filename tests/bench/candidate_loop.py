#!/usr/bin/env python3
"""What keeping the snapshot resident saves: the same candidates judged by one `kerncap-replay serve` and by a
`kerncap-replay validate` each, in turn; and how much memory is written between two candidates.

    candidate_loop.py --prefix build/dev [--mib 256] [--rounds 5]

Needs a build tree with its tests; on the software GPU where there is no other."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--mib", type=int, default=256, help="device memory of the snapshot beside 3 MiB that the kernel uses")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    prefix = options.prefix.resolve()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("KERNCAP_", "LD_PRELOAD"))}
    if not os.access("/dev/kfd", os.R_OK | os.W_OK):
        environment.update(LD_PRELOAD=str(prefix / "lib/kerncap/libkerncap-softgpu.so"), KERNCAP_SOFTGPU_ARCH="gfx90a")
    folder = prefix / "replay/candidates"
    candidate = folder / "same_work.hsaco"
    with tempfile.TemporaryDirectory(prefix="kerncap-bench-") as scratch:
        snapshot = pathlib.Path(scratch) / "snapshot"
        subprocess.run([prefix / "tests/replay_make_snapshot", folder / "captured.hsaco", snapshot, "--large", str(options.mib)],
                       env=environment, check=True, timeout=600)
        server = subprocess.Popen([prefix / "bin/kerncap-replay", "serve", snapshot], env=environment, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)

        def resident():
            started = time.perf_counter()
            server.stdin.write(json.dumps({"method": "validate", "code_object": str(candidate)}) + "\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            assert answer["result"]["valid"], answer
            restore = answer["result"]["verdict"]["restore"]
            return time.perf_counter() - started, restore

        def separate(*arguments):
            started = time.perf_counter()
            subprocess.run([prefix / "bin/kerncap-replay", "validate", snapshot, *arguments], env=environment, check=True,
                           timeout=600, stdout=subprocess.DEVNULL)
            return time.perf_counter() - started

        first = resident()[0]
        rows = [(separate("--code-object", candidate), separate(), *resident()) for _ in range(options.rounds)]
        server.stdin.close()
        server.wait(timeout=60)
        server.stdout.close()
    median = lambda values: statistics.median(list(values))
    restore = rows[-1][3]
    print(f"snapshot of {options.mib} MiB; medians of {options.rounds} rounds")
    print(f"  validate of a candidate, a process each            {median(r[0] for r in rows):8.3f} s")
    print(f"  validate of the captured kernel, a process each    {median(r[1] for r in rows):8.3f} s  (start to verdict)")
    print(f"  validate of a candidate, resident                  {median(r[2] for r in rows):8.3f} s  (the first: {first:.3f} s)")
    print(f"  written at first {restore['all_bytes']} bytes in {restore['all_ns'] / 1e6:.1f} ms; between two runs "
          f"{restore['bytes']} bytes in {restore['ns'] / 1e6:.2f} ms: {restore['all_bytes'] / max(restore['bytes'], 1):.0f} times "
          f"less memory, {restore['all_ns'] / max(restore['ns'], 1):.0f} times less time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
