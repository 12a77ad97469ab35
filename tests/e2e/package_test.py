#!/usr/bin/env python3
"""The Debian package: made, unpacked into an empty folder and used from there, where nothing of the build tree helps."""

import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import kerncap_tests
from kerncap_tests import DONE, EXAMPLES, Prefix, gpu_options, run


@unittest.skipUnless(shutil.which("dpkg-deb") and shutil.which("cpack"), "needs dpkg and cpack")
class PackageTest(kerncap_tests.KerncapTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        made = run(["cpack", "-G", "DEB", "--config", cls.prefix.path / "CPackConfig.cmake", "-B", cls.scratch / "cpack",
                    # Quick to make; what is inside is the same.
                    "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip"], timeout=600)
        assert made.code == 0, str(made)
        (cls.package,) = (cls.scratch / "cpack").glob("kerncap_*.deb")
        cls.root = cls.scratch / "root"
        subprocess.run(["dpkg-deb", "-x", cls.package, cls.root], check=True)
        cls.installed = Prefix(cls.root / "usr")

    def field(self, name):
        return subprocess.run(["dpkg-deb", "-f", self.package, name], check=True, capture_output=True, text=True).stdout.strip()

    def test_its_control_file_names_what_it_needs(self):
        self.assertEqual(self.field("Package"), "kerncap")
        for library in ("libc6", "libstdc++6", "libzstd1"):
            self.assertIn(library, self.field("Depends"))
        self.assertIn("hipcc", self.field("Recommends"))

    def test_completions_and_manual_pages_lie_where_they_are_looked_for(self):
        for file in ("share/bash-completion/completions/kerncap", "share/zsh/vendor-completions/_kerncap",
                     "share/fish/vendor_completions.d/kerncap.fish", "share/man/man1/kerncap-extract.1"):
            self.assertTrue((self.installed.path / file).stat().st_size > 100, file)

    def test_a_kernel_is_extracted_with_what_the_package_holds(self):
        app = self.scratch / "app"
        for command in (["cmake", "-S", EXAMPLES / "reduction", "-B", app, "-G", "Ninja", "-DGPU_TARGETS=gfx90a"],
                        ["cmake", "--build", app]):
            built = run([self.installed.kerncap, "build", "--db", app / ".kerncap", "--", *command])
            self.assertEqual(built.code, DONE, str(built))
        project = self.scratch / "project"
        result = run([self.installed.kerncap, "extract", *gpu_options(), "-k", "dot_single_pass", "-o", project, "--",
                      app / "reduction"])
        self.assertEqual(result.code, DONE, str(result))
        self.assertIn("byte-identical", result.out + result.err)
        self.assertIn("valid: ", result.out + result.err)


if __name__ == "__main__":
    kerncap_tests.main(PackageTest)
