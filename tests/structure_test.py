#!/usr/bin/env python3
"""The rules of ARCHITECTURE.md that a script can check: who includes whom, and that no command goes to a shell."""

import pathlib
import re
import subprocess
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[1]

# Folder -> folders of this tree that its sources may include, beside itself. ARCHITECTURE.md has the same table in words.
CORE = ["core/support", "core/codeobject", "core/compdb", "core/snapshot"]
MAY_INCLUDE = {
    "core/support": [],
    "core/codeobject": ["core/support"],
    "core/compdb": ["core/support", "core/codeobject"],
    "core/snapshot": ["core/support", "core/codeobject"],
    "wrapper": ["core/support", "core/compdb"],
    "capture": CORE,
    "emit": CORE,
    "replay": ["core/support", "core/codeobject", "core/snapshot"],
    "softgpu": ["core/support"],
    "cli": [*CORE, "wrapper", "capture", "emit", "replay", "softgpu"],
}
# Tests that stand beside their sources may make their inputs with another part.
TEST_FOLDERS = ("testing", "tests", "e2e")
SHELL_CALLS = re.compile(r"(?<![\w.:>])(?:std::|::)?(?:system|popen|wordexp)\s*\(")


def sources():
    listed = subprocess.run(["git", "ls-files", "*.cpp", "*.h"], cwd=SOURCE, capture_output=True, text=True)
    files = listed.stdout.split() if listed.returncode == 0 else [
        str(path.relative_to(SOURCE)) for folder in MAY_INCLUDE for path in (SOURCE / folder).rglob("*") if path.suffix in (".cpp", ".h")]
    for name in files:
        folder = next((f for f in MAY_INCLUDE if name.startswith(f + "/")), None)
        if folder and (SOURCE / name).exists():
            yield name, folder, (SOURCE / name).read_text(errors="replace")


class StructureTest(unittest.TestCase):
    def test_every_part_includes_only_what_the_architecture_lets_it(self):
        wrong, seen = [], 0
        for name, folder, text in sources():
            is_test = name.endswith("_test.cpp") or any(part in TEST_FOLDERS for part in pathlib.Path(name).parts[1:-1])
            for include in re.findall(r'^\s*#\s*include\s+"([^"]+/[^"]+)"', text, re.MULTILINE):
                target = next((f for f in MAY_INCLUDE if include.startswith(f + "/")), None)
                if target is None:
                    continue
                seen += 1
                allowed = [folder, *MAY_INCLUDE[folder]]
                if target not in allowed and not is_test:
                    wrong.append(f"{name} includes {include}")
        self.assertGreater(seen, 500, "the includes were not found; has their style changed?")
        self.assertEqual(wrong, [])

    def test_the_wrapper_and_the_replayer_stay_free_of_llvm(self):
        for name, folder, text in sources():
            if folder in ("wrapper", "replay", "core/snapshot", "core/support"):
                self.assertNotRegex(text, r'#\s*include\s+[<"](llvm|clang)/', name)

    def test_no_command_is_given_to_a_shell(self):
        calls = [f"{name}: {match.group(0)}" for name, folder, text in sources() if not name.endswith("_test.cpp")
                 for match in SHELL_CALLS.finditer(re.sub(r"//.*", "", text))]
        self.assertEqual(calls, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
