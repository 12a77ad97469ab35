#!/usr/bin/env python3
"""Sources that change between build and emit: kept as they were built when asked for, else detected and named."""

import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import kerncap_tests
from kerncap_tests import NO, gpu_options, run

APPLICATION = """#include <hip/hip_runtime.h>
#include "factor.h"
__global__ void scale(float* data) { data[threadIdx.x] *= FACTOR; }
int main() {
  float* data = nullptr;
  if (hipMalloc(&data, 64 * sizeof(float)) != hipSuccess) return 1;
  if (hipMemset(data, 0, 64 * sizeof(float)) != hipSuccess) return 1;
  scale<<<1, 64>>>(data);
  return hipDeviceSynchronize() == hipSuccess ? 0 : 1;
}
"""


@unittest.skipUnless(shutil.which("hipcc"), "hipcc is not installed")
class ArchiveTest(kerncap_tests.KerncapTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # kerncap.toml and the environment ask for it in the same words.
        cls.archived = cls.written("archived")
        (cls.archived / "kerncap.toml").write_text('sources = "archive"\n')
        cls.build(cls.archived)
        cls.referenced = cls.written("referenced")
        cls.build(cls.referenced)
        cls.by_environment = cls.written("by_environment")
        cls.build(cls.by_environment, env={"KERNCAP_SOURCES": "archive"})

    @classmethod
    def written(cls, name):
        folder = cls.scratch / name
        folder.mkdir()
        (folder / "app.hip").write_text(APPLICATION)
        (folder / "factor.h").write_text("#define FACTOR 2.0f\n")
        return folder

    @classmethod
    def build(cls, folder, env=None):
        compile_it = ["hipcc", "--offload-arch=gfx90a", "-c", "app.hip", "-o", "app.o"]
        cls.must([cls.prefix.kerncap, "build", "--", *compile_it], cwd=folder, env=env)
        cls.must([cls.prefix.kerncap, "build", "--", "hipcc", "app.o", "-o", "app"], cwd=folder, env=env)
        cls.must([cls.prefix.kerncap, "capture", *gpu_options(), "-k", "scale", "-o", "scale.kcap", "--", "./app"], cwd=folder)

    def emit(self, folder, project):
        return run([self.prefix.kerncap, "emit", "--json", "scale.kcap", "--db", ".kerncap", "-o", project], cwd=folder)

    def header_of(self, folder, project):
        return next((folder / project).glob("src/**/factor.h")).read_text()

    def test_an_archived_source_is_emitted_as_it_was_built(self):
        for folder in (self.archived, self.by_environment):
            with self.subTest(folder.name):
                (folder / "factor.h").write_text("#define FACTOR 3.0f\n")
                (folder / "app.hip").unlink()
                result = self.emit(folder, "project")
                self.assertEqual(result.code, 0, str(result))
                report = result.json()
                self.assertFalse(report["capture_only"], str(result))
                self.assertEqual(report["rebuild_check"]["outcome"], "byte-identical", str(result))
                self.assertEqual(self.header_of(folder, "project"), "#define FACTOR 2.0f\n")
                self.assertEqual(report["warnings"], [])

    def test_without_an_archive_a_changed_source_is_named_and_the_rebuild_differs(self):
        folder = self.referenced
        (folder / "factor.h").write_text("#define FACTOR 3.0f\n")
        result = self.emit(folder, "changed")
        self.assertEqual(result.code, NO, str(result))
        report = result.json()
        self.assertEqual(report["rebuild_check"]["outcome"], "differs")
        self.assertIn("factor.h", report["rebuild_check"]["reason"])
        self.assertTrue(any("factor.h" in warning and "changed after it was compiled" in warning for warning in report["warnings"]), str(result))
        verified = run([self.prefix.kerncap, "db", "verify"], cwd=folder)
        self.assertEqual(verified.code, 0, str(verified))  # an edit is no damage
        self.assertRegex(verified.out, r"remark: .*factor\.h has changed since")

        # Put back, it is what was built again, whatever its time.
        (folder / "factor.h").write_text("#define FACTOR 2.0f\n")
        again = self.emit(folder, "again")
        self.assertEqual(again.code, 0, str(again))
        self.assertEqual(again.json()["rebuild_check"]["outcome"], "byte-identical")

        (folder / "factor.h").unlink()
        gone = self.emit(folder, "gone")
        self.assertTrue(gone.json()["capture_only"])
        self.assertIn("factor.h' is gone and was not archived", gone.json()["capture_only_reason"])


if __name__ == "__main__":
    kerncap_tests.main(ArchiveTest)
