#!/usr/bin/env python3
"""Uses Kerncap's CMake package from a project of its own, in one of three ways (--way)."""

import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import kerncap_tests
from kerncap_tests import EXAMPLES, SOURCE, Prefix, run


class ConsumerTest(kerncap_tests.KerncapTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sources = cls.scratch / "app"
        shutil.copytree(SOURCE / "tests" / "consumers" / "app", cls.sources)
        cls.package = cls.prefix
        if cls.options.way == "installed":
            cls.package = Prefix(cls.scratch / "prefix")
            cls.must(["cmake", "--install", cls.prefix.path, "--prefix", cls.package.path])

    def configure(self, name, *options, generator="Ninja"):
        build = self.scratch / name
        command = ["cmake", "-S", self.sources, "-B", build, "-G", generator, f"-DKERNCAP_EXAMPLES={EXAMPLES}",
                   f"-DCMAKE_PREFIX_PATH={self.package.path}", *options]
        if self.options.way == "fetch_content":
            command += ["-DHOW=fetch", f"-DKERNCAP_SOURCE={SOURCE}", "-DCMAKE_BUILD_TYPE=Release",
                        "-DCMAKE_CXX_FLAGS_RELEASE=-O1"]
        self.must(command)
        return build

    def recorded(self, database):
        """The names of the sources that the database has records of."""
        units = self.must([self.prefix.kerncap, "db", "list", "--json", "--db", database]).json()
        return sorted(pathlib.Path(unit["source"]).name for unit in units)

    def test_all_targets_are_recorded(self):
        build = self.configure("all")
        self.must(["cmake", "--build", build, "--target", "app"], timeout=800)
        self.assertEqual(self.recorded(build / ".kerncap"), ["arithmetic.cpp", "main.hip"])

    def test_another_database_and_one_target_only(self):
        build = self.configure("one", "-DONLY=app", f"-DDATABASE={self.scratch}/records")
        self.must(["cmake", "--build", build, "--target", "app"], timeout=800)
        self.assertEqual(self.recorded(self.scratch / "records"), ["main.hip"])

    def test_makefiles_record_too(self):
        build = self.configure("make", generator="Unix Makefiles")
        self.must(["cmake", "--build", build, "--target", "app"], timeout=800)
        self.assertEqual(self.recorded(build / ".kerncap"), ["arithmetic.cpp", "main.hip"])

    def test_the_objects_are_those_of_a_build_without_kerncap(self):
        if self.options.way != "build_tree":
            self.skipTest("the way makes no difference")
        recorded = self.configure("plain")
        self.must(["cmake", "--build", recorded, "--target", "app"])
        with_records = kerncap_tests.sha256(recorded / "CMakeFiles/app.dir/main.hip.o")
        shutil.rmtree(recorded)
        plain = self.configure("plain", "-DONLY=arithmetic")
        self.must(["cmake", "--build", plain, "--target", "app"])
        self.assertEqual(kerncap_tests.sha256(plain / "CMakeFiles/app.dir/main.hip.o"), with_records)

    def test_capture_and_reproducer_targets(self):
        if self.options.way == "fetch_content":
            self.skipTest("would build all of Kerncap again; the functions are those of the other ways")
        softgpu = ["-DSOFTGPU=gfx90a"] if kerncap_tests.gpu_options() else []
        build = self.configure("capture", *softgpu)
        self.must(["cmake", "--build", build, "--target", "scale_reproducer"])
        self.assertTrue((build / "scale_capture.kcap" / "manifest.json").is_file())
        project = build / "scale_reproducer"
        self.must(["cmake", "-S", project, "-B", project / "build", "-G", "Ninja"])
        self.must(["cmake", "--build", project / "build", "--target", "kernel"])
        # Nothing changed: nothing is captured again.
        again = self.must(["cmake", "--build", build, "--target", "scale_reproducer"])
        self.assertNotIn("Capturing", again.out)

    def test_wrong_use_is_explained(self):
        if self.options.way == "fetch_content":
            self.skipTest("the same for every way")
        cases = {
            "kerncap_record(TARGETS nobody)": "'nobody' is not a target",
            "kerncap_record(DATABASE x)": "unknown arguments: DATABASE;x",
            "kerncap_add_capture(NAME c TARGET nobody KERNEL k)": "'nobody' is not a target",
            "kerncap_add_capture(NAME c TARGET app)": "KERNEL is missing",
            "kerncap_add_reproducer(NAME r SNAPSHOT app)": "was not made by kerncap_add_capture",
        }
        for number, (call, message) in enumerate(cases.items()):
            with self.subTest(call):
                folder = self.scratch / f"wrong{number}"
                folder.mkdir()
                (folder / "CMakeLists.txt").write_text(
                    "cmake_minimum_required(VERSION 3.25)\nproject(wrong LANGUAGES CXX)\n"
                    "find_package(Kerncap REQUIRED)\nadd_executable(app app.cpp)\n" + call + "\n")
                (folder / "app.cpp").write_text("int main() {}\n")
                result = run(["cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={self.package.path}"])
                self.assertNotEqual(result.code, 0, str(result))
                self.assertIn(message, " ".join(result.err.split()), str(result))

    def test_versions_and_components_are_checked(self):
        if self.options.way == "fetch_content":
            self.skipTest("FetchContent knows no versions")
        for request, message in {
            "99.0": 'compatible with requested version "99.0"',
            "COMPONENTS teleport": "There is no component 'teleport'",
        }.items():
            with self.subTest(request):
                folder = self.scratch / ("find-" + request.replace(" ", "-"))
                folder.mkdir()
                (folder / "CMakeLists.txt").write_text(
                    "cmake_minimum_required(VERSION 3.25)\nproject(find LANGUAGES NONE)\n"
                    f"find_package(Kerncap {request} REQUIRED)\n")
                result = run(["cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={self.package.path}"])
                self.assertNotEqual(result.code, 0, str(result))
                self.assertIn(message, " ".join(result.err.split()), str(result))


if __name__ == "__main__":
    kerncap_tests.main(ConsumerTest, ("--way", {"choices": ["build_tree", "installed", "fetch_content"], "required": True}))
