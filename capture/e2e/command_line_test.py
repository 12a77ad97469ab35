#!/usr/bin/env python3
"""Choosing a dispatch on the command line: by shape, range, time and profile; what is said when none passes."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "support"))
import kerncap_tests
from kerncap_tests import DONE, ENVIRONMENT, NO, USAGE, gpu_options


class ChoiceTest(kerncap_tests.KerncapTestCase):
    def app(self, name):
        return pathlib.Path(self.options.programs) / name

    def capture(self, *arguments, kernel="transform_atomic", app=("memory_kinds", "atomic")):
        """Three launches of one kernel: grid 1024, workgroup 256."""
        self.output = self.scratch / f"{self.id().rsplit('.')[-1]}-{len(list(self.scratch.iterdir()))}.kcap"
        return self.kerncap("capture", *gpu_options(), "--json", "-k", kernel, "-o", self.output, *arguments, "--",
                            self.app(app[0]), *app[1:])

    def assert_captured(self, result, dispatches):
        self.assertEqual(result.code, DONE, str(result))
        # The application's own output goes to standard error: the result stands alone.
        self.assertEqual([d["dispatch"] for d in result.json()["dispatches"]], dispatches, str(result))
        self.assertEqual(self.kerncap("inspect", self.output, "--verify").code, DONE)

    def assert_refused(self, result, *parts):
        self.assert_one_sentence(result, NO, *parts)
        self.assertFalse(self.output.exists())

    def test_a_shape_is_found_or_the_shapes_that_came_are_named(self):
        self.assert_captured(self.capture("--grid", "1024", "--block", "256x1x1", "-d", "1"), [1])
        self.assert_captured(self.capture("--grid", "*x1"), [0])
        self.assert_refused(self.capture("--grid", "2048"), "3 dispatches had another shape", "grid 1024x1x1 block 256x1x1 (3)")
        self.assert_refused(self.capture("--block", "64"), "another shape")

    def test_a_range_is_found_or_those_that_were_opened_are_named(self):
        ranges = {"kernel": "increment", "app": ("ranges",)}
        self.assert_captured(self.capture("--range", "step *", "-d", "0-9", **ranges), [1, 2])
        self.assert_captured(self.capture("--range", "whole", **ranges), [3])
        self.assert_refused(self.capture("--range", "epoch*", **ranges), "5 dispatches", "'step 1', 'part', 'whole'")

    def test_an_application_without_ranges_is_told_so(self):
        self.assert_refused(self.capture("--range", "x"), "the application opened no ROCTX range at all")

    def test_a_window_of_time(self):
        self.assert_captured(self.capture("--after", "0.001s", "--before", "9m"), [0])
        self.assert_refused(self.capture("--after", "10m"), "outside of the time")
        self.assert_refused(self.capture("--before", "1ms"), "outside of the time")

    def test_the_slowest_of_a_profile(self):
        profile = self.scratch / "profile.json"
        result = self.kerncap("profile", *gpu_options(), "--json", "--", self.app("memory_kinds"), "atomic")
        self.assertEqual(result.code, DONE, str(result))
        profile.write_text(result.out)
        kernel = next(k for k in result.json()["kernels"] if k["kernel"].startswith("transform_atomic"))
        slowest = max(kernel["dispatch_times"], key=lambda t: t["ns"])["dispatch"]
        self.assertEqual(kernel["slowest_dispatch"], slowest)
        self.assert_captured(self.capture("--dispatch", "slowest", "--profile", profile), [slowest])
        self.assert_refused(self.capture("--dispatch", "slowest", "--profile", profile, kernel="transform_table"), "no timed kernel")
        self.assert_one_sentence(self.capture("--dispatch", "slowest"), USAGE, "--profile")
        self.assert_one_sentence(self.capture("--dispatch", "slowest", "--profile", profile, "--grid", "1"), USAGE, "--grid")

    def test_a_profile_says_everything_about_a_kernel(self):
        arguments = ("profile", *gpu_options())
        result = self.kerncap(*arguments, "--json", "--", self.app("memory_kinds"), "atomic")
        kernels = result.json()["kernels"]
        kernel = next(k for k in kernels if k["kernel"].startswith("transform_atomic"))
        self.assertEqual((kernel["calls"], kernel["timed"]), (3, 3))
        self.assertEqual(kernel["mean_ns"], kernel["total_ns"] // 3)
        self.assertTrue(0 < kernel["minimum_ns"] <= kernel["mean_ns"] <= kernel["maximum_ns"] <= kernel["total_ns"])
        self.assertAlmostEqual(sum(k["share"] for k in kernels), 1.0)
        self.assertEqual(kernel["shapes"], [{"grid": [1024, 1, 1], "workgroup": [256, 1, 1], "dispatches": 3}])
        self.assertGreater(kernel["vgprs"], 0)
        self.assertGreater(kernel["sgprs"], 0)
        for member in ("agprs", "lds_bytes", "scratch_bytes"):
            self.assertIsInstance(kernel[member], int)
        self.assertEqual(len(kernel["code_object"]), 64)
        table = self.kerncap(*arguments, "--", self.app("memory_kinds"), "atomic").out
        for word in ("share", "total", "mean", "calls", "grid/workgroup", "VGPR+AGPR/SGPR", "LDS", "scratch", "code object",
                     "1024x1x1/256x1x1", kernel["code_object"][:12]):
            self.assertIn(word, table)

    def test_the_application_gets_what_makes_any_runtime_load_the_library(self):
        def environment(*arguments, **variables):
            result = self.kerncap("capture", "-k", "x", "-o", self.scratch / "env.kcap", *arguments, "--", "env", env=variables)
            self.assert_one_sentence(result, ENVIRONMENT, "loaded no HSA runtime")
            return dict(line.split("=", 1) for line in result.out.splitlines() if "=" in line)

        plain = environment()
        self.assertTrue(plain["HSA_TOOLS_LIB"].endswith("/libkerncap-capture.so"))
        self.assertEqual(plain["HSA_TOOLS_ROCPROFILER_V1_TOOLS"], "1")
        self.assertEqual(plain["ROCPROFILER_REGISTER_LIBRARY"], plain["HSA_TOOLS_LIB"])
        preloaded = [value.rsplit("/", 1)[1] for value in plain["LD_PRELOAD"].split(":")]
        self.assertEqual(preloaded, ["libkerncap-hiprtc.so"])
        beside = environment(ROCP_TOOL_LIBRARIES="/other/tool.so")
        self.assertNotIn("ROCPROFILER_REGISTER_LIBRARY", beside)
        self.assertEqual(beside["HSA_TOOLS_ROCPROFILER_V1_TOOLS"], "1")
        ranged = environment("--range", "step *", "--softgpu")
        preloaded = [value.rsplit("/", 1)[1] for value in ranged["LD_PRELOAD"].split(":")]
        self.assertIn("libkerncap-softgpu.so", preloaded)
        self.assertIn("libkerncap-ranges.so", preloaded)
        self.assertEqual(ranged["KERNCAP_CAPTURE_RANGE"], "step *")

    def test_doctor_names_other_tools(self):
        for name in ("ROCP_TOOL_LIBRARIES", "ROCPROFILER_REGISTER_LIBRARY", "HSA_TOOLS_DISABLE_REGISTER", "HSA_TOOLS_LIB"):
            with self.subTest(name):
                findings = self.kerncap("doctor", "--json", env={name: "1"}).json()["findings"]
                finding = next(f for f in findings if f["subject"] == "environment")
                self.assertEqual((finding["state"], finding["found"]), ("warning", name + "=1"))
                self.assertTrue(finding["advice"])

    def test_too_much_memory_is_refused(self):
        result = self.capture("--max-bytes", "1kb")
        self.assert_one_sentence(result, ENVIRONMENT, "--max-bytes")
        self.assertFalse(self.output.exists())

    def test_wrong_choices_are_refused_before_anything_runs(self):
        for arguments in (["--grid", "0"], ["--grid", "1x2x3x4"], ["--block", "a"], ["--after", "5"], ["--before", "x"], ["-d", "9-1"]):
            with self.subTest(arguments):
                self.assert_one_sentence(self.capture(*arguments), USAGE)

    def test_extract_takes_the_same_choices(self):
        project = self.scratch / "project"
        result = self.kerncap("extract", *gpu_options(), "-k", "transform_atomic", "--block", "256", "-d", "2", "-o", project, "--",
                              self.app("memory_kinds"), "atomic")
        self.assertTrue((project / "snapshot").exists(), str(result))
        manifest = next(project.glob("snapshot/**/manifest.json"))
        self.assertEqual([d["kernel_index"] for d in json.loads(manifest.read_text())["dispatches"]], [2])
        refused = self.kerncap("extract", *gpu_options(), "-k", "transform_atomic", "--grid", "7", "-o", self.scratch / "none", "--",
                               self.app("memory_kinds"), "atomic")
        self.assert_one_sentence(refused, NO, "another shape")


if __name__ == "__main__":
    kerncap_tests.main(ChoiceTest, ("--programs", {"required": True, "help": "the folder of the compiled test programs"}))
