#!/usr/bin/env python3
"""The command line as people and scripts meet it: help, exit codes, JSON, completion, streams."""

import json
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import kerncap_tests
from kerncap_tests import DONE, ENVIRONMENT, NO, USAGE, gpu_options

COMMANDS = ("doctor", "build", "db", "profile", "capture", "inspect", "emit", "extract", "pack", "unpack", "replay", "validate", "bench",
            "softgpu", "completion", "manual", "watch", "serve")


class CommandLineTest(kerncap_tests.KerncapTestCase):
    def test_every_command_explains_itself(self):
        overview = self.kerncap("--help")
        self.assertEqual(overview.code, DONE)
        self.assertIn("Exit codes:", overview.out)
        for command in COMMANDS:
            with self.subTest(command):
                self.assertIn(f"  {command} ", overview.out)
                result = self.kerncap(command, "--help")
                self.assertEqual(result.code, DONE, str(result))
                self.assertIn("Examples:", result.out)
                self.assertEqual(result.err, "")

    def test_wrong_usage_is_one_sentence_that_names_the_command(self):
        self.assert_one_sentence(self.kerncap(), USAGE)
        self.assert_one_sentence(self.kerncap("capture"), USAGE, "kerncap capture --help")
        self.assert_one_sentence(self.kerncap("inspect", "--no-such-flag", "x"), USAGE, "--no-such-flag")
        self.assert_one_sentence(self.kerncap("capture", "-k", "re:(", "-o", self.scratch / "x", "--", "true"), USAGE)

    def test_doctor_names_every_part_and_agrees_with_its_exit_code(self):
        result = self.kerncap("doctor", "--json")
        findings = {finding["subject"]: finding for finding in result.json()["findings"]}
        for part in ("wrapper", "masquerade", "capture", "replayer", "templates", "software GPU", "HSA runtime"):
            self.assertEqual(findings[part]["state"], "ok", str(result))
        missing = any(finding["state"] == "missing" for finding in findings.values())
        self.assertEqual(result.code, ENVIRONMENT if missing else DONE)
        self.assertEqual(result.json()["works"], not missing)

    def test_output_that_cannot_be_written_is_never_success(self):
        for arguments in (["--help"], ["--version"], ["emit", "--help"], ["doctor"], ["doctor", "--json"], ["completion", "bash"], ["manual"]):
            with self.subTest(arguments):
                with open("/dev/full", "w") as full:
                    result = subprocess.run([self.prefix.kerncap, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(result.returncode, ENVIRONMENT, result.stderr)
                self.assertEqual(result.stderr.count("error"), 1, result.stderr)

    def test_completion_scripts_are_accepted_by_their_shells_and_know_every_command(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.kerncap("completion", shell)
            self.assertEqual(script.code, DONE, str(script))
            for command in COMMANDS:
                self.assertIn(command, script.out, shell)
            if shutil.which(shell):
                check = subprocess.run([shell, "-n"], input=script.out, text=True, capture_output=True)
                self.assertEqual((check.returncode, check.stderr), (0, ""), shell)

    def test_bash_completes_commands_and_flags(self):
        script = self.scratch / "completion.bash"
        script.write_text(self.kerncap("completion", "bash").out)

        def complete(*words):
            probe = ('source "$1"; shift; compopt() { :; }; COMP_WORDS=(kerncap "$@"); COMP_CWORD=$#; _kerncap; '
                     'printf "%s\\n" "${COMPREPLY[@]}"')
            return subprocess.run(["bash", "-c", probe, "probe", script, *words], text=True, capture_output=True).stdout.split()

        self.assertIn("capture", complete("ca"))
        self.assertIn("--dispatch", complete("capture", "--di"))
        self.assertIn("stats", complete("db", "st"))
        self.assertEqual(complete("capture", "--", "--di"), [])

    def test_manual_pages_are_clean_and_teach_what_help_does(self):
        folder = self.scratch / "man1"
        self.assertEqual(self.kerncap("manual", "--folder", folder).code, DONE)
        self.assertEqual({page.name for page in folder.iterdir()}, {"kerncap.1", *(f"kerncap-{name}.1" for name in COMMANDS)})
        for command in COMMANDS:
            page = folder / f"kerncap-{command}.1"
            self.assertEqual(self.kerncap("manual", command).out, page.read_text())
            if shutil.which("groff"):
                text = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-cbou", page], text=True, capture_output=True)
                self.assertEqual((text.returncode, text.stderr), (0, ""), command)
                flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", self.kerncap(command, "--help").out.split("Examples:")[0]))
                # groff may hyphenate in running text, never in a flag of the list of options.
                for flag in flags - {"--help", "--help-all"}:
                    self.assertIn(flag, text.stdout.replace("\u2010\n", ""), command)
        self.assert_one_sentence(self.kerncap("manual", "nothing"), USAGE, "nothing")

    def test_exit_code_and_output_of_a_program_on_the_software_gpu_are_its_own(self):
        result = self.kerncap("softgpu", "--", "sh", "-c", "echo out; echo err >&2; exit 42")
        self.assertEqual((result.code, result.out, result.err), (42, "out\n", "err\n"))

    def test_a_program_without_gpu_is_said_to_be_one(self):
        self.assert_one_sentence(self.kerncap("profile", *gpu_options(), "--", "true"), ENVIRONMENT, "no HSA runtime")
        self.assert_one_sentence(
            self.kerncap("capture", *gpu_options(), "-k", "k", "-o", self.scratch / "none", "--", "true"), ENVIRONMENT)
        self.assertFalse((self.scratch / "none").exists())

    def test_an_unknown_architecture_lists_the_known_ones(self):
        self.assert_one_sentence(self.kerncap("softgpu", "--arch", "gfx1", "--", "true"), USAGE, "gfx1", "gfx90a")

    def test_a_build_that_records_nothing_says_what_to_do(self):
        result = self.kerncap("build", "--db", self.scratch / "empty-db", "--", "true")
        self.assert_one_sentence(result, NO, "nothing was recorded")

    def test_a_tree_configured_without_the_wrapper_is_imported_and_told_how_to_be_recorded(self):
        source, tree = self.scratch / "past us", self.scratch / "past us" / "tree"
        source.mkdir()
        (source / "a.c").write_text("int a;\n")
        (source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(p C)\nadd_library(l STATIC a.c)\n")
        subprocess.run(["cmake", "-S", source, "-B", tree, "-G", "Ninja"], check=True, capture_output=True)
        result = self.kerncap("build", "--json", "--", "cmake", "--build", tree)
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(json.loads(result.out)["imported"], 1)
        self.assertIn("do not go through kerncap-cc", result.err)
        command = result.err.split("To record the build itself: ")[1].strip()
        subprocess.run(["sh", "-ec", command], check=True, capture_output=True)
        shown = self.kerncap("db", "show", source / "a.c", "--db", tree / ".kerncap")
        self.assertIn("recorded", shown.out)

    def test_a_failing_build_keeps_its_exit_code(self):
        result = self.kerncap("build", "--db", self.scratch / "failing-db", "--", "sh", "-c", "exit 9")
        self.assertEqual(result.code, 9, str(result))

    def test_json_stands_alone_on_standard_output(self):
        result = self.kerncap("build", "--json", "--db", self.scratch / "json-db", "--", "sh", "-c", "echo noise")
        self.assertEqual(json.loads(result.out)["recorded"], False)
        self.assertIn("noise", result.err)


if __name__ == "__main__":
    kerncap_tests.main(CommandLineTest)
