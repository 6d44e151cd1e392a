"""What tools/quickstart does with its arguments: in a clone whose dependencies, CMake and command are stand-ins that
write down how they were called."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "tools" / "quickstart"
FASHION = "/usr/share/datasets/fashion-mnist"
STAND_IN = '#!/bin/sh\nprintf "%s" "$PWD: {name}" >>"{log}"\nprintf " <%s>" "$@" >>"{log}"\necho >>"{log}"\n{more}\n'


class Quickstart(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve() / "a clone"
        self.elsewhere = self.root.parent / "else where"
        self.elsewhere.mkdir()
        self.log = self.root.parent / "calls"
        self.stand_in("cmake")
        self.stand_in("build/release/headrace", 'echo "$2/report.html"')
        self.stand_in("tools/install_dependencies", f'echo installing; echo "{self.root}/cmake"')
        shutil.copy(SCRIPT, self.root / "tools")

    def stand_in(self, path, more=""):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(STAND_IN.format(name=file.name, log=self.log, more=more))
        file.chmod(0o755)

    def quickstart(self, *arguments, at=None):
        return subprocess.run([self.root / "tools" / "quickstart", *arguments], cwd=at or self.elsewhere,
                              capture_output=True, text=True, timeout=60)

    def trained(self, *arguments, at=None):
        """What `headrace train` was called with, and the folder that `headrace report` was called with."""
        done = self.quickstart(*arguments, at=at)
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = [line for line in self.log.read_text().splitlines() if ": headrace " in line]
        self.assertEqual(len(calls), 2, calls)
        start = f"{at or self.elsewhere}: headrace <"
        self.assertTrue(all(call.startswith(start) for call in calls), calls)
        train, report = (call[len(start):-1].split("> <") for call in calls)
        self.assertEqual((train[0], report[0], len(report)), ("train", "report", 2))
        return train[1:], report[1], done.stdout

    def refused(self, *arguments, status):
        done = self.quickstart(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertFalse(self.log.exists(), "nothing is installed or built before")
        self.assertRegex(done.stderr, "^quickstart: .*\n  hint: .*\n$")
        return done.stderr

    def test_without_arguments_it_trains_on_fashion_mnist(self):
        run = f"{self.root}/build/quickstart-run"
        train, report, output = self.trained()
        self.assertEqual((train, report), (["--data", FASHION, "--run-dir", run], run))
        self.assertIn(f"report:  {run}/report.html (", output)

    def test_in_the_clone_paths_are_short(self):
        train, report, output = self.trained(at=self.root)
        self.assertEqual((train[2:], report), (["--run-dir", "build/quickstart-run"], "build/quickstart-run"))
        self.assertIn("next:    build/release/headrace --help;", output)

    def test_options_pass_through_and_none_is_given_twice(self):
        (self.elsewhere / "my data").mkdir()
        (self.elsewhere / "my data" / "0.jpg").write_text("x")
        given = ["--data", "my data", "--recipe", "mnist-mlp", "--run-dir=my run", "--epochs", "1", "--resume"]
        train, report, _ = self.trained(*given)
        self.assertEqual((train, report), (given, "my run"))

    def test_the_recipe_is_not_its_business(self):
        (self.elsewhere / "cifar.tar").write_text("x")
        train, _, _ = self.trained("--data=cifar.tar")
        self.assertEqual(train[0], "--data=cifar.tar")
        self.assertNotIn("--recipe", train)

    def test_the_build_is_that_of_the_clone(self):
        self.trained()
        builds = [line for line in self.log.read_text().splitlines() if ": cmake " in line]
        self.assertEqual(builds, [f"{self.root}: cmake <--preset> <release>",
                                  f"{self.root}: cmake <--build> <--preset> <release> <--target> <product>"])

    def test_what_is_missing_is_said_before_the_build(self):
        self.assertIn("there is no not/there\n", self.refused("--data", "not/there", status=1))
        self.assertIn("there is no nowhere\n", self.refused("--epochs", "1", "--data=nowhere", status=1))
        self.assertIn("--data needs a value\n", self.refused("--data", status=2))
        (self.elsewhere / "empty").mkdir()
        self.assertIn("empty is an empty folder\n", self.refused("--data", "empty", status=1))
        (self.elsewhere / "nothing.tar").touch()
        self.assertIn("nothing.tar is an empty file\n", self.refused("--data", "nothing.tar", status=1))
        secret = self.elsewhere / "secret.tar"
        secret.write_text("x")
        secret.chmod(0)
        if not os.access(secret, os.R_OK):  # root reads everything
            self.assertIn("secret.tar cannot be read\n", self.refused("--data", "secret.tar", status=1))

    def test_a_value_is_no_option(self):
        self.assertIn("there is no --help\n", self.refused("--data", "--help", status=1))

    def test_help_builds_nothing(self):
        done = self.quickstart("--help")
        self.assertEqual((done.returncode, self.log.exists()), (0, False))
        self.assertIn("tools/quickstart [--data PATH]", done.stdout)

    def test_a_failed_build_or_training_ends_it(self):
        self.stand_in("build/release/headrace", "exit 1")
        self.assertEqual(self.quickstart().returncode, 1)
        self.assertEqual(self.log.read_text().count(": headrace "), 1)
        self.stand_in("cmake", "echo broken; exit 7")
        done = self.quickstart()
        self.assertEqual(done.returncode, 1)
        self.assertIn("broken\nquickstart: the build failed", done.stderr)


if __name__ == "__main__":
    unittest.main()
