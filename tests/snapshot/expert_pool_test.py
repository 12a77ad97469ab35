#!/usr/bin/env python3
"""A caching allocator and expert weights behind a table of device pointers: captured whole and by reach, several dispatches
into one store, replayed, compared, read by a second reader. --mib 2048 is the full size."""

import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import kerncap_tests
from kerncap_tests import BAD_INPUT, DONE, NO, USAGE, gpu_options
from snapshot_reader import CHUNK, Damage, Snapshot, number

SOURCE = pathlib.Path(__file__).resolve().parent / "expert_pool.hip"


def disk(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class ExpertPoolTest(kerncap_tests.KerncapTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.app = cls.scratch / "expert_pool"
        cls.must(["hipcc", "-std=c++17", "-O2", "--offload-arch=gfx90a", SOURCE, "-o", cls.app])
        cls.one = cls.scratch / "one.kcap"
        cls.two = cls.scratch / "two.kcap"
        cls.reach = cls.scratch / "reach.kcap"
        cls.plain = cls.must([cls.prefix.kerncap, "softgpu", "--", cls.app, cls.options.mib, "3"]
                             if gpu_options() else [cls.app, cls.options.mib, "3"], timeout=600).out
        cls.said = {}
        cls.shown = {}
        for output, options in ((cls.one, ["-d", "1"]), (cls.two, ["-d", "1-2"]),
                                (cls.reach, ["-d", "1", "--scope", "reachable"])):
            result = cls.must([cls.prefix.kerncap, "capture", *gpu_options(), "-k", "mixture", "-o", output, *options,
                               "--", cls.app, cls.options.mib, "3"], timeout=600)
            lines = [line.split() for line in result.out.splitlines()]
            cls.said[output] = {words[0]: words[1] for words in lines if len(words) == 2}
            cls.shown[output] = result.out

    def manifest(self, snapshot):
        return self.kerncap("inspect", "--json", snapshot).json()

    def region_of(self, dispatch, address):
        for position, region in enumerate(dispatch["regions"]):
            if number(region["address"]) <= address < number(region["address"]) + region["size"]:
                return position
        return None

    def address(self, snapshot, name):
        return int(self.said[snapshot][name])

    def test_the_application_computes_what_it_computes_without_kerncap(self):
        expected = self.plain.split()[-1]
        for snapshot in (self.one, self.two, self.reach):
            self.assertEqual(self.said[snapshot]["sum"], expected)

    def test_a_second_dispatch_costs_little(self):
        one, two = disk(self.one), disk(self.two)
        print(f"one dispatch {one} bytes, two {two} ({two / one:.4f} times)")
        self.assertLess(two, 1.02 * one + (1 << 20))
        self.assertEqual(len(self.manifest(self.two)["dispatches"]), 2)

    def test_everything_is_everything(self):
        dispatch = self.manifest(self.one)["dispatches"][0]
        self.assertEqual(dispatch["scope"], "everything")
        self.assertEqual(dispatch["visible_bytes"], sum(r["size"] for r in dispatch["regions"]))
        for name in ("weights", "other", "table"):
            self.assertIsNotNone(self.region_of(dispatch, self.address(self.one, name)), name)

    def test_what_the_table_leads_to_is_reached_and_the_other_model_is_not(self):
        dispatch = self.manifest(self.reach)["dispatches"][0]
        self.assertEqual(dispatch["scope"], "reachable")
        for name in ("weights", "table"):
            self.assertIsNotNone(self.region_of(dispatch, self.address(self.reach, name)), name)
        other = self.address(self.reach, "other")
        self.assertIsNone(self.region_of(dispatch, other))
        missing = [m for m in dispatch["not_captured"] if number(m["address"]) <= other < number(m["address"]) + m["size"]]
        self.assertEqual(len(missing), 1)
        self.assertIn("no pointer leads there", missing[0]["reason"])
        kept = sum(r["size"] for r in dispatch["regions"])
        left_out = sum(m["size"] for m in dispatch["not_captured"])
        self.assertEqual(kept + left_out, dispatch["visible_bytes"])
        self.assertGreater(left_out, int(self.options.mib) * (1 << 20) // 4)

    def test_both_sizes_are_shown(self):
        self.assertIn("that the device could reach", self.shown[self.reach])
        self.assertNotIn("that the device could reach", self.shown[self.one])
        text = self.kerncap("inspect", self.reach).out
        self.assertIn("the device could reach", text)
        self.assertIn("left out by --scope reachable", text)
        self.assertIn("A replay fails when the kernel touches what was left out", text)

    def test_too_much_is_refused(self):
        limit = int(self.options.mib) * (1 << 20) // 2
        for options in ([], ["--scope", "reachable"]):
            result = self.kerncap("capture", *gpu_options(), "-k", "mixture", "-o", self.scratch / "no.kcap", *options,
                                  "--max-bytes", limit, "--", self.app, self.options.mib, "3", timeout=600)
            self.assertNotEqual(result.code, DONE, str(result))
            self.assertIn("--max-bytes", result.err)
            self.assertIn(f"sum {self.plain.split()[-1]}", result.out)
            self.assertFalse((self.scratch / "no.kcap").exists())

    def test_snapshots_replay_bit_for_bit(self):
        for snapshot in (self.one, self.reach):
            result = self.kerncap("validate", *gpu_options(), snapshot, timeout=600)
            self.assertEqual(result.code, DONE, str(result))

    def test_a_kernel_that_reaches_further_is_not_given_a_verdict(self):
        hidden = self.scratch / "hidden.kcap"
        self.must([self.prefix.kerncap, "capture", *gpu_options(), "-k", "peek", "-o", hidden, "--scope", "reachable", "--",
                   self.app, "4", "1"], timeout=600)
        result = self.kerncap("validate", *gpu_options(), hidden, timeout=600)
        self.assertNotEqual(result.code, DONE, str(result))
        self.assertIn("fault", (result.out + result.err).lower(), str(result))
        whole = self.scratch / "not-hidden.kcap"
        self.must([self.prefix.kerncap, "capture", *gpu_options(), "-k", "peek", "-o", whole, "--", self.app, "4", "1"],
                  timeout=600)
        result = self.kerncap("validate", *gpu_options(), whole, timeout=600)
        self.assertEqual(result.code, DONE, str(result))

    def test_what_differs_is_told(self):
        same = self.kerncap("inspect", "--diff", self.one, self.one)
        self.assertEqual((same.code, same.out), (DONE, "no difference\n"), str(same))
        steps = self.kerncap("inspect", "--json", "--diff", self.two, self.two, "--dispatches", "0", "1")
        self.assertEqual(steps.code, NO, str(steps))
        compared = steps.json()["compared"][0]
        self.assertEqual(compared["removed"] + compared["added"], [])
        self.assertGreater(sum(m["bytes"] for m in compared["before"]), 0)
        self.assertTrue(any("argument 3" in m["argument"] or "argument 1" in m["argument"] for m in compared["before"]),
                        str(steps))
        text = self.kerncap("inspect", "--diff", self.two, self.two, "--dispatches", "0", "1")
        self.assertIn("Memory before the kernel", text.out)
        count = self.kerncap("inspect", "--diff", self.one, self.two)
        self.assertEqual(count.code, NO)
        self.assertIn("1 dispatches in the first, 2 in the second", count.out)

    def test_wrong_use_of_diff_is_explained(self):
        self.assert_one_sentence(self.kerncap("inspect"), USAGE, "name a snapshot")
        self.assert_one_sentence(self.kerncap("inspect", "--diff", self.one, self.two, "--dispatches", "0", "2"), USAGE,
                                 "holds 1 dispatches")
        self.assertEqual(self.kerncap("inspect", "--diff", self.one).code, USAGE)

    def test_arguments_are_decoded_with_types_and_values(self):
        arguments = self.manifest(self.one)["dispatches"][0]["decoded_arguments"]
        self.assertEqual([a["type"] for a in arguments[:4]],
                         ["Expert const* const*", "unsigned int const*", "float const*", "float*"])
        self.assertEqual(number(arguments[0]["value"]), self.address(self.one, "table"))
        self.assertTrue(all(a["points_into"].startswith("device_coarse") for a in arguments[:4]))

    def test_changes_of_the_kernel_are_counted_by_byte(self):
        dispatch = self.manifest(self.one)["dispatches"][0]
        self.assertGreater(len(dispatch["changes"]), 0)
        kernel = [c for c in dispatch["changes"] if "argument 3" in c["argument"]]
        self.assertEqual(len(kernel), 1)
        self.assertLessEqual(kernel[0]["bytes"], 64 * 4)
        self.assertNotEqual(kernel[0]["element_before"], kernel[0]["element_after"])

    def test_a_second_reader_reads_the_same(self):
        """docs/formats/snapshot.md is right, byte by byte."""
        for path in (self.two, self.reach):
            mine = Snapshot(path)
            shown = self.manifest(path)
            for number_of, dispatch in enumerate(mine.dispatches):
                changed = [0] * len(dispatch["regions"])
                for region in range(len(changed)):
                    before = mine.memory(number_of, region)
                    after = mine.memory(number_of, region, after=True)
                    self.assertEqual(len(before), dispatch["regions"][region]["size"])
                    if before != after:
                        for at in range(0, len(before), CHUNK):
                            a, b = before[at:at + CHUNK], after[at:at + CHUNK]
                            changed[region] += 0 if a == b else sum(x != y for x, y in zip(a, b))
                self.assertEqual(changed, shown["dispatches"][number_of]["changed_bytes_by_region"])
                kernarg = mine.kernarg(number_of)
                first = dispatch["kernel"]["arguments"][0]
                value = int.from_bytes(kernarg[first["offset"]:first["offset"] + 8], "little")
                self.assertEqual(value, self.address(path, "table"))
                table = mine.memory(number_of, self.region_of(dispatch, value))
                offset = value - number(dispatch["regions"][self.region_of(dispatch, value)]["address"])
                entries = [int.from_bytes(table[offset + 8 * i:offset + 8 * i + 8], "little") for i in range(16)]
                for entry in entries:
                    self.assertIsNotNone(self.region_of(dispatch, entry))
                for load in dispatch["loads"]:
                    self.assertGreater(len(mine.code(load["digest"])), 0)

    def test_both_readers_refuse_the_same_damage(self):
        """A flipped byte or a cut in any file: neither reader accepts it."""
        small = self.scratch / "small.kcap"
        self.must([self.prefix.kerncap, "capture", *gpu_options(), "-k", "mixture", "-o", small, "--scope", "reachable",
                   "--", self.app, "1", "1"])
        for path in sorted(p for p in small.rglob("*") if p.is_file()):
            good = path.read_bytes()
            size = len(good)
            for damaged in (good[:size // 2], good[:-1], b"", good + b"x",
                            *(good[:i] + bytes([good[i] ^ 1]) + good[i + 1:] for i in (0, size // 3, size - 1))):
                if path.name == "manifest.json" and damaged.split() == good.split():
                    continue  # white space
                path.write_bytes(damaged)
                verified = self.kerncap("inspect", "--verify", "--json", small)
                self.assertEqual(verified.code, BAD_INPUT, f"{path} {len(damaged)}\n{verified}")
                self.assertFalse(verified.json()["whole"])
                with self.assertRaises(Damage, msg=f"{path} {len(damaged)}"):
                    self.read_all(Snapshot(small))
            path.write_bytes(good)
        self.read_all(Snapshot(small))
        self.assertEqual(self.kerncap("inspect", "--verify", small).code, DONE)

    @staticmethod
    def read_all(snapshot):
        for number_of, dispatch in enumerate(snapshot.dispatches):
            snapshot.kernarg(number_of)
            for identity, entry in enumerate(snapshot.chunks):
                snapshot.chunk(identity + 1, entry[5])
            for load in dispatch["loads"]:
                snapshot.code(load["digest"])

    def test_a_newer_format_is_refused_politely(self):
        newer = self.scratch / "newer.kcap"
        shutil.copytree(self.reach, newer)
        manifest = newer / "manifest.json"
        manifest.write_text(manifest.read_text().replace("kerncap.snapshot/2", "kerncap.snapshot/3"))
        self.assert_one_sentence(self.kerncap("inspect", newer), BAD_INPUT, "kerncap.snapshot/3", "use a newer Kerncap")


if __name__ == "__main__":
    kerncap_tests.main(ExpertPoolTest, ("--mib", {"default": "32", "help": "size of the experts' weights"}))
