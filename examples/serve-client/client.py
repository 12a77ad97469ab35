#!/usr/bin/env python3
"""Judges versions of a kernel with `kerncap serve`: the small client that a program which writes kernels needs.

    client.py PROJECT CANDIDATE.hip... [--softgpu]

Each file is compiled in place of the kernel's own source, validated, and, when it is right, timed against the captured
kernel. Prints a table, the fastest valid version first."""

import argparse
import json
import pathlib
import subprocess
import sys


class RequestFailed(Exception):
    """The server's answer was no answer: code (see docs/protocol.md), message, and perhaps the compiler's messages."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.code, self.messages = error["code"], error.get("messages", "")


class Kerncap:
    """A running `kerncap serve`. One request at a time; use it in a `with` block."""

    def __init__(self, project, *options, kerncap="kerncap", environment=None):
        self.process = subprocess.Popen([str(kerncap), "serve", str(project), *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)
        self.last_id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()  # the end of input ends the server
        self.process.wait(timeout=60)
        self.process.stdout.close()

    def ask(self, method, **parameters):
        self.last_id += 1
        self.process.stdin.write(json.dumps({"id": self.last_id, "method": method, **parameters}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RequestFailed({"code": "ended", "message": f"the server ended with {self.process.wait(timeout=60)}"})
        answer = json.loads(line)
        assert answer["id"] == self.last_id, answer
        if not answer["ok"]:
            raise RequestFailed(answer["error"])
        return answer["result"]


def judge(server, path):
    """(path, state, ratio to the captured kernel or None, one sentence)"""
    try:
        compiled = server.ask("compile", source=path.read_text())
    except RequestFailed as failure:
        if failure.code not in ("compile_failed", "compile_timed_out"):
            raise
        errors = [line for line in failure.messages.splitlines() if "error" in line]
        return path, "does not compile", None, errors[0] if errors else str(failure)
    answer = server.ask("validate", candidate=compiled["candidate"])
    if not answer["valid"]:
        return path, "wrong", None, answer["verdict"]["sentence"]
    verdict = server.ask("bench", candidate=compiled["candidate"], vs="captured")["verdict"]
    if "bench" not in verdict:
        return path, "wrong", None, verdict["sentence"]
    comparison = verdict["bench"]["comparison"]
    return path, comparison["answer"], comparison["ratio"]["value"], verdict["sentence"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project")
    parser.add_argument("candidates", nargs="+", type=pathlib.Path)
    parser.add_argument("--kerncap", default="kerncap", help="the program, where it is not on PATH")
    parser.add_argument("--softgpu", action="store_true", help="use the software GPU")
    options = parser.parse_args()
    flags = ["--softgpu"] if options.softgpu else []
    with Kerncap(options.project, *flags, kerncap=options.kerncap) as server:
        print("kernel:", server.ask("hello")["kernel"])
        results = [judge(server, path) for path in options.candidates]
        server.ask("shutdown")
    for path, state, ratio, sentence in sorted(results, key=lambda result: result[2] or float("inf")):
        print(f"{path.name:30} {state:18} {f'{ratio:.3f}' if ratio else '':8} {sentence}")
    return 0 if any(ratio for _, _, ratio, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
