"""What tools/quickstart does with its arguments: in a clone whose dependencies, CMake and command are stand-ins that
write down how they were called."""
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest
import zipfile
import zlib

TOOLS = pathlib.Path(__file__).parents[2] / "tools"
COMMAND = os.environ.get("HEADRACE_COMMAND")  # that of the build
FASHION = "/usr/share/datasets/fashion-mnist"
STAND_IN = '#!/bin/sh\nprintf "%s" "$PWD: {name}" >>"{log}"\nprintf " <%s>" "$@" >>"{log}"\necho >>"{log}"\n{more}\n'


def png(side):
    """An image of three channels."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    pixels = zlib.compress((b"\0" + bytes(3 * side)) * side)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def write_images(folder, side, classes=2, ending=".png"):
    """Two images a class and split."""
    for split in ("train", "test"):
        for number in range(classes):
            of_class = folder / split / f"class{number}"
            of_class.mkdir(parents=True)
            for image in range(2):
                (of_class / f"{image}{ending}").write_bytes(png(side))
    return folder


def write_digits(folder, side, train=20):
    folder.mkdir()
    for split, count in (("train", train), ("t10k", 20)):
        images = struct.pack(">HBBIII", 0, 8, 3, count, side, side) + bytes(count * side * side)
        (folder / f"{split}-images-idx3-ubyte").write_bytes(images)
        labels = struct.pack(">HBBI", 0, 8, 1, count) + bytes(n % 10 for n in range(count))
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(labels)
    return folder


def zipped(folder):
    archive = folder.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w") as to:
        for file in sorted(folder.rglob("*.*")):
            to.write(file, file.relative_to(folder))
    return archive


def packed(folder, ending, *pack):
    archive = folder.with_suffix(ending)
    subprocess.run([*pack, archive, "-C", folder, "."], check=True)
    return archive


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
        for script in ("quickstart", "quickstart_data"):
            shutil.copy(TOOLS / script, self.root / "tools")
        shutil.copytree(TOOLS / "recipes", self.root / "tools" / "recipes")

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

    def test_data_that_do_not_fit_the_recipe_are_refused_before_the_build(self):
        photographs = write_images(self.elsewhere / "photographs", 40)
        cnn = ["--recipe", "cifar10-cnn"]
        self.assertRegex(self.refused("--data", "photographs", *cnn, status=2),
                         "recipe cifar10-cnn does not fit photographs, which has images of 40 x 40, JPEG or PNG\n.*32 x 32 x 3")
        self.refused("--data", zipped(photographs), *cnn, status=2)
        self.refused("--data", packed(photographs, ".tar", "tar", "-cf"), *cnn, status=2)
        self.refused(f"--data={packed(photographs, '.tar.zst', 'tar', '--zstd', '-cf')}", *cnn, status=2)
        write_digits(self.elsewhere / "digits", 20)
        self.assertIn("which has images of 20 x 20\n", self.refused("--data", "digits", *cnn, status=2))
        write_images(self.elsewhere / "hundred", 32, classes=11)
        self.assertIn("32 x 32 in 11 classes", self.refused("--data", "hundred", *cnn, status=2))
        write_images(self.elsewhere / "other", 32, ending=".webp")
        self.assertIn("other holds .webp files alone", self.refused("--data", "other", status=1))
        (self.elsewhere / "list.csv").write_text("path,label\nphotographs/train/class0/0.png,0\n")
        self.assertIn("list.csv: one file has no two splits", self.refused("--data", "list.csv", *cnn, status=2))

    def test_a_recipe_that_does_not_fit_is_refused_before_the_build(self):
        write_digits(self.elsewhere / "digits", 28)
        self.assertIn("recipe cifar10-cnn does not fit digits", self.refused("--data", "digits", "--recipe", "cifar10-cnn", status=2))
        self.assertIn("--recipe cnn is unknown", self.refused("--recipe=cnn", status=2))
        self.assertEqual(self.trained("--data", "digits", "--recipe", "fashion-mnist")[0][:2], ["--data", "digits"])

    def test_data_that_fit_are_built_for(self):
        images, photographs = write_images(self.elsewhere / "images", 32), write_images(self.elsewhere / "photographs", 40, 11)
        for data in (images, zipped(images), packed(images, ".tar.zst", "tar", "--zstd", "-cf"), photographs):
            self.log.unlink(missing_ok=True)
            self.trained("--data", str(data))
        write_images(self.elsewhere / "many", 32, classes=11)
        self.log.unlink()
        self.trained("--data", "many", "--classes-at", "1")  # how many classes that makes is for the command to say

    def test_what_cannot_be_judged_is_left_to_the_command(self):
        for name, content in (("x.npz", b"PK\5\6" + bytes(18)), ("x.records", b"x"), ("x.tar", b"x" * 600)):
            (self.elsewhere / name).write_bytes(content)
            self.log.unlink(missing_ok=True)
            self.trained("--data", name)

    @unittest.skipUnless(COMMAND, "HEADRACE_COMMAND names no command")
    def test_it_refuses_what_the_command_refuses(self):
        data = [write_images(self.elsewhere / f"images{side}", side) for side in (28, 32, 40)]
        data += [write_digits(self.elsewhere / "digits20", 20, 40), write_digits(self.elsewhere / "digits28", 28, 5040)]
        data += [write_images(self.elsewhere / "many", 32, classes=11), zipped(data[1]), zipped(data[2])]
        rows = [f"{image},{image.parent.name}" for image in sorted(data[1].rglob("*.png"))]
        (self.elsewhere / "list.csv").write_text("\n".join(["path,label", *rows, ""]))
        for path in [*data, self.elsewhere / "list.csv"]:
            of_command = subprocess.run([COMMAND, "train", "--data", path, "--epochs", "1", "--verbose", "0", "--devices", "cpu",
                                         "--global-batch", "4"], capture_output=True, text=True, timeout=60)
            self.log.unlink(missing_ok=True)
            here = self.quickstart("--data", path)
            self.assertEqual(here.returncode, of_command.returncode, f"{path}: {here.stderr}{of_command.stderr}")
            self.assertEqual(self.log.exists(), of_command.returncode == 0)

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
