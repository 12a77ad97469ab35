#!/usr/bin/env python3
"""Kerncap's CMake package in projects of each kind: HIP through C++, hip::device, CUDA, presets, several configurations."""

import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import kerncap_tests
from kerncap_tests import SOURCE, sha256

DEVICE_LIBRARIES = sorted(pathlib.Path("/usr/lib").glob("*-linux-gnu/amdgcn/bitcode"))


class LanguagesTest(kerncap_tests.KerncapTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sources = cls.scratch / "consumers"
        shutil.copytree(SOURCE / "tests" / "consumers", cls.sources)

    def configure(self, name, *options, folder=None, generator="Ninja"):
        build = self.scratch / f"build-{name}"
        self.must(["cmake", "-S", self.sources / (folder or name), "-B", build, "-G", generator,
                   f"-DCMAKE_PREFIX_PATH={self.prefix.path}", *options])
        return build

    def needs(self, program):
        if not shutil.which(program):
            self.skipTest(f"{program} is not installed")

    def units(self, database):
        return self.must([self.prefix.kerncap, "db", "list", "--json", "--db", database]).json()

    def kernel_unit(self, build, source, kernel):
        """The record of the kernel's unit, found by the kernel's name."""
        shown = self.must([self.prefix.kerncap, "db", "show", "--json", "--db", build / ".kerncap", kernel]).json()
        self.assertEqual({pathlib.Path(entry["source"]).name for entry in shown}, {source})
        return shown[0]

    def test_hip_through_cxx_with_hipcc(self):
        self.needs("hipcc")
        for generator in ("Ninja", "Unix Makefiles"):
            with self.subTest(generator):
                build = self.configure("hipcc", "-DCMAKE_CXX_COMPILER=hipcc", generator=generator)
                self.must(["cmake", "--build", build])
                unit = self.kernel_unit(build, "kernel.cpp", "scale")
                self.assertEqual((unit["language"], unit["device_targets"]), ("hip", ["gfx90a"]))
                self.assertIn("gfx90a", [job["target"] for job in unit["jobs"]])
                self.assertEqual(len(self.units(build / ".kerncap")), 2)
                shutil.rmtree(build)

    def test_hip_device_targets(self):
        self.needs("clang++-15")
        if not list(pathlib.Path("/usr/lib").glob("*/cmake/hip/hip-config.cmake")):
            self.skipTest("HIP's CMake package is not installed")
        # Debian's clang does not find Debian's ROCm by itself.
        flags = "--rocm-path=/usr" + "".join(f" --rocm-device-lib-path={folder}" for folder in DEVICE_LIBRARIES[:1])
        build = self.configure("hip_device", "-DCMAKE_CXX_COMPILER=clang++-15", f"-DCMAKE_CXX_FLAGS={flags}")
        self.must(["cmake", "--build", build, "--target", "kernel"])
        unit = self.kernel_unit(build, "kernel.cpp", "scale")
        self.assertEqual((unit["language"], unit["device_targets"]), ("hip", ["gfx90a"]))

    def test_cuda(self):
        nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
        if not nvcc:
            self.skipTest("nvcc is not installed")
        build = self.configure("cuda", f"-DCMAKE_CUDA_COMPILER={nvcc}", "-DCMAKE_CUDA_ARCHITECTURES=80")
        self.must(["cmake", "--build", build])
        units = self.units(build / ".kerncap")
        self.assertEqual([(pathlib.Path(u["source"]).name, u["language"]) for u in units], [("kernel.cu", "cuda")])
        # nvcc keeps no log of its passes; the headers are those of its depfile.
        reached = self.must([self.prefix.kerncap, "db", "show", "--json", "--db", build / ".kerncap", self.sources / "cuda" / "kernel.cuh"])
        self.assertEqual(len(reached.json()), 1)

    def test_presets_and_several_configurations(self):
        project = self.sources / "presets"
        environment = {"CMAKE_PREFIX_PATH": self.prefix.path}
        for preset in ("plain", "recorded"):
            self.must(["cmake", "--preset", preset], cwd=project, env=environment)
        for preset in ("recorded-debug", "recorded-release", "plain-release"):
            self.must(["cmake", "--build", "--preset", preset], cwd=project, env=environment)
        self.assertFalse((project / "build/plain/.kerncap").exists())
        outputs = sorted(pathlib.Path(unit["output"]).parts[-2] for unit in self.units(project / "build/recorded/.kerncap"))
        self.assertEqual(outputs, ["Debug", "Release"])
        # A recorded program is installed like any other, and is the same.
        self.must(["cmake", "--install", project / "build/recorded", "--config", "Release", "--prefix", self.scratch / "installed"])
        self.assertTrue(os.access(self.scratch / "installed/bin/app", os.X_OK))
        self.assertEqual(sha256(project / "build/recorded/Release/app"), sha256(project / "build/plain/Release/app"))


if __name__ == "__main__":
    kerncap_tests.main(LanguagesTest)
