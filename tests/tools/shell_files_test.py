#!/usr/bin/env python3
"""Checks the man page and the completions against what the command itself says. Run by ctest.

  shell_files_test.py HEADRACE
"""
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HEADRACE = pathlib.Path(sys.argv[1]).resolve()
failures = 0


def expect(good, what):
    global failures
    if not good:
        failures += 1
        print(what, file=sys.stderr)


def run(*arguments, **options):
    return subprocess.run([str(one) for one in arguments], capture_output=True, text=True, **options)


def entries(path):
    """The commands and options that --help shows: names at the start of its lines."""
    text = run(HEADRACE, *path, "--help").stdout
    below = text.partition("Commands:\n")[2]
    commands = re.findall(r"^  ([a-z]+)\b", below, re.M)
    options = re.findall(r"^  (?:-h, )?(--[a-z][-a-z0-9]*)", text, re.M)
    return commands, options


def all_commands(path=()):
    commands, options = entries(path)
    yield path, commands, options
    for command in commands:
        yield from all_commands((*path, command))


def check_man(page, tree):
    for path, commands, options in tree:
        if path and not commands:
            start = page.find(f'.SS "headrace {" ".join(path)}"')
            expect(start >= 0, f"the man page has no section of headrace {' '.join(path)}")
            section = page[start + 1:]
            section = section[:re.search(r"^\.S[SH] ", section[1:] + "\n.SH END", re.M).start()]
            for option in options:
                escaped = option.replace("-", "\\-")
                expect(re.search(re.escape(escaped) + r"\\fR|, " + re.escape(escaped), section), f"the man page lacks {option} of {path}")
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "headrace.1")
        file.write_text(page)
        if shutil.which("man"):
            shown = run("man", "--warnings", "-l", file, env={"MANWIDTH": "100", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANPAGER": "cat"})
            expect(shown.returncode == 0 and not shown.stderr, f"man --warnings: {shown.stderr}")
            expect("--global-batch N" in shown.stdout, "man does not show --global-batch N")
        if shutil.which("mandoc"):
            lint = run("mandoc", "-T", "lint", "-W", "warning", file)
            found = [line for line in (lint.stdout + lint.stderr).splitlines() if "missing date" not in line]  # builds are alike
            expect(not found, f"mandoc: {found}")


def bash_answers(script, words, folder):
    """What Tab offers behind these words, the last of which is begun."""
    quoted = " ".join(f"'{word}'" for word in words)
    done = run("bash", "-c", f'. {script}; COMP_WORDS=(headrace {quoted}); COMP_CWORD={len(words)}; _headrace; printf "%s\\n" "${{COMPREPLY[@]}}"', cwd=folder)
    expect(not done.stderr, f"bash: {done.stderr}")
    return set(done.stdout.split())


def check_bash(script, tree):
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        (here / "photos").mkdir()
        (here / "plan.json").write_text("{}")
        for path, commands, options in tree:
            offered = bash_answers(script, [*path, "-"], here)
            expect(set(options) == offered, f"bash offers {sorted(offered ^ set(options))} more or less behind {path}")
            if commands:
                expect(set(commands) <= bash_answers(script, [*path, ""], here), f"bash lacks commands behind {path}")
        cases = [(["tr"], {"train"}), (["bench", "i"], {"input"}),
                 (["digest", "--pipeline", "mnist"], {"mnist-train"}),
                 (["train", "--recipe", "mnist-mlp", "--verb"], {"--verbose"}),
                 (["train", "--data", "ph"], {"photos"}),
                 (["train", "--data", "train", "--checkpoint-dir", ""], {"photos"}),
                 (["digest", "--plan", "pl"], {"plan.json"}),
                 (["digest", "--seed", ""], set()),
                 (["digest", "--cache", ""], {"memory", "photos"}),
                 (["cache", "verify", "ph"], {"photos"}),
                 (["report", ""], {"photos"}),
                 (["nonsense", "--"], {"--help", "--version"})]
        for words, wanted in cases:
            offered = bash_answers(script, words, here)
            expect(offered == wanted, f"bash offers {offered} behind {words}, not {wanted}")


class Zsh:
    """An interactive zsh that has loaded the completion."""

    def __init__(self, script):
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "dumb"
            os.execlp("zsh", "zsh", "-f", "-i")
        self.pid = pid
        self.write(f"fpath=({script.parent} $fpath); autoload -U compinit; compinit -u -D\r")
        self.write("show() { print -r -- \"AT:$BUFFER:\"END; BUFFER=; }; zle -N show; bindkey '^P' show; PS1=rea'dy> '\r")
        self.read_to("ready> ")

    def write(self, text):
        os.write(self.terminal, text.encode())

    def read_to(self, end, seconds=30):
        text, until = "", time.monotonic() + seconds
        while not re.search(end, text) and time.monotonic() < until:
            if select.select([self.terminal], [], [], 0.1)[0]:
                text += os.read(self.terminal, 4096).decode(errors="replace")
        return text

    def line_after_tab(self, typed):
        self.write(typed + "\t\x10")
        found = re.search(r"AT:(.*?):END", self.read_to(":END"), re.DOTALL)
        return found[1] if found else ""

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


def check_zsh(script):
    zsh = Zsh(script)
    for typed, wanted in (("headrace tra", "headrace train"), ("headrace train --verb", "--verbose"),
                          ("headrace digest --pipeline triv", "--pipeline trivial"), ("headrace cache ver", "cache verify"),
                          ("headrace bench input --warm", "--warm-up")):
        answer = zsh.line_after_tab(typed)
        expect(wanted in answer, f"zsh completes '{typed}' to '{answer}', not to {wanted}")
    zsh.close()


def check_others(zsh, fish, tree):
    for path, commands, options in tree:
        for option in options:
            expect(f"'{option}[" in zsh.read_text(), f"zsh lacks {option} of {path}")
            expect(f" -l {option[2:]} " in fish.read_text(), f"fish lacks {option} of {path}")
    if shutil.which("zsh"):
        expect(not run("zsh", "-n", zsh).stderr, f"zsh: {run('zsh', '-n', zsh).stderr}")
        check_zsh(zsh)
    if shutil.which("fish"):
        checked = run("fish", "-n", fish)
        expect(not checked.stderr, f"fish: {checked.stderr}")
        offered = run("fish", "-c", f"source {fish}; complete -C 'headrace train --verb'; complete -C 'headrace bench in'; complete -C 'headrace digest --pipeline tri'").stdout
        for word in ("--verbose", "input", "trivial"):
            expect(word in offered, f"fish does not offer {word}: {offered}")


def main():
    tree = list(all_commands())
    expect(len(tree) > 12, "the help was not understood")
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for reader in ("man", "bash", "zsh", "fish"):
            files[reader] = pathlib.Path(folder, "_headrace" if reader == "zsh" else reader)  # zsh goes by the name
            files[reader].write_text(run(HEADRACE, "shell", "--for", reader).stdout)
        check_man(files["man"].read_text(), tree)
        check_bash(files["bash"], tree)
        check_others(files["zsh"], files["fish"], tree)
    expect("shell" not in run(HEADRACE, "--help").stdout, "the help shows the hidden command")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
