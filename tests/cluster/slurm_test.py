"""Workers that Slurm starts: a real slurmctld and a slurmd on each of two hosts.

# apt: slurm-wlm slurmctld slurmd iproute2 util-linux
"""
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

from hosts import Hosts, why_no_hosts
from workers import (Scratch, checkpoints_in, plain_environment, processes_of, run, training, wait_until, weights_alone,
                     weights_in, write_digits)

CONFIGURATION = """ClusterName=headrace
SlurmctldHost={names[0]}({addresses[0]})
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
SwitchType=switch/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ReturnToService=2
SchedulerParameters=sched_min_interval=100000
NodeName={names[0]} NodeAddr={addresses[0]} CPUs=4 State=UNKNOWN
NodeName={names[1]} NodeAddr={addresses[1]} CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""
JOB = """#!/bin/sh
for attempt in 1 2 3; do
  echo "attempt $attempt"
  srun "$@" && exit 0
done
exit 1
"""


def why_no_slurm():
    for program in ("slurmctld", "slurmd", "srun", "sbatch"):
        if not shutil.which(program):
            return f"no {program} (Debian: slurm-wlm)"
    return why_no_hosts()


class Slurm:
    """The daemons, in the foreground, and commands on the first host. A block that ends them."""

    def __init__(self, hosts, folder):
        self.hosts, self.folder, self.daemons = hosts, folder, []
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}
        (folder / "state").mkdir()
        for name in hosts.names:
            (folder / f"spool-{name}").mkdir()
        (folder / "slurm.conf").write_text(
            CONFIGURATION.format(names=hosts.names, addresses=hosts.addresses, folder=folder))

    def __enter__(self):
        self.start(0, "slurmctld", "-D", "-c")
        for host in range(len(self.hosts.names)):
            self.start(host, "slurmd", "-D")
        if not wait_until(lambda: self.run("sinfo", "--noheader", "-o", "%t %D").stdout == "idle 2\n", 30, pause=0.2):
            self.__exit__()
            raise AssertionError(f"Slurm does not start: {self.logs()}")
        return self

    def start(self, host, *words):
        self.daemons.append(subprocess.Popen(self.hosts.words_on(host, words), env=plain_environment() | self.environment,
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def __exit__(self, *_):
        self.run("scancel", "--full", "--state=RUNNING")
        for daemon in self.daemons:
            daemon.send_signal(signal.SIGTERM)
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()

    def run(self, *words, **options):
        return run(self.hosts.words_on(0, [str(word) for word in words]), self.environment, **options)

    def logs(self):
        return "".join(f"--- {log.name}\n{log.read_text()[-2000:]}" for log in self.folder.glob("*.log"))


@unittest.skipIf(why_no_slurm(), why_no_slurm())
class UnderSlurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch()
        cls.addClassCleanup(cls.scratch.remove)
        cls.data = write_digits(cls.scratch / "digits", 600)
        hosts = Hosts(2).__enter__()
        cls.addClassCleanup(hosts.__exit__)
        cls.slurm = Slurm(hosts, cls.scratch.fresh("slurm")).__enter__()
        cls.addClassCleanup(cls.slurm.__exit__)

    def expect_weights_of_one_process(self, *where, workers=2):
        words = training(self.data)
        done = self.slurm.run("srun", "-n", workers, *where, *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.slurm.logs())
        self.assertEqual(weights_in(done.stdout), weights_alone(words, workers))

    def test_two_tasks_on_two_hosts(self):
        self.expect_weights_of_one_process("-N", 2)

    def test_two_tasks_on_one_host(self):
        self.expect_weights_of_one_process("-N", 1, "--overcommit")

    def test_four_tasks_on_two_hosts(self):
        self.expect_weights_of_one_process("-N", 2, "--overcommit", workers=4)

    def test_the_doctor_names_both_hosts(self):
        done = self.slurm.run("srun", "-n", 2, "-N", 2, training(self.data)[0], "doctor", "--cluster")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name in self.slurm.hosts.names:
            self.assertIn(name, done.stdout)

    def test_a_job_whose_script_starts_srun_again_survives_the_loss_of_a_worker(self):
        folder = self.scratch.fresh("job")
        checkpoints = folder / "checkpoints"
        (folder / "job").write_text(JOB)
        words = training(self.data, epochs=8)
        saved = [*words, "--checkpoint-dir", checkpoints, "--checkpoint-every", "10", "--resume"]
        queued = self.slurm.run("sbatch", "--requeue", "-N", 2, "-n", 2, "-o", folder / "output", folder / "job", *saved)
        self.assertEqual(queued.returncode, 0, queued.stderr)
        self.assertTrue(wait_until(lambda: checkpoints_in(checkpoints)), self.slurm.logs())
        os.kill(processes_of(checkpoints, "SLURM_PROCID")[1], signal.SIGKILL)
        reached, since = checkpoints_in(checkpoints)[-1], time.monotonic()
        self.assertTrue(wait_until(lambda: not self.slurm.run("squeue", "--noheader").stdout, pause=0.2), self.slurm.logs())
        output = (folder / "output").read_text()
        self.assertIn("attempt 2", output)
        self.assertNotIn("attempt 3", output)
        self.assertEqual(weights_in(output), weights_alone(words, 2), output)
        print(f"killed after step {reached} of 200; done {time.monotonic() - since:.1f} s later",
              file=sys.stderr, end=" ... ", flush=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
