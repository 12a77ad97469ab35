#!/usr/bin/env python3
"""From whatever one has of a kernel to how it was compiled: every kind of key, in every container that compilers write."""

import hashlib
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import kerncap_tests
from kerncap_tests import DONE, NO, run

# HIP's own headers and libraries are not needed to see how compilers pack what they made.
MINI = """#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
struct dim3 { unsigned x, y, z; };
extern "C" int __hipPushCallConfiguration(dim3, dim3, unsigned long, void*);
extern "C" int hipLaunchKernel(const void*, dim3, dim3, void**, unsigned long, void*);
"""
KERNELS = """#include "mini.h"
#if defined(__HIP_DEVICE_COMPILE__)
#include "tile.h"
#else
#define TILE 0
#endif
template <typename T> __global__ void scale(T* p, T f) { p[0] *= f * TILE; }
template __global__ void scale<float>(float*, float);
template __global__ void scale<double>(double*, double);
extern "C" __global__ void plain(float* p) { *p = 1; }
static __global__ void only_here(float* p) { *p = 2; }
void* keep() { return reinterpret_cast<void*>(&only_here); }
"""
OTHER = """#include "mini.h"
__global__ void other(int* p) { *p = 3; }
static __global__ void only_here(float* p) { *p = 4; }
void* keep_other() { return reinterpret_cast<void*>(&only_here); }
"""
SCALE_FLOAT = "_Z5scaleIfEvPT_S0_"

# A compiler of tomorrow: what clang 19 packs as version 2 of a compressed bundle, as version 3 (64-bit sizes;
# clang/docs/ClangOffloadBundler.rst, "Compression and Decompression").
VERSION_3 = '''#!/usr/bin/env python3
import os, struct, subprocess, sys
code = subprocess.call(["clang++-19", *sys.argv[1:]])
if code == 0 and "-o" in sys.argv:
    output = sys.argv[sys.argv.index("-o") + 1]
    section = output + ".fatbin"
    subprocess.check_call(["objcopy", "-O", "binary", "--only-section=.hip_fatbin", "--set-section-flags", ".hip_fatbin=alloc", output, section])
    bundle = open(section, "rb").read()
    magic, version, method, size, raw, checksum = struct.unpack_from("<4sHHIIQ", bundle)
    assert (magic, version) == (b"CCOB", 2)
    data = bundle[24:size]
    with open(section, "wb") as file:
        file.write(struct.pack("<4sHHQQQ", magic, 3, method, 32 + len(data), raw, checksum) + data)
    subprocess.check_call(["objcopy", "--update-section", ".hip_fatbin=" + section, output])
    os.remove(section)
sys.exit(code)
'''

# name: compiler, options, targets of the code objects
TWO = ["--offload-arch=gfx90a:xnack+", "--offload-arch=gfx1030"]
FORMS = {
    "clang15": ("clang++-15", TWO, {"gfx90a:xnack+", "gfx1030"}),
    "clang19": ("clang++-19", TWO, {"gfx90a:xnack+", "gfx1030"}),
    "hipcc": ("hipcc", TWO, {"gfx90a:xnack+", "gfx1030"}),
    "new_driver": ("clang++-19", [*TWO, "--offload-new-driver"], {"gfx90a:xnack+", "gfx1030"}),
    "rdc_15": ("clang++-15", ["--offload-arch=gfx90a", "-fgpu-rdc"], {"gfx90a"}),
    "rdc_19": ("clang++-19", [*TWO, "-fgpu-rdc"], {"gfx90a:xnack+", "gfx1030"}),
    "rdc_new_driver_15": ("clang++-15", ["--offload-arch=gfx90a", "-fgpu-rdc", "--offload-new-driver"], {"gfx90a"}),
    "rdc_new_driver_19": ("clang++-19", ["--offload-arch=gfx90a", "-fgpu-rdc", "--offload-new-driver"], {"gfx90a"}),
    "compressed_2": ("clang++-19", [*TWO, "--offload-compress"], {"gfx90a:xnack+", "gfx1030"}),
    "compressed_3": ("clang++-version-3", [*TWO, "--offload-compress"], {"gfx90a:xnack+", "gfx1030"}),
    "device_lto": ("clang++-19", ["--offload-arch=gfx90a", "-fgpu-rdc", "--offload-new-driver", "-foffload-lto"], {"gfx90a"}),
    "host_lto_15": ("clang++-15", [*TWO, "-flto"], {"gfx90a:xnack+", "gfx1030"}),
    "host_lto_19": ("clang++-19", [*TWO, "-flto=thin"], {"gfx90a:xnack+", "gfx1030"}),
    "variants": ("clang++-19",
                 ["--offload-arch=gfx90a:sramecc+:xnack-", "--offload-arch=gfx90a:sramecc+:xnack+", "--offload-arch=gfx906:sramecc-:xnack-"],
                 {"gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack+", "gfx906:sramecc-:xnack-"}),
    "generic": ("clang++-19", ["--offload-arch=gfx9-generic", "-mcode-object-version=6"], {"gfx9-generic"}),
    "device_only": ("clang++-19", ["--offload-arch=gfx90a", "--cuda-device-only", "--no-gpu-bundle-output"], {"gfx90a"}),
}


class LookupTest(kerncap_tests.KerncapTestCase):
    def setUp(self):
        self.tree = self.scratch / self.id().rsplit(".", 1)[1]
        self.tree.mkdir()
        self.start_database(self.tree)
        for name, text in {"mini.h": MINI, "tile.h": "#define TILE 4\n", "k.hip": KERNELS, "other.hip": OTHER}.items():
            (self.tree / name).write_text(text)

    def compile(self, compiler, *arguments, folder=None, record=True, launcher=()):
        """A HIP compile under kerncap-cc, in a database of its folder."""
        folder = folder or self.tree
        wrapper = [self.prefix.path / "bin" / "kerncap-cc"] if record else []
        return self.must([*wrapper, *launcher, compiler, "-nogpuinc", "-nogpulib", "-O1", *arguments], cwd=folder,
                         env={"KERNCAP_DB": folder / ".kerncap", "PATH": f"{self.scratch / 'bin'}:{os.environ['PATH']}"})

    def make_database(self, folder):
        folder.mkdir(exist_ok=True)
        for name in ("mini.h", "tile.h", "k.hip", "other.hip"):
            if not (folder / name).exists():
                shutil.copy(self.tree / name, folder)
        self.start_database(folder)
        return folder

    @staticmethod
    def start_database(folder):
        (folder / ".kerncap").mkdir()
        (folder / ".kerncap" / "VERSION").write_text("1 kerncap compilation database\n")

    def show(self, key, *options, folder=None):
        folder = folder or self.tree
        return run([self.prefix.kerncap, "db", "show", "--json", "--db", folder / ".kerncap", *options, key], cwd=folder)

    def shown(self, key, *options, folder=None, code=DONE):
        result = self.show(key, *options, folder=folder)
        self.assertEqual(result.code, code, str(result))
        return result.json() if result.out else []

    def test_every_container_leads_from_every_key_to_its_unit(self):
        (self.scratch / "bin").mkdir(exist_ok=True)
        script = self.scratch / "bin" / "clang++-version-3"
        script.write_text(VERSION_3)
        script.chmod(0o755)
        seen = 0
        for name, (compiler, options, targets) in FORMS.items():
            if not shutil.which(compiler) and not (self.scratch / "bin" / compiler).exists():
                continue
            with self.subTest(name):
                seen += 1
                folder = self.make_database(self.tree / name)
                self.compile(compiler, "-x", "hip", *options, "-c", "k.hip", "-o", "k.o", folder=folder)
                output = str(folder / "k.o")

                def leads_to_it(key, *more, code=DONE):
                    entries = self.shown(key, *more, folder=folder, code=code)
                    self.assertEqual({entry["output"] for entry in entries}, {output}, key)
                    return entries

                contents = leads_to_it("k.o", "--as", "contents")
                self.assertEqual({entry["target"] for entry in contents}, targets)
                for entry in contents:
                    self.assertEqual([e["target"] for e in leads_to_it(entry["code_object"])], [entry["target"]])
                    self.assertFalse(entry["stale"])
                leads_to_it("k.o")
                leads_to_it("k.hip")
                reached = leads_to_it("tile.h")  # read by the device passes alone
                leads_to_it(next(iter(targets)).split(":")[0])
                leads_to_it(next(iter(targets)))
                if name == "device_only" and contents[0]["kernels"] == []:
                    continue
                for key in (SCALE_FLOAT, SCALE_FLOAT + ".kd", "scale<float>", "void scale<float>(float*, float)", "plain",
                            "sym:" + SCALE_FLOAT, "re:^void scale<float>", "*scale<fl*", "only_here"):
                    entries = leads_to_it(key)
                    self.assertEqual({entry["target"] for entry in entries}, targets, key)
                kernels = {kernel for unit in reached for c in unit["code_objects"] for kernel in c["demangled"]}
                self.assertLessEqual({"void scale<float>(float*, float)", "void scale<double>(double*, double)", "plain"}, kernels)
                # Two instances: which one is meant is open.
                result = self.show("scale", folder=folder)
                self.assert_one_sentence(result, NO, SCALE_FLOAT, "_Z5scaleIdEvPT_S0_")
        self.assertGreater(seen, 0, "no compiler for HIP is installed")

    def test_the_digest_is_that_of_the_bytes_in_the_object(self):
        bundler = shutil.which("clang-offload-bundler-19")
        if not bundler or not shutil.which("clang++-15"):
            self.skipTest("clang 15 and the offload bundler of clang 19 are not installed")
        self.compile("clang++-15", "-x", "hip", "--offload-arch=gfx90a", "-c", "k.hip", "-o", "k.o")
        self.must(["objcopy", "-O", "binary", "--only-section=.hip_fatbin", "--set-section-flags", ".hip_fatbin=alloc", "k.o", "k.fatbin"],
                  cwd=self.tree)
        self.must([bundler, "--unbundle", "--type=o", "--input=k.fatbin", "--output=k.hsaco",
                   "--targets=hipv4-amdgcn-amd-amdhsa--gfx90a"], cwd=self.tree)
        digest = hashlib.sha256((self.tree / "k.hsaco").read_bytes()).hexdigest()
        self.assertEqual([entry["output"] for entry in self.shown(digest)], [str(self.tree / "k.o")])
        # A raw code object, as the capture keeps it, leads there too.
        self.assertEqual([entry["output"] for entry in self.shown("k.hsaco")], [str(self.tree / "k.o")])

    def test_libraries_and_executables_lead_to_the_units_in_them(self):
        if not shutil.which("clang++-19") or not shutil.which("hipcc"):
            self.skipTest("clang 19 and hipcc are not installed")
        for source in ("k", "other"):
            self.compile("clang++-19", "-x", "hip", "-fPIC", "--offload-arch=gfx90a", "-c", f"{source}.hip", "-o", f"{source}.o")
        (self.tree / "main.cpp").write_text("void* keep(); void* keep_other();\nint main() { return keep() == keep_other(); }\n")
        self.must(["ar", "rcs", "libboth.a", "k.o", "other.o"], cwd=self.tree)
        self.compile("clang++-19", "-shared", "k.o", "other.o", "-o", "libboth.so")
        self.compile("clang++-19", "main.cpp", "libboth.a", "-o", "app", "-L/usr/lib/x86_64-linux-gnu", "-lamdhip64")
        both = {str(self.tree / "k.o"), str(self.tree / "other.o")}
        for file in ("libboth.a", "libboth.so", "app"):
            with self.subTest(file):
                entries = self.shown(file, "--as", "contents")
                self.assertEqual({entry["output"] for entry in entries}, both)
        # As an object, a linked file is its own link.
        self.assertEqual([entry["kind"] for entry in self.shown("app", "--as", "object") if entry["source"] == ""], ["link"])

    def test_relocatable_code_leads_from_the_linked_kernel_to_unit_and_link(self):
        if not shutil.which("clang++-19"):
            self.skipTest("clang 19 is not installed")
        for name, options in {"old": [], "new": ["--offload-new-driver"]}.items():
            with self.subTest(name):
                folder = self.make_database(self.tree / name)
                for source in ("k", "other"):
                    self.compile("clang++-19", "-x", "hip", "-fPIC", "-fgpu-rdc", *options, "--offload-arch=gfx90a", "-c", f"{source}.hip",
                                 "-o", f"{source}.o", folder=folder)
                self.compile("clang++-19", "--hip-link", "-fgpu-rdc", *options, "--offload-arch=gfx90a", "-shared", "k.o", "other.o", "-o",
                             "lib.so", folder=folder)
                linked = self.shown("lib.so", "--as", "contents", folder=folder)
                self.assertEqual({(entry["kind"], entry["output"]) for entry in linked}, {("link", str(folder / "lib.so"))})
                self.assertEqual({str(folder / "k.o"), str(folder / "other.o")}, set(linked[0]["inputs"]))
                self.assertIn(SCALE_FLOAT, linked[0]["kernels"])
                # The kernel's own unit beats the link that holds it too.
                self.assertEqual({entry["output"] for entry in self.shown(SCALE_FLOAT, folder=folder)}, {str(folder / "k.o")})

    def test_what_is_ambiguous_is_said_with_its_candidates(self):
        compiler = next((c for c in ("clang++-15", "clang++-19") if shutil.which(c)), None)
        if not compiler:
            self.skipTest("no compiler for HIP is installed")
        hip = ["-x", "hip", "--offload-arch=gfx90a"]
        self.compile(compiler, *hip, "-c", "k.hip", "-o", "first.o")
        self.compile(compiler, *hip, "-c", "other.hip", "-o", "other.o")
        # A static kernel of one name in two sources.
        self.assert_one_sentence(self.show("only_here"), NO, "first.o", "other.o")
        self.assertEqual(len(self.shown("only_here", code=NO)), 2)
        # One source in two targets, with the same code.
        self.compile(compiler, *hip, "-c", "k.hip", "-o", "second.o")
        digests = {entry["code_object"] for entry in self.shown("first.o", "--as", "contents")}
        for digest in digests:
            result = self.show(digest)
            self.assert_one_sentence(result, NO, "first.o", "second.o")
        self.assertEqual({entry["output"] for entry in self.shown("k.hip")}, {str(self.tree / "first.o"), str(self.tree / "second.o")})
        # A file and a kernel of one name.
        self.compile(compiler, *hip, "-c", "other.hip", "-o", "plain")
        self.assert_one_sentence(self.show("plain"), NO, "several things", "--as")
        self.assertEqual([e["output"] for e in self.shown("plain", "--as", "object")], [str(self.tree / "plain")])
        self.assert_one_sentence(self.show("nothing"), NO, "no code object digest, CUID, object, source, header, target or kernel")

    def test_cmake_and_meson_targets(self):
        if not shutil.which("clang++-15"):
            self.skipTest("clang 15 is not installed")
        for output in ("lib/CMakeFiles/fast.dir/sub/k.o", "lib/CMakeFiles/slow.dir/k.o", "libmeson.so.p/k.o"):
            (self.tree / output).parent.mkdir(parents=True)
            self.compile("clang++-15", "-x", "hip", "--offload-arch=gfx90a", "-c", "k.hip", "-o", output)
        for target, output in {"fast": "lib/CMakeFiles/fast.dir/sub/k.o", "slow": "lib/CMakeFiles/slow.dir/k.o", "libmeson.so": "libmeson.so.p/k.o"}.items():
            self.assertEqual([unit["output"] for unit in self.shown(target)], [str(self.tree / output)])
        table = self.must([self.prefix.kerncap, "db", "show", "tile.h"], cwd=self.tree)
        self.assertIn("reaches 3 translation units and 4 kernels", table.out)

    def test_clangd_and_clang_tidy_accept_the_export_of_every_pass(self):
        for program in ("clang++-15", "clangd-19", "clang-tidy-19"):
            if not shutil.which(program):
                self.skipTest(f"{program} is not installed")
        self.compile("clang++-15", "-x", "hip", *TWO, "-c", "k.hip", "-o", "k.o")
        for options, entries in (([], 1), (["--per-pass"], 3)):
            with self.subTest(options):
                exported = self.must([self.prefix.kerncap, "db", "export", *options, "--db", self.tree / ".kerncap", "-o", "compile_commands.json"],
                                     cwd=self.tree)
                self.assertIn(f"{entries} entries", exported.out)
                tidy = self.must(["clang-tidy-19", "--checks=-*,misc-definitions-in-headers", "-p", ".", "k.hip"], cwd=self.tree)
                self.assertNotIn("error:", tidy.out + tidy.err)
                clangd = self.must(["clangd-19", "--check=k.hip", "--compile-commands-dir=."], cwd=self.tree)
                self.assertIn("All checks completed, 0 errors", clangd.err)

    def test_how_far_a_record_can_be_trusted_is_shown(self):
        if not shutil.which("clang++-15"):
            self.skipTest("clang 15 is not installed")
        self.compile("clang++-15", "-x", "hip", "--offload-arch=gfx90a", "-c", "k.hip", "-o", "k.o")
        self.compile("clang++-15", "-x", "hip", "--offload-arch=gfx90a", "-c", "other.hip", "-o", "other.o", record=False)
        (self.tree / "compile_commands.json").write_text(
            f'[{{"directory": "{self.tree}", "file": "other.hip", "output": "other.o", "arguments": '
            '["clang++-15", "-nogpuinc", "-nogpulib", "-O1", "-x", "hip", "--offload-arch=gfx90a", "-c", "other.hip", "-o", "other.o"]}]')
        self.must([self.prefix.kerncap, "db", "import", "--db", self.tree / ".kerncap", "compile_commands.json"], cwd=self.tree)
        listed = self.must([self.prefix.kerncap, "db", "list", "--json"], cwd=self.tree).json()
        self.assertEqual({unit["source"]: unit["origin"] for unit in listed}, {"k.hip": "recorded", "other.hip": "compile_commands"})
        table = self.must([self.prefix.kerncap, "db", "list"], cwd=self.tree).out
        self.assertRegex(table, r"k\.hip .* recorded\n")
        self.assertRegex(table, r"other\.hip .* compile_commands\n")
        self.assertIn("imported: the command is what the build tool wrote", self.must([self.prefix.kerncap, "db", "show", "other.o"], cwd=self.tree).out)
        self.assertIn("written by kerncap-cc during the build: exact", self.must([self.prefix.kerncap, "db", "show", "k.o"], cwd=self.tree).out)
        # A kernel of an imported unit is found like any other.
        self.assertEqual([entry["origin"] for entry in self.shown("other(int*)")], ["compile_commands"])


if __name__ == "__main__":
    kerncap_tests.main(LookupTest)
