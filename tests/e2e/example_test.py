#!/usr/bin/env python3
"""Takes one kernel (--case) out of an example application, as a user would: record the build, extract, rebuild, edit,
validate, and move the project away from everything it came from."""

import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import kerncap_tests
from example_cases import CASES
from kerncap_tests import DONE, EXAMPLES, NO, gpu_options, sha256


class ExampleTest(kerncap_tests.KerncapTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.case = next(case for case in CASES if case.name == cls.options.case)
        cls.sources = cls.scratch / "sources"
        shutil.copytree(EXAMPLES, cls.sources)
        cls.build = cls.scratch / "build"
        cls.database = cls.scratch / "database"
        cls.project = cls.scratch / "project"
        recorded = [cls.prefix.kerncap, "build", "--db", cls.database, "--"]
        folder = cls.sources / cls.case.example
        if cls.case.make:
            cls.must([*recorded, "make", "-C", folder, f"BUILD={cls.build}"])
        else:
            cls.must([*recorded, "cmake", "-S", folder, "-B", cls.build, "-G", "Ninja"])
            cls.must([*recorded, "cmake", "--build", cls.build])
        application = [cls.build / cls.case.example, *cls.case.arguments]
        cls.extracted = cls.must([cls.prefix.kerncap, "extract", *gpu_options(), "-k", cls.case.kernel,
                                  "--dispatch", cls.case.dispatch, "--db", cls.database, "-o", cls.project,
                                  "--", *application])
        cls.captured = json.loads((cls.project / "snapshot" / "manifest.json").read_text())["dispatches"][0]["code_object"]

    def copy_of_project(self, name):
        """The project as extract left it, without build results."""
        copy = self.scratch / name
        shutil.copytree(self.project, copy, ignore=shutil.ignore_patterns("build"))
        return copy

    def in_gpu(self, *command):
        """A command that finds a GPU: the machine's, or the software GPU."""
        if not gpu_options():
            return list(command)
        return [self.prefix.kerncap, "softgpu", "--arch", "gfx90a", "--", *command]

    def build_kernel(self, project, *options):
        self.must(["cmake", "-S", project, "-B", project / "build", "-G", "Ninja", *options])
        self.must(["cmake", "--build", project / "build", "--target", "kernel"])
        return project / "build" / "kernel.hsaco"

    def validate(self, project):
        return self.kerncap("validate", *gpu_options(), "--json", project)

    def apply(self, edit, project):
        found = list((project / "src").rglob(edit.file))
        self.assertEqual(len(found), 1, f"{edit.file} in {project}/src: {found}")
        text = found[0].read_text()
        self.assertEqual(text.count(edit.old), 1, f"'{edit.old}' in {found[0]}")
        found[0].write_text(text.replace(edit.old, edit.new))

    def test_1_the_project_names_the_kernel_and_its_source(self):
        kernel = json.loads((self.project / "kernel.json").read_text())
        self.assertEqual(pathlib.PurePath(kernel["file"]).name, self.case.definition)
        self.assertIn(self.case.symbol, kernel["symbol"])

    def test_2_the_unchanged_kernel_is_rebuilt_byte_for_byte_and_validates(self):
        project = self.copy_of_project("unchanged")
        self.assertEqual(sha256(self.build_kernel(project)), self.captured)
        result = self.validate(project)
        self.assertEqual(result.code, DONE, str(result))
        self.assertEqual(result.json()["outcome"], "matches", str(result))

    def test_3_an_edit_that_keeps_the_result_passes(self):
        project = self.copy_of_project("harmless")
        self.apply(self.case.harmless, project)
        self.build_kernel(project)
        result = self.validate(project)
        self.assertEqual(result.code, DONE, str(result))
        self.assertEqual(result.json()["outcome"], "matches", str(result))

    def test_4_an_edit_that_breaks_the_result_fails_and_is_pointed_at(self):
        project = self.copy_of_project("breaking")
        self.apply(self.case.breaking, project)
        self.assertNotEqual(sha256(self.build_kernel(project)), self.captured)
        result = self.validate(project)
        self.assertEqual(result.code, NO, str(result))
        verdict = result.json()
        self.assertEqual(verdict["outcome"], "differs", str(result))
        self.assertRegex(verdict["first_difference"]["what"], self.case.difference, str(result))
        self.assertIn("element", verdict["first_difference"], str(result))
        self.assertNotEqual(verdict["first_difference"]["expected"], verdict["first_difference"]["actual"], str(result))
        # The same for people.
        text = self.kerncap("validate", *gpu_options(), project)
        self.assertEqual(text.code, NO, str(text))
        self.assertIn(verdict["first_difference"]["what"], text.out, str(text))

    def test_5_two_kernels_of_one_symbol_are_told_apart_by_their_code_objects(self):
        if self.case.name != "spmv.apply_damping":
            self.skipTest("this kernel's symbol is in one code object only")
        output = self.scratch / "both.kcap"
        command = ["capture", *gpu_options(), "-k", self.case.kernel, "-o", output]
        application = ["--", self.build / self.case.example]  # runs both methods
        refused = self.kerncap(*command, *application)
        self.assert_one_sentence(refused, NO, "--code-object", self.captured[:12])
        self.assertFalse(output.exists())
        chosen = self.kerncap(*command, "--code-object", self.captured[:12], *application)
        self.assertEqual(chosen.code, DONE, str(chosen))
        manifest = json.loads((output / "manifest.json").read_text())
        self.assertEqual(manifest["dispatches"][0]["code_object"], self.captured)

    def test_6_moved_and_alone_it_still_builds_and_validates(self):
        moved = self.scratch / "elsewhere" / "moved project"
        moved.parent.mkdir()
        shutil.rmtree(self.project / "build", ignore_errors=True)
        shutil.move(self.project, moved)
        for origin in (self.sources, self.build, self.database):
            shutil.rmtree(origin)
        replayer = [] if self.case.alone else [f"-DKERNCAP_REPLAY_PROGRAM={self.prefix.path}/bin/kerncap-replay"]
        self.assertEqual(sha256(self.build_kernel(moved, *replayer)), self.captured)
        self.must(["cmake", "--build", moved / "build"], timeout=800)
        self.must(self.in_gpu("cmake", "--build", moved / "build", "--target", "validate"))
        self.must(self.in_gpu("ctest", "--test-dir", moved / "build", "-R", "validate", "--output-on-failure"))


if __name__ == "__main__":
    kerncap_tests.main(ExampleTest, ("--case", {"choices": [case.name for case in CASES], "required": True}))
