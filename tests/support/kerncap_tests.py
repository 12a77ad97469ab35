"""What the end-to-end tests share: running programs with a time limit, scratch folders, the paths of a build tree."""

import argparse
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = SOURCE / "examples"

# Kerncap's documented exit codes.
DONE, NO, USAGE, ENVIRONMENT, BAD_INPUT, APPLICATION = range(6)


class Result:
    """What a finished program left: exit code (negative: killed by that signal), standard output and error."""

    def __init__(self, command, code, out, err):
        self.command, self.code, self.out, self.err = command, code, out, err

    def json(self):
        return json.loads(self.out)

    def __str__(self):
        command = " ".join(shlex.quote(str(word)) for word in self.command)
        return f"$ {command}\nexit code {self.code}\n--- standard output\n{self.out}\n--- standard error\n{self.err}"


class Prefix:
    """A build tree or an installed prefix of Kerncap; both are laid out alike."""

    def __init__(self, path):
        self.path = pathlib.Path(path).resolve()
        self.kerncap = self.path / "bin" / "kerncap"


def gpu_options():
    """The flags that make a command use the software GPU where there is no AMD GPU."""
    return [] if os.access("/dev/kfd", os.R_OK | os.W_OK) else ["--softgpu=gfx90a"]


def clean_environment():
    """The environment without what would change how compilers, CMake or Kerncap work."""
    dropped = ("KERNCAP_", "CMAKE_", "CC_PRINT_", "HSA_", "HIP_", "HIPCC_", "ROCR_", "LD_PRELOAD")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    for name in ("CC", "CXX", "HIPCXX", "MAKEFLAGS", "CFLAGS", "CXXFLAGS", "HIPFLAGS"):
        environment.pop(name, None)
    return environment


def run(command, cwd=None, env=None, timeout=300, stdin=subprocess.DEVNULL):
    """Runs a program in a process group of its own, which is killed when the time is up."""
    command = [str(word) for word in command]
    environment = clean_environment()
    environment.update({k: str(v) for k, v in (env or {}).items()})
    process = subprocess.Popen(command, cwd=cwd, env=environment, stdin=stdin, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"still running after {timeout} s\n{Result(command, 'none', out, err)}")
    return Result(command, process.returncode, out, err)


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


class KerncapTestCase(unittest.TestCase):
    """Test cases with a scratch folder for the whole class and Kerncap's prefix from the command line."""

    prefix = None
    keep_scratch = False

    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="kerncap-test-"))
        if not cls.keep_scratch:
            cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)

    @classmethod
    def must(cls, command, **options):
        """Runs a program that has to succeed."""
        result = run(command, **options)
        if result.code != 0:
            raise AssertionError(str(result))
        return result

    @classmethod
    def kerncap(cls, *arguments, **options):
        return run([cls.prefix.kerncap, *arguments], **options)

    def assert_one_sentence(self, result, code, *parts):
        """The documented exit code, and exactly one line on standard error that says what is wrong, with `parts` in it."""
        self.assertEqual(result.code, code, str(result))
        errors = [line for line in result.err.splitlines() if line.startswith("kerncap: error: ")]
        self.assertEqual(len(errors), 1, f"one error line was expected\n{result}")
        for part in parts:
            self.assertIn(str(part), errors[0], str(result))


def main(test_class, *extra_arguments):
    """Runs one test class; --prefix names Kerncap's build tree or prefix. extra_arguments: (flag, keywords of argparse)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefix", required=True, help="Kerncap's build tree or installed prefix")
    parser.add_argument("--keep", action="store_true", help="keep the scratch folder and print its name")
    for flag, keywords in extra_arguments:
        parser.add_argument(flag, **keywords)
    parser.add_argument("tests", nargs="*", help="names of single tests")
    options = parser.parse_args()
    test_class.prefix = Prefix(options.prefix)
    test_class.keep_scratch = options.keep
    test_class.options = options

    loader = unittest.defaultTestLoader
    if options.tests:
        suite = unittest.TestSuite(test_class(name) for name in options.tests)
    else:
        suite = loader.loadTestsFromTestCase(test_class)
    outcome = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite)
    if options.keep:
        print(f"scratch folder: {test_class.scratch}")
    sys.exit(0 if outcome.wasSuccessful() else 1)
