#!/usr/bin/env python3
"""What goes wrong for a user: each ends with one clear sentence and the documented exit code, and harms nothing."""

import ctypes
import json
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import kerncap_tests
from kerncap_tests import APPLICATION, BAD_INPUT, DONE, ENVIRONMENT, NO, USAGE, gpu_options

APP_SOURCES = pathlib.Path(__file__).resolve().parent / "misbehaving_app"


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def seal(document):
    """The manifest's checksum, as docs/formats/snapshot.md describes it: XXH3-128 of the compact text."""
    xxhash = ctypes.CDLL("libxxhash.so.0")
    xxhash.XXH3_128bits.restype = Hash128
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
    value = xxhash.XXH3_128bits(text, ctypes.c_size_t(len(text)))
    return f"{value.high:016x}{value.low:016x}"


def tree(folder):
    """Every file below a folder with its content."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class BadInputTest(kerncap_tests.KerncapTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sources = cls.scratch / "app"
        shutil.copytree(APP_SOURCES, cls.sources)
        cls.database = cls.scratch / "database"
        cls.app = cls.scratch / "app" / "app"
        script = "hipcc --offload-arch=gfx90a -O2 -c main.hip -o main.o && hipcc --offload-arch=gfx90a main.o -o app"
        cls.must([cls.prefix.kerncap, "build", "--db", cls.database, "--", "sh", "-c", script], cwd=cls.sources)
        cls.snapshot = cls.scratch / "good.kcap"
        cls.must([cls.prefix.kerncap, "capture", *gpu_options(), "-k", "second_step", "-o", cls.snapshot, "--", cls.app])
        cls.project = cls.scratch / "good-project"
        cls.must([cls.prefix.kerncap, "emit", cls.snapshot, "--db", cls.database, "-o", cls.project])

    def setUp(self):
        self.output = self.scratch / self._testMethodName

    def capture(self, *options, app=None, kernel="second_step", output=None):
        return self.kerncap("capture", *gpu_options(), "-k", kernel, "-o", output or self.output, *options, "--",
                            *(app or [self.app]))

    def extract(self, *options, kernel="second_step", app=None, database=None):
        return self.kerncap("extract", *gpu_options(), "-k", kernel, "--db", database or self.database, "-o", self.output,
                            *options, "--", *(app or [self.app]))

    def assert_nothing_left(self):
        left = [path.name for path in self.scratch.iterdir() if self.output.name in path.name]
        self.assertEqual(left, [])

    def damaged_snapshot(self):
        shutil.copytree(self.snapshot, self.output)
        return self.output

    # ---- the command line ----

    def test_unknown_command(self):
        self.assert_one_sentence(self.kerncap("tune-it"), USAGE)

    def test_application_not_given(self):
        self.assert_one_sentence(self.kerncap("capture", "-k", "k", "-o", self.output), USAGE, "--")

    # ---- the database ----

    def test_database_that_is_not_there(self):
        missing = self.scratch / "no-database"
        self.assert_one_sentence(self.kerncap("db", "stats", "--db", missing), ENVIRONMENT, missing)
        self.assert_one_sentence(self.kerncap("emit", self.snapshot, "--db", missing, "-o", self.output), ENVIRONMENT, missing)
        self.assert_nothing_left()

    def test_a_compiler_that_is_the_whole_build_is_recorded(self):
        result = self.kerncap("build", "--db", self.output, "--", "hipcc", "--offload-arch=gfx90a", "-c", "main.hip", "-o",
                              "again.o", cwd=self.sources)
        self.assertEqual(result.code, DONE, str(result))

    # ---- the kernel ----

    def test_kernel_that_is_not_launched(self):
        self.assert_one_sentence(self.capture(kernel="third_step"), NO, "third_step")
        self.assert_nothing_left()
        self.assert_one_sentence(self.extract(kernel="third_step"), NO, "third_step")
        self.assert_nothing_left()

    def test_pattern_that_matches_several_kernels(self):
        self.assert_one_sentence(self.capture(kernel="*_step"), NO, "first_step", "second_step")
        self.assert_nothing_left()

    def test_dispatch_that_never_comes(self):
        self.assert_one_sentence(self.capture("--dispatch", "5"), NO, "second_step")
        self.assert_nothing_left()

    # ---- the application ----

    def test_application_that_is_not_there(self):
        self.assert_one_sentence(self.capture(app=[self.scratch / "no-app"]), ENVIRONMENT, self.scratch / "no-app")
        self.assert_nothing_left()

    def test_application_that_fails_before_the_kernel(self):
        self.assert_one_sentence(self.capture(app=[self.app, "fail-early"]), APPLICATION, "7")
        self.assert_nothing_left()

    def test_application_that_is_killed_before_the_kernel(self):
        self.assert_one_sentence(self.capture(app=[self.app, "killed"]), APPLICATION, "SIGKILL")
        self.assert_nothing_left()

    def test_application_that_fails_after_the_kernel_leaves_a_good_snapshot(self):
        result = self.capture(app=[self.app, "fail"])
        self.assert_one_sentence(result, APPLICATION, "7")
        inspected = self.kerncap("inspect", self.output)
        self.assertEqual(inspected.code, DONE, f"{result}\n{inspected}")

    def test_application_that_crashes_after_the_kernel_leaves_a_good_snapshot_or_none(self):
        result = self.capture(app=[self.app, "crash"])
        self.assert_one_sentence(result, APPLICATION, "SIGABRT")
        # The snapshot is written while the application runs on: the crash may come before it is whole.
        if self.output.exists():
            inspected = self.kerncap("inspect", self.output)
            self.assertEqual(inspected.code, DONE, f"{result}\n{inspected}")
        else:
            self.assertIn("before a dispatch", result.err, str(result))
            self.assert_nothing_left()

    # ---- the output ----

    def test_output_below_a_file(self):
        file = self.scratch / "a-file"
        file.write_text("not a folder\n")
        self.assert_one_sentence(self.capture(output=file / "snapshot"), ENVIRONMENT, file)
        self.assertEqual(file.read_text(), "not a folder\n")

    def test_output_that_exists_is_kept_without_force(self):
        shutil.copytree(self.snapshot, self.output)
        before = tree(self.output)
        self.assert_one_sentence(self.capture(), USAGE, self.output, "--force")
        self.assertEqual(tree(self.output), before)
        self.assert_one_sentence(self.kerncap("emit", self.snapshot, "--db", self.database, "-o", self.output), USAGE, "--force")
        self.assertEqual(tree(self.output), before)

    def test_output_is_kept_with_force_until_the_new_one_is_whole(self):
        shutil.copytree(self.snapshot, self.output)
        before = tree(self.output)
        self.assert_one_sentence(self.capture("--force", kernel="third_step"), NO, "third_step")
        self.assertEqual(tree(self.output), before)
        self.assertEqual(self.capture("--force", kernel="first_step").code, DONE)
        manifest = json.loads((self.output / "manifest.json").read_text())
        self.assertIn("first_step", manifest["dispatches"][0]["kernel_symbol"])

    # ---- snapshots ----

    def assert_snapshot_refused(self, *parts):
        for command in ("inspect", "replay", "validate", "emit"):
            with self.subTest(command):
                options = gpu_options() if command in ("replay", "validate") else []
                if command == "emit":
                    options = ["--db", self.database, "-o", self.scratch / "emitted"]
                self.assert_one_sentence(self.kerncap(command, *options, self.output), BAD_INPUT, *parts)
        self.assertFalse((self.scratch / "emitted").exists())

    def test_a_flipped_byte_in_any_file_is_noticed(self):
        files = [path.relative_to(self.snapshot) for path in self.snapshot.rglob("*") if path.is_file() and path.stat().st_size]
        self.assertGreaterEqual(len(files), 4, files)  # manifest, kernarg, pages, chunks, code
        for file in files:
            with self.subTest(str(file)):
                shutil.rmtree(self.output, ignore_errors=True)
                damaged = self.damaged_snapshot() / file
                content = bytearray(damaged.read_bytes())
                content[len(content) // 2] ^= 0x10
                damaged.write_bytes(content)
                self.assert_one_sentence(self.kerncap("validate", *gpu_options(), self.output), BAD_INPUT)

    def test_a_truncated_file_is_noticed(self):
        files = [path.relative_to(self.snapshot) for path in self.snapshot.rglob("*") if path.is_file() and path.stat().st_size]
        for file in files:
            with self.subTest(str(file)):
                shutil.rmtree(self.output, ignore_errors=True)
                damaged = self.damaged_snapshot() / file
                os.truncate(damaged, damaged.stat().st_size // 2)
                self.assert_one_sentence(self.kerncap("validate", *gpu_options(), self.output), BAD_INPUT)

    def test_a_snapshot_without_its_manifest_is_none(self):
        (self.damaged_snapshot() / "manifest.json").unlink()
        result = self.kerncap("validate", *gpu_options(), self.output)
        self.assertIn(result.code, (USAGE, BAD_INPUT), str(result))

    def hostile(self, change):
        """A copy of the snapshot whose manifest was changed, and sealed again as its writer would seal it."""
        path = self.damaged_snapshot() / "manifest.json"
        document = json.loads(path.read_text())
        original = document.pop("checksum")
        self.assertEqual(seal(document), original, "this test cannot seal manifests: it would only test the seal")
        change(document)
        document["checksum"] = seal(document)
        path.write_text(json.dumps(document))
        return self.output

    def test_hostile_sizes_are_refused(self):
        def change(document):
            document["dispatches"][0]["regions"][0]["size"] = (1 << 63) - 4096
        self.hostile(change)
        self.assert_snapshot_refused()

    def test_names_that_lead_out_of_the_snapshot_are_refused(self):
        def change(document):
            document["dispatches"][0]["kernarg_file"] = "../../../../../../etc/passwd"
        self.hostile(change)
        self.assert_snapshot_refused()

    def test_something_else_is_not_a_snapshot(self):
        self.output.mkdir()
        (self.output / "manifest.json").write_text('{"schema": "something.else/7"}')
        self.assert_snapshot_refused()

    # ---- projects ----

    def test_a_project_whose_compiler_is_gone(self):
        shutil.copytree(self.project, self.output)
        file = self.output / "CMakeLists.txt"
        text, changed = re.subn(r'RECORDED "[^"]*"', 'RECORDED "/nowhere/no-such-clang"', file.read_text())
        self.assertGreater(changed, 0)
        file.write_text(text)
        result = kerncap_tests.run(["cmake", "-S", self.output, "-B", self.output / "build", "-G", "Ninja"])
        self.assertNotEqual(result.code, 0, str(result))
        self.assertIn("/nowhere/no-such-clang", result.err, str(result))
        self.assertIn("is not on this machine", " ".join(result.err.split()), str(result))

    def test_a_candidate_that_is_no_code_object(self):
        nonsense = self.scratch / "nonsense.hsaco"
        nonsense.write_bytes(b"\x7fELF" + os.urandom(4096))
        self.assert_one_sentence(self.kerncap("validate", *gpu_options(), "--code-object", nonsense, self.project),
                                 BAD_INPUT, nonsense)

    def test_a_folder_that_is_neither_snapshot_nor_project(self):
        self.output.mkdir()
        self.assert_one_sentence(self.kerncap("validate", *gpu_options(), self.output), USAGE, self.output)


if __name__ == "__main__":
    kerncap_tests.main(BadInputTest)
