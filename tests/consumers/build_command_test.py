#!/usr/bin/env python3
"""`kerncap build -- CMD` in front of builds without CMake: plain make, Meson, autotools, a setup script; and the importers."""

import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import kerncap_tests
from kerncap_tests import SOURCE, run


class BuildCommandTest(kerncap_tests.KerncapTestCase):
    def setUp(self):
        self.sources = self.scratch / self.id().rsplit(".", 1)[1]
        shutil.copytree(SOURCE / "tests" / "consumers", self.sources)
        for folder in ("meson", "autotools"):
            for source in ("kernel.cpp", "host.cpp"):
                shutil.copy(self.sources / source, self.sources / folder)

    def needs(self, *programs):
        for program in programs:
            if not shutil.which(program):
                self.skipTest(f"{program} is not installed")

    def build(self, folder, *command, env=None):
        return self.must([self.prefix.kerncap, "build", "--", *command], cwd=folder, env=env)

    def recorded(self, database):
        units = self.must([self.prefix.kerncap, "db", "list", "--json", "--db", database]).json()
        return sorted(pathlib.Path(unit["source"]).name for unit in units)

    def assert_kernel_is_known(self, database):
        shown = self.must([self.prefix.kerncap, "db", "show", "--json", "--db", database, "scale"]).json()
        self.assertEqual([(pathlib.Path(entry["source"]).name, entry["origin"], entry["target"]) for entry in shown],
                         [("kernel.cpp", "recorded", "gfx90a")])

    def test_plain_make(self):
        self.needs("make", "hipcc")
        folder = self.sources / "make"
        self.build(folder, "make", "-j2")
        self.assertEqual(self.recorded(folder / ".kerncap"), ["host.cpp", "kernel.cpp"])
        self.assert_kernel_is_known(folder / ".kerncap")

    def test_meson(self):
        self.needs("meson", "ninja", "hipcc")
        folder = self.sources / "meson"
        self.build(folder, "meson", "setup", "--buildtype=release", "out", env={"CXX": "hipcc"})
        self.build(folder, "meson", "compile", "-C", "out")
        self.assertFalse((folder / ".kerncap").exists())
        # What Meson compiled to look at the compiler is no part of the build.
        self.assertEqual(self.recorded(folder / "out/.kerncap"), ["host.cpp", "kernel.cpp"])
        self.assert_kernel_is_known(folder / "out/.kerncap")
        reached = self.must([self.prefix.kerncap, "db", "show", "--json", "--as", "target", "--db", folder / "out/.kerncap", "app"]).json()
        self.assertEqual(len(reached), 2)

    def test_autotools(self):
        self.needs("autoreconf", "automake", "make", "hipcc")
        folder = self.sources / "autotools"
        self.must(["autoreconf", "--install"], cwd=folder)
        out = folder / "out"
        out.mkdir()
        self.build(out, "../configure", "CXX=hipcc")
        self.build(out, "make")
        self.assertEqual(self.recorded(out / ".kerncap"), ["host.cpp", "kernel.cpp"])
        self.assert_kernel_is_known(out / ".kerncap")

    def test_a_setup_script(self):
        if run([sys.executable, "-c", "import setuptools"]).code != 0:
            self.skipTest("setuptools is not installed")
        folder = self.sources / "setup_script"
        self.build(folder, sys.executable, "setup.py", "build_ext")
        self.assertEqual(self.recorded(folder / ".kerncap"), ["extension.c"])

    def test_builds_that_ran_without_the_wrapper_are_imported(self):
        self.needs("hipcc", "ninja")
        for generator, origin, options in (("Ninja", "ninja", []),
                                           ("Unix Makefiles", "compile_commands", ["-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]),
                                           ("Unix Makefiles", "cmake_file_api", [])):
            with self.subTest(origin):
                build = self.sources / f"build-{origin}"
                query = build / ".cmake/api/v1/query"
                query.mkdir(parents=True)
                (query / "codemodel-v2").touch()
                (query / "toolchains-v1").touch()
                self.must(["cmake", "-S", self.sources / "hipcc", "-B", build, "-G", generator, "-DCMAKE_CXX_COMPILER=hipcc",
                           f"-DCMAKE_PREFIX_PATH={self.prefix.path}", "-DCMAKE_DISABLE_FIND_PACKAGE_Kerncap=ON",
                           "-DCMAKE_PROJECT_INCLUDE=" + str(self.without_recording()), *options])
                self.must(["cmake", "--build", build])
                self.must([self.prefix.kerncap, "db", "import", build])
                listed = self.must([self.prefix.kerncap, "db", "list", "--json", "--db", build / ".kerncap"]).json()
                self.assertEqual({unit["origin"] for unit in listed}, {origin})
                # The kernel leads to its unit: digests come from the object, whoever recorded it.
                shown = self.must([self.prefix.kerncap, "db", "show", "--json", "--db", build / ".kerncap", "scale"]).json()
                self.assertEqual([(pathlib.Path(entry["source"]).name, entry["origin"], entry["stale"]) for entry in shown],
                                 [("kernel.cpp", origin, False)])

    def without_recording(self):
        """The project as one that knows nothing of Kerncap."""
        script = self.sources / "without.cmake"
        script.write_text("macro(find_package)\nendmacro()\nfunction(kerncap_record)\nendfunction()\n")
        return script


if __name__ == "__main__":
    kerncap_tests.main(BuildCommandTest)
