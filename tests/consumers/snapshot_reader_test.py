#!/usr/bin/env python3
"""A program of somebody else reads snapshots through find_package(Kerncap COMPONENTS Snapshot)."""

import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import kerncap_tests
from kerncap_tests import SOURCE, Prefix, run

SNAPSHOT = SOURCE / "tests" / "snapshot" / "data" / "version1"


class SnapshotReaderTest(kerncap_tests.KerncapTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        package = cls.prefix
        if cls.options.way == "installed":
            package = Prefix(cls.scratch / "prefix")
            cls.must(["cmake", "--install", cls.prefix.path, "--prefix", package.path])
        cls.build = cls.scratch / "build"
        cls.must(["cmake", "-S", SOURCE / "tests/consumers/snapshot_reader", "-B", cls.build, "-G", "Ninja",
                  f"-DCMAKE_PREFIX_PATH={package.path}"])
        cls.must(["cmake", "--build", cls.build])

    def test_memory_is_read(self):
        result = self.must([self.build / "sum", SNAPSHOT, "1000"])
        self.assertEqual(result.out, "scale(float*, int, float)\n499500\n1e+06\n", str(result))

    def test_damage_is_an_exception(self):
        copy = self.scratch / "damaged.kcap"
        shutil.copytree(SNAPSHOT, copy)
        pack = copy / "chunks" / "0000.pack"
        data = bytearray(pack.read_bytes())
        data[10] ^= 1
        pack.write_bytes(data)
        result = run([self.build / "sum", copy, "1000"])
        self.assertEqual(result.code, 4, str(result))
        self.assertIn("is damaged", result.err)

    def test_the_library_brings_nothing_of_ours_along(self):
        symbols = self.must(["nm", "-D", "--defined-only", "-C", self.prefix.path / "lib" / "libkerncap-snapshot.so"]).out
        foreign = [line for line in symbols.splitlines() if "kerncap::Snapshot" not in line and "std::" not in line]
        self.assertEqual(foreign, [], symbols)


if __name__ == "__main__":
    kerncap_tests.main(SnapshotReaderTest, ("--way", {"choices": ["build_tree", "installed"], "required": True}))
