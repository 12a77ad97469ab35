#!/usr/bin/env python3
"""Takes kernels out of a real program on the software GPU, replays each and demands the application's own result, bit for bit.

Usage: capture_test.py KERNCAP ARCH COUNT PATTERN -- COMMAND...

Of the kernels that COMMAND launches and whose demangled name PATTERN (a Python regular expression) finds, the COUNT with the most device
time that are different functions are captured in one run each (their last dispatch but a few: not the program's start) and validated.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile


def run(command, what):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        print(f"{what} ended with {done.returncode}: {' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done


def main():
    separator = sys.argv.index("--")
    kerncap, arch, count, pattern = sys.argv[1:separator]
    command = sys.argv[separator + 1:]
    softgpu = f"--softgpu={arch}"
    profile = run([kerncap, "profile", "--json", softgpu, "--", *command], "profile")
    if profile.returncode != 0:
        return 1
    kernels = json.loads(profile.stdout[profile.stdout.index("{"):])["kernels"]
    chosen = {}
    for kernel in kernels:  # most device time first
        base = re.sub(r"[<(].*", "", kernel["kernel"].removeprefix("void "))
        if re.search(pattern, kernel["kernel"]) and base not in chosen:
            chosen[base] = kernel
    print(f"{len(kernels)} kernels, {len(chosen)} different functions: {', '.join(chosen)}")
    wanted, good = int(count), 0
    folder = tempfile.mkdtemp(prefix="kerncap-real-")
    try:
        for base, kernel in list(chosen.items())[:wanted]:
            snapshot = os.path.join(folder, f"{good}-{len(os.listdir(folder))}.kcap")
            dispatch = max(0, kernel["calls"] - 3)
            if run([kerncap, "capture", "-k", f"sym:{kernel['symbol']}", "--dispatch", str(dispatch), softgpu, "-o", snapshot, "--", *command],
                   f"capture of {base}").returncode != 0:
                continue
            verdict = run([kerncap, "validate", softgpu, snapshot], f"validation of {base}")
            print(f"{base}: dispatch {dispatch}: {'valid' if verdict.returncode == 0 else 'NOT VALID'}", flush=True)
            good += verdict.returncode == 0
    finally:
        shutil.rmtree(folder)
    print(f"{good} of {wanted} kernels captured, replayed and equal, bit for bit")
    return 0 if good >= wanted else 1


if __name__ == "__main__":
    sys.exit(main())
