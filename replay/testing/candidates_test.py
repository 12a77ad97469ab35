#!/usr/bin/env python3
"""Honest, wrong and cheating candidates against one small capture, and snapshots that were tampered with: what
kerncap-replay says of each, on the software GPU."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

VALID, NO, USAGE, ENVIRONMENT, BAD_INPUT = range(5)

# candidate: (snapshot, exit code, what the verdict's sentence must say)
CANDIDATES = {
    "captured": ("fresh", VALID, r"^valid"),
    "same_work": ("fresh", VALID, r"^valid"),
    "loops_400": ("fresh", VALID, r"^valid"),
    "loops_414": ("fresh", VALID, r"^valid"),
    "other_layout": ("fresh", VALID, r"^valid"),
    "one_ulp": ("fresh", NO, r"argument 2, element 0: expected 1, got 1\.0000001"),
    "launches_nothing": ("fresh", NO, r"argument 1, element 0: expected 1, got -1"),
    "samples_only": ("fresh", NO, r"argument 1, element 3:"),
    "trusts_stale_output": ("stale", NO, r"inputs changed by a few percent.*argument 1, element 0:"),
    "embeds_the_result": ("fresh", NO, r"inputs changed by a few percent.*argument 1, element 0:"),
    # Its memory is put back before every run, so it works every time: no cheat left.
    "remembers_in_a_static": ("fresh", VALID, r"^valid"),
    "remembers_outside": ("fresh", NO, r"differs from the application"),
    "writes_outside": ("fresh", NO, r"the application had not allocated"),
    "writes_its_input": ("fresh", NO, r"argument 0, element 700000: expected 117, got 1000000000"),
    "writes_its_arguments": ("fresh", NO, r"\(host_kernarg\), element 44"),
    "forgets_the_counter": ("fresh", NO, r"device variable 'launches'"),
    "breaks_a_row": ("fresh", NO, r"\(registered\), reached from argument 4 \(pointer at byte 0\)"),
    "nan_output": ("fresh", NO, r"argument 1, element 0: expected 1, got nan"),
    "honest_lds": ("fresh", VALID, r"^valid"),
    "uninitialised_lds": ("fresh", NO, r"other initial contents of registers, LDS.*argument 1, element \d+:.*not written"),
    "uninitialised_scratch": ("fresh", NO, r"other initial contents of registers, LDS.*argument 1, element \d+:"),
    "uninitialised_register": ("fresh", NO, r"other initial contents of registers, LDS.*argument 1, element \d+:"),
    "races_in_a_workgroup": ("fresh", NO, r"another order of workgroups and waves.*argument 1, element \d+:.*race"),
    "races_between_workgroups": ("fresh", NO, r"another order of workgroups and waves.*argument 1, element \d+:.*race"),
    "patches_the_timer": ("fresh", NO, r"its own completion signal"),
    "hangs": ("fresh", NO, r"did not end within 2 s"),
    "faults": ("fresh", NO, r"memory access fault at 0x"),
    "traps": ("fresh", NO, r"the GPU stopped the kernel"),
    "small_workgroups": ("fresh", NO, r"workgroups of at most 64"),
    "other_name": ("fresh", BAD_INPUT, r"has no kernel 'step\.kd'; it has stride"),
    "other_parameters": ("fresh", BAD_INPUT, r"takes 3 parameters, the captured one 6"),
}


class Replay(unittest.TestCase):
    prefix = candidates = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="kerncap-replay-test"))
        cls.environment = {k: v for k, v in os.environ.items() if not k.startswith(("KERNCAP_", "HSA_", "LD_PRELOAD"))}
        cls.environment["LD_PRELOAD"] = str(cls.prefix / "lib/kerncap/libkerncap-softgpu.so")
        cls.environment["KERNCAP_SOFTGPU_ARCH"] = "gfx90a"
        cls.environment["KERNCAP_SOFTGPU_THREADS"] = "1"  # a race must not be found by chance
        for name, options in (("fresh", []), ("stale", ["--launches", "2", "--stale"]), ("large", ["--large", "256"])):
            subprocess.run([cls.prefix / "tests/replay_make_snapshot", cls.candidates / "captured.hsaco", cls.folder / name, *options],
                           env=cls.environment, timeout=60, check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def replay(self, *arguments, **changes):
        environment = {**self.environment, **changes}
        result = subprocess.run([self.prefix / "bin/kerncap-replay", *map(str, arguments), "--json"], env=environment,
                                timeout=100, capture_output=True, text=True)
        verdict = json.loads(result.stdout) if result.stdout else {"sentence": result.stderr}
        return result.returncode, verdict

    def hsaco(self, name):
        return self.candidates / (name + ".hsaco")

    def copy(self):
        target = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "snapshot"
        shutil.copytree(self.folder / "fresh", target)
        return target

    def edited(self, edit):
        """A copy of the snapshot whose manifest `edit` has changed."""
        snapshot = self.copy()
        manifest = json.loads((snapshot / "manifest.json").read_text())
        edit(manifest["dispatches"][0])
        (snapshot / "manifest.json").write_text(json.dumps(manifest))
        subprocess.run([self.prefix / "tests/replay_make_snapshot", "--seal", snapshot], timeout=60, check=True)
        return snapshot

    def test_candidates(self):
        for name, (snapshot, code, sentence) in CANDIDATES.items():
            with self.subTest(name):
                got, verdict = self.replay("validate", self.folder / snapshot, "--code-object", self.hsaco(name), "--timeout", 2)
                self.assertEqual(got, code, verdict)
                self.assertRegex(verdict["sentence"], sentence)

    def test_what_a_kernel_prints_is_told(self):
        code, verdict = self.replay("validate", self.folder / "fresh", "--code-object", self.hsaco("prints"))
        self.assertEqual(code, VALID, verdict)
        printed = "\n".join(verdict["notes"])
        self.assertIn("the kernel printed:\n", printed)
        self.assertIn("work-item 1 of step: 33.19    42|ff  |x%\n", printed)
        self.assertEqual(printed.count("work-item "), 6)

    def test_more_lds_than_there_is_counts_as_not_valid(self):
        # The application passes 4 KiB of dynamic LDS, and the candidate needs nearly all there is by itself.
        snapshot = self.edited(lambda d: d["packet"].update(group_segment_size=4096))
        self.assertEqual(self.replay("validate", snapshot)[0], VALID)
        code, verdict = self.replay("validate", snapshot, "--code-object", self.hsaco("over_requests_lds"))
        self.assertEqual(code, NO, verdict)
        self.assertRegex(verdict["sentence"], r"asks for 68096 bytes of LDS a workgroup, and gfx90a has 65536")

    def test_a_snapshot_that_changes_while_it_is_replayed_is_noticed(self):
        # Whole again, checksums and all, but not what it was: between the runs of one verdict.
        snapshot = self.copy()
        replay = subprocess.Popen([self.prefix / "bin/kerncap-replay", "validate", snapshot, "--iterations", "1000", "--json"],
                                  env=self.environment, stdout=subprocess.PIPE, text=True)
        time.sleep(1)
        manifest = json.loads((snapshot / "manifest.json").read_text())
        manifest["dispatches"][0]["kernel_demangled"] = "another"
        (snapshot / "manifest.json").write_text(json.dumps(manifest))
        subprocess.run([self.prefix / "tests/replay_make_snapshot", "--seal", snapshot], timeout=60, check=True)
        verdict = json.loads(replay.communicate(timeout=100)[0])
        self.assertEqual(replay.returncode, BAD_INPUT, verdict)
        self.assertIn("changed while it was being replayed", verdict["sentence"])

    def test_the_captured_kernel_is_valid_many_times_over(self):
        code, verdict = self.replay("validate", self.folder / "fresh", "--iterations", 20)
        self.assertEqual(code, VALID, verdict)
        self.assertEqual(verdict["runs"], 20)
        self.assertEqual(verdict["skipped"], [])

    def test_a_tolerance_lets_a_rounding_difference_pass(self):
        arguments = ("validate", self.folder / "fresh", "--code-object", self.hsaco("one_ulp"), "--tolerance")
        self.assertEqual(self.replay(*arguments, "2:ulp=1")[0], VALID)
        self.assertEqual(self.replay(*arguments, "1:ulp=1")[0], NO)
        self.assertEqual(self.replay(*arguments, "9:ulp=1")[0], USAGE)

    def test_a_stale_output_passes_only_where_changed_inputs_are_switched_off(self):
        code, _ = self.replay("validate", self.folder / "stale", "--code-object", self.hsaco("trusts_stale_output"),
                              "--captured-inputs-only")
        self.assertEqual(code, VALID)

    def test_bench_checks_the_results_of_timed_runs(self):
        for name in ("samples_only", "trusts_stale_output", "remembers_outside", "patches_the_timer", "embeds_the_result"):
            with self.subTest(name):
                code, verdict = self.replay("bench", self.folder / "fresh", "--code-object", self.hsaco(name), "--iterations", 10)
                self.assertEqual(code, NO, verdict)
                self.assertNotIn("bench", verdict)

    def test_bench_compares_two_code_objects(self):
        code, verdict = self.replay("bench", self.folder / "fresh", "--code-object", self.hsaco("same_work"), "--vs", "captured",
                                    "--iterations", 20)
        self.assertEqual(code, VALID, verdict)
        self.assertEqual(len(verdict["bench"]["first"]["samples_ns"]), 20)
        self.assertIn(verdict["bench"]["comparison"]["answer"], ("faster", "slower", "same", "cannot tell"))

    def test_replay_only_runs(self):
        code, verdict = self.replay("replay", self.folder / "fresh", "--iterations", 3)
        self.assertEqual((code, verdict["outcome"], len(verdict["device_times_ns"])), (VALID, "ran", 3))

    def test_a_tampered_snapshot_is_refused(self):
        for pattern in ("chunks/*.bin", "chunks/*.pack", "chunks/[0-9]*", "pages*", "kernarg*", "code/*"):
            for path in self.copy().glob(pattern):
                with self.subTest(path.name):
                    data = bytearray(path.read_bytes())
                    data[len(data) // 2] ^= 1
                    path.write_bytes(data)
                    snapshot = next(p for p in path.parents if p.name == "snapshot")
                    code, verdict = self.replay("validate", snapshot)
                    self.assertEqual(code, BAD_INPUT, verdict)

    def test_a_truncated_snapshot_is_refused(self):
        snapshot = self.copy()
        for path in (snapshot / "chunks").iterdir():
            path.write_bytes(path.read_bytes()[:-1])
        self.assertEqual(self.replay("validate", snapshot)[0], BAD_INPUT)

    def test_a_snapshot_without_an_after_state_runs_but_cannot_be_judged(self):
        snapshot = self.edited(lambda d: d.update(has_after=False, incomplete_reason="the kernel faulted"))
        code, verdict = self.replay("validate", snapshot)
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("the kernel faulted", verdict["sentence"])
        self.assertEqual(self.replay("replay", snapshot)[0], VALID)

    def test_another_gpu_is_refused(self):
        code, verdict = self.replay("validate", self.folder / "fresh", KERNCAP_SOFTGPU_ARCH="gfx906")
        self.assertEqual(code, ENVIRONMENT)
        self.assertRegex(verdict["sentence"], r"needs 1 GPU of ISA .*gfx90a.*this machine has .*gfx906")

    def test_a_gpu_that_is_too_small_is_refused_with_the_sum(self):
        code, verdict = self.replay("validate", self.folder / "large", KERNCAP_SOFTGPU_VRAM="128M")
        self.assertEqual(code, ENVIRONMENT, verdict)
        self.assertRegex(verdict["sentence"], r"needs \d+ bytes of local memory")

    def test_no_gpu_is_said_in_one_sentence(self):
        code, verdict = self.replay("validate", self.folder / "fresh", LD_PRELOAD="")
        self.assertEqual(code, ENVIRONMENT)
        self.assertRegex(verdict["sentence"], r"GPU")

    def test_memory_where_the_process_itself_would_be(self):
        # The dynamic loader in the first layout, the program in the second, the stack in both: another layout frees them.
        for address in ("0x2aaaaaaab000", "0x555555554000", "0x7ffffffdf000"):
            with self.subTest(address):
                def move(dispatch):
                    for region in dispatch["regions"]:
                        if region["kind"] == "registered":
                            region["host_address"] = address

                code, verdict = self.replay("validate", self.edited(move))
                self.assertEqual(code, VALID, verdict)

    def test_addresses_that_the_runtime_would_not_choose_by_itself(self):
        # Taken with another alignment and without shared blocks: every allocation lies at an odd page.
        environment = {**self.environment, "HSA_DISABLE_FRAGMENT_ALLOCATOR": "1", "HSA_MAX_VA_ALIGN": "0"}
        snapshot = self.folder / "odd"
        subprocess.run([self.prefix / "tests/replay_make_snapshot", self.candidates / "captured.hsaco", snapshot], env=environment,
                       timeout=60, check=True)
        for candidate in ([], ["--code-object", self.hsaco("other_layout")]):
            code, verdict = self.replay("validate", snapshot, *candidate)
            self.assertEqual(code, VALID, verdict)

    def test_a_project_is_judged_by_its_own_rules_and_rebuilt_kernel(self):
        project = self.folder / "project"
        (project / "build").mkdir(parents=True)
        shutil.copytree(self.folder / "fresh", project / "snapshot")
        (project / "kernel.json").write_text(json.dumps({"symbol": "step", "parameters": [
            {"index": 2, "name": "state", "type": "float *", "element": "float"}]}))
        self.assertEqual(self.replay("validate", project)[0], VALID)  # nothing rebuilt yet: the captured kernel
        shutil.copy(self.hsaco("one_ulp"), project / "build/kernel.hsaco")
        code, verdict = self.replay("validate", project)
        self.assertEqual(code, NO)
        self.assertRegex(verdict["sentence"], r"argument 2 'state', element 0")
        (project / "kerncap.toml").write_text("[validate.argument.state]\nulp = 1\n")
        self.assertEqual(self.replay("validate", project)[0], VALID)
        self.assertEqual(self.replay("validate", project, "--captured")[1]["code_object"], "captured")
        (project / "kerncap.toml").write_text("[validate.argument.stat]\nulp = 1\n")
        self.assertEqual(self.replay("validate", project)[0], USAGE)

    def test_large_memory_is_restored_only_where_it_was_dirtied(self):
        once = self.replay("replay", self.folder / "large")[1]
        start = time.monotonic()
        code, verdict = self.replay("validate", self.folder / "large")
        whole = time.monotonic() - start
        self.assertEqual(code, VALID, verdict)
        self.assertGreater(verdict["compared_bytes"], 256 << 20)
        start = time.monotonic()
        code, verdict = self.replay("bench", self.folder / "large", "--iterations", 50)
        self.assertEqual((code, once["outcome"]), (VALID, "ran"), verdict)
        self.assertLess(time.monotonic() - start, 10 * whole)

    def test_candidates_that_are_no_code_objects(self):
        junk = self.folder / "junk.hsaco"
        junk.write_bytes(b"\x7fELF" + bytes(200))
        code, verdict = self.replay("validate", self.folder / "fresh", "--code-object", junk)
        self.assertEqual(code, BAD_INPUT)
        self.assertRegex(verdict["sentence"], "not an AMD GPU code object")
        self.assertEqual(self.replay("validate", self.folder / "fresh", "--code-object", self.folder / "missing")[0], BAD_INPUT)

    def test_damaged_code_objects_never_take_the_judge_down(self):
        whole = self.hsaco("same_work").read_bytes()
        broken = self.folder / "broken.hsaco"
        for i in range(40):
            data = bytearray(whole)
            for k in range(4):
                data[(i * 4 + k) * 7919 % len(data)] ^= 0xff
            broken.write_bytes(data)
            code, verdict = self.replay("validate", self.folder / "fresh", "--code-object", broken, "--timeout", 2,
                                        "--captured-inputs-only")
            self.assertIn(code, (VALID, NO, ENVIRONMENT, BAD_INPUT), verdict)
            self.assertTrue(verdict["sentence"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--candidates", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    Replay.prefix, Replay.candidates = options.prefix.resolve(), options.candidates.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
