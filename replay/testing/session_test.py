#!/usr/bin/env python3
"""kerncap watch and kerncap serve on a small project, on the software GPU: many candidates through one process, among
them those that crash, hang and cheat."""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(ROOT / "examples/serve-client"))
import client
from candidates_test import BAD_INPUT, CANDIDATES, NO, VALID

PROJECT = """cmake_minimum_required(VERSION 3.20)
project(Kernel LANGUAGES NONE)
add_custom_command(OUTPUT kernel.hsaco
  COMMAND @HIPCC@ --offload-arch=gfx90a --cuda-device-only --no-gpu-bundle-output -O3 -c ${CMAKE_SOURCE_DIR}/src/a/step.hip -o kernel.hsaco
  DEPENDS src/a/step.hip src/step.h VERBATIM)
add_custom_target(kernel ALL DEPENDS kernel.hsaco)
"""


class Session(unittest.TestCase):
    prefix = candidates = hipcc = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="kerncap-session-test"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.environment = {k: v for k, v in os.environ.items() if not k.startswith(("KERNCAP_", "HSA_", "LD_PRELOAD"))}
        cls.environment["KERNCAP_SOFTGPU_THREADS"] = "1"
        on_gpu = {**cls.environment, "LD_PRELOAD": str(cls.prefix / "lib/kerncap/libkerncap-softgpu.so"),
                  "KERNCAP_SOFTGPU_ARCH": "gfx90a"}
        cls.project = cls.folder / "project"
        (cls.project / "src/a").mkdir(parents=True)
        (cls.project / "jobs").mkdir()
        subprocess.run([cls.prefix / "tests/replay_make_snapshot", cls.candidates / "captured.hsaco", cls.project / "snapshot"],
                       env=on_gpu, timeout=60, check=True)
        (cls.project / "CMakeLists.txt").write_text(PROJECT.replace("@HIPCC@", str(cls.hipcc)))
        shutil.copy(HERE / "captured.hip", cls.project / "src/a/step.hip")
        (cls.project / "src/a/step.hip").write_text(cls.source("captured"))
        shutil.copy(HERE / "step.h", cls.project / "src/step.h")
        (cls.project / "kernel.json").write_text(json.dumps({"symbol": "step", "file": "src/a/step.hip", "parameters": []}))

    @staticmethod
    def source(name):
        path = HERE / "captured.hip" if name == "captured" else HERE / "candidates" / f"{name}.hip"
        return path.read_text().replace('"step.h"', '"../step.h"')

    def server(self, input_folder=None, *options):
        return client.Kerncap(input_folder or self.project, "--softgpu=gfx90a", *options, kerncap=self.prefix / "bin/kerncap",
                              environment=self.environment)

    def hsaco(self, name):
        return str(self.candidates / f"{name}.hsaco")

    def assert_refused(self, server, code, method, **parameters):
        with self.assertRaises(client.RequestFailed) as refused:
            server.ask(method, **parameters)
        self.assertEqual(refused.exception.code, code, str(refused.exception))
        return refused.exception

    def test_candidates_in_one_process_are_judged_as_each_in_its_own(self):
        # Twice over and shuffled: what one leaves behind must not reach any other.
        names = [name for name, (snapshot, _, _) in CANDIDATES.items() if snapshot == "fresh" and name != "captured"] * 2
        random.Random(7).shuffle(names)
        with self.server(None) as server:
            for name in names:
                _, code, sentence = CANDIDATES[name]
                with self.subTest(name):
                    answer = server.ask("validate", code_object=self.hsaco(name), timeout=1)
                    verdict = answer["verdict"]
                    self.assertEqual(answer["valid"], code == VALID, verdict)
                    self.assertEqual(verdict["outcome"] == "bad input", code == BAD_INPUT, verdict)
                    self.assertRegex(verdict["sentence"], sentence.replace("within 2 s", "within 1 s"))

    def test_sources_are_compiled_without_touching_the_project(self):
        before = {path: path.read_bytes() for path in (self.project / "src").rglob("*") if path.is_file()}
        with self.server() as server:
            hello = server.ask("hello")
            self.assertEqual((hello["protocol"], hello["source_file"], hello["can_compile"]),
                             ("kerncap.serve/1", "src/a/step.hip", True))
            self.assertTrue(server.ask("validate", source=self.source("same_work"))["valid"])
            answer = server.ask("validate", source=self.source("samples_only"))
            self.assertFalse(answer["valid"])
            self.assertIn("argument 1, element 3", answer["verdict"]["sentence"])
            refused = self.assert_refused(server, "compile_failed", "compile", source="this is no kernel")
            self.assertIn("error:", refused.messages)
            # Afterwards the project's own text is back.
            self.assertTrue(server.ask("validate", files={})["valid"])
            header = (HERE / "step.h").read_text().replace("float coefficients[4];", "float coefficients[4]; // other")
            self.assertTrue(server.ask("validate", files={"src/step.h": header})["valid"])
            saved = self.folder / "candidate.hip"
            saved.write_text(self.source("other_layout"))
            compiled = server.ask("compile", file=str(saved))
            self.assertTrue(server.ask("validate", candidate=compiled["candidate"])["valid"])
            for name in ("../step.h", "src/../CMakeLists.txt", "/etc/passwd", "CMakeLists.txt", "src/new.h"):
                self.assert_refused(server, "bad_input", "compile", files={name: "x"})
            self.assert_refused(server, "compile_timed_out", "compile", timeout=0.001, source=self.source("same_work") + "\n")
            self.assertTrue(server.ask("validate", captured=True)["valid"])
        self.assertEqual(before, {path: path.read_bytes() for path in (self.project / "src").rglob("*") if path.is_file()})
        self.assertFalse((self.project / "build").exists())

    def test_nonsense_gets_an_error_and_the_server_goes_on(self):
        with self.server() as server:
            self.assert_refused(server, "unknown_method", "explode")
            self.assert_refused(server, "bad_request", "validate")
            self.assert_refused(server, "bad_request", "validate", candidate="c1", source="x")
            self.assert_refused(server, "bad_request", "validate", code_object=self.hsaco("same_work"), time_out=3)
            self.assert_refused(server, "bad_request", "validate", code_object=self.hsaco("same_work"), timeout=-1)
            self.assert_refused(server, "bad_request", "validate", code_object=17)
            self.assert_refused(server, "no_such_candidate", "validate", candidate="c99")
            self.assert_refused(server, "bad_input", "validate", file="/nowhere.hip")
            self.assertEqual(server.ask("validate", code_object="/nowhere")["verdict"]["outcome"], "bad input")
            for line, code in (("{", "bad_request"), ("[1]", "bad_request"), ("\x00\xff", "bad_request"), ('{"id": [1]}', "bad_request"),
                               ("[" * 1000, "bad_request"), ('{"x": "' + "y" * (17 << 20) + '"}', "too_large")):
                server.process.stdin.write(line + "\n")
                server.process.stdin.flush()
                answer = json.loads(server.process.stdout.readline())
                self.assertEqual((answer["ok"], answer["error"]["code"]), (False, code), answer)
            self.assertTrue(server.ask("validate", code_object=self.hsaco("same_work"))["valid"])
            server.ask("shutdown")
            self.assertEqual(server.process.wait(timeout=20), 0)

    def test_bench_against_the_captured_kernel_and_another_candidate(self):
        with self.server() as server:
            verdict = server.ask("bench", code_object=self.hsaco("same_work"), vs="captured", iterations=20)["verdict"]
            self.assertIn(verdict["bench"]["comparison"]["answer"], ("faster", "slower", "same"), verdict["sentence"])
            verdict = server.ask("bench", code_object=self.hsaco("same_work"), vs=self.hsaco("same_work"), iterations=20)["verdict"]
            self.assertEqual(verdict["bench"]["comparison"]["answer"], "same", verdict["sentence"])
            verdict = server.ask("bench", code_object=self.hsaco("samples_only"), iterations=20)["verdict"]
            self.assertNotIn("bench", verdict)
            self.assertTrue(server.ask("validate", code_object=self.hsaco("same_work"))["valid"])

    def test_a_snapshot_alone_takes_code_objects_only(self):
        with self.server(self.project / "snapshot") as server:
            self.assertFalse(server.ask("hello")["can_compile"])
            self.assert_refused(server, "cannot_compile", "compile", source="x")
            self.assertTrue(server.ask("validate", code_object=self.hsaco("same_work"), fresh_process=True)["valid"])

    def test_the_example_client_ranks_candidates(self):
        folder = self.folder / "versions"
        folder.mkdir()
        for name in ("same_work", "samples_only"):
            (folder / f"{name}.hip").write_text(self.source(name))
        (folder / "broken.hip").write_text("int x = ;")
        result = subprocess.run([sys.executable, ROOT / "examples/serve-client/client.py", self.project, "--softgpu", "--kerncap",
                                 self.prefix / "bin/kerncap", *sorted(folder.iterdir())],
                                env=self.environment, capture_output=True, text=True, timeout=200)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"same_work\.hip +(faster|slower|same) ")
        self.assertRegex(result.stdout, r"samples_only\.hip +wrong .*element 3")
        self.assertRegex(result.stdout, r"broken\.hip +does not compile .*error")

    def page(self, code, *arguments):
        path = self.folder / "report.html"
        result = subprocess.run([self.prefix / "bin/kerncap", *map(str, arguments), "--softgpu=gfx90a", "--html", path],
                                env=self.environment, capture_output=True, text=True, timeout=200)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        text = path.read_text()
        tree = xml.etree.ElementTree.fromstring(text.split("\n", 1)[1])  # without the doctype
        names = {element.get("id"): element for element in tree.iter() if element.get("id")}
        self.assertEqual([e.tag for e in tree.iter() if e.tag.endswith(("script", "link", "img", "iframe"))], [])
        return path, names

    def test_the_report_is_a_whole_page(self):
        def cells(table):
            return ["".join(cell.itertext()) for cell in table.iter() if cell.tag.endswith("}td")]

        path, names = self.page(NO, "validate", self.project, "--code-object", self.hsaco("samples_only"))
        self.assertIn("argument 1, element 3", "".join(names["verdict"].itertext()))
        self.assertIn("argument 1", cells(names["differences"]))
        self.assertIn("5000", cells(names["arguments"]))
        path, names = self.page(VALID, "bench", self.project, "--code-object", self.hsaco("same_work"), "--vs", "captured", "-n", 20)
        circles = [e for e in names["timing"].iter() if e.tag.endswith("}circle")]
        self.assertEqual(len(circles), 40)
        for circle in circles:
            self.assertTrue(70 <= float(circle.get("cx")) <= 780 and 20 <= float(circle.get("cy")) <= 280, circle.attrib)
        browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if browser is None:
            self.skipTest("no Chromium here: the page was parsed, but not seen by a browser")
        shown = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder / 'browser'}",
                                "--enable-logging=stderr", "--dump-dom", f"file://{path}"], capture_output=True, text=True, timeout=120,
                               env=self.environment)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn('id="comparison"', shown.stdout)
        self.assertEqual(shown.stdout.count("<circle"), 40)
        self.assertNotIn("CONSOLE", shown.stderr)  # neither errors nor refused resources

    def watch(self, project, *options):
        self.lines = []
        process = subprocess.Popen([self.prefix / "bin/kerncap", "watch", project, "--softgpu=gfx90a", "--json", *options],
                                   env=self.environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close()))
        return process

    def copy_of_project(self):
        project = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "project"
        shutil.copytree(self.project, project)
        return project

    def event(self, process, kind):
        event = json.loads(process.stdout.readline())
        self.assertEqual(event["event"], kind, event)
        return event

    def test_watch_answers_every_save(self):
        project = self.copy_of_project()
        source = project / "src/a/step.hip"
        process = self.watch(project)
        self.assertEqual(self.event(process, "verdict")["verdict"]["outcome"], "matches")
        source.write_text(self.source("samples_only"))
        event = self.event(process, "verdict")
        self.assertEqual((event["verdict"]["outcome"], event["changed"]), ("differs", ["src/a/step.hip"]))
        source.write_text("int x = ;")
        self.assertIn("error:", self.event(process, "not compiled")["messages"])
        # As many editors save: another file, renamed over the old one.
        swap = source.with_name(".step.hip.swp")
        swap.write_text(self.source("one_ulp"))
        swap.rename(source)
        self.assertEqual(self.event(process, "verdict")["verdict"]["outcome"], "differs")
        (project / "kerncap.toml").write_text("[validate]\nulp = 1\n")
        if json.loads(process.stdout.readline())["event"] != "verdict":  # the file is new: the next save is noticed
            self.fail("a new kerncap.toml was not read")
        (project / "src/step.h").write_text((project / "src/step.h").read_text() + "// a comment\n")
        self.event(process, "same code")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20), VALID)

    def test_watch_ends_with_the_code_of_the_last_answer_also_while_a_kernel_hangs(self):
        project = self.copy_of_project()
        (project / "src/a/step.hip").write_text(self.source("samples_only"))
        process = self.watch(project)
        self.event(process, "verdict")
        (project / "src/a/step.hip").write_text(self.source("hangs"))
        time.sleep(4)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20), NO)
        self.assertLess(time.monotonic() - start, 5)

    def test_watch_refuses_a_snapshot(self):
        result = subprocess.run([self.prefix / "bin/kerncap", "watch", self.project / "snapshot", "--softgpu=gfx90a"],
                                env=self.environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 2)
        self.assertIn("needs a project with sources", result.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--candidates", type=pathlib.Path, required=True)
    parser.add_argument("--hipcc", required=True)
    options, rest = parser.parse_known_args()
    Session.prefix, Session.candidates, Session.hipcc = options.prefix.resolve(), options.candidates.resolve(), options.hipcc
    unittest.main(argv=[sys.argv[0], *rest])
