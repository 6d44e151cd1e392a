"""The manifest's parts fit together, and the command takes the environment that its pods have. Run by CTest; HEADRACE_COMMAND is the
command of the build."""
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import unittest

try:
    import yaml
except ImportError:
    print("skipped: no PyYAML (Debian: python3-yaml)")
    sys.exit(77)

HERE = pathlib.Path(__file__).parent
COMMAND = os.environ.get("HEADRACE_COMMAND")
RESTART_ME = 75


def manifest():
    documents = list(yaml.safe_load_all((HERE / "train.yaml").read_text(encoding="utf-8")))
    return {document["kind"]: document for document in documents}


SERVICE, JOB = manifest()["Service"], manifest()["Job"]
POD = JOB["spec"]["template"]["spec"]
CONTAINER = POD["containers"][0]
WORKERS = JOB["spec"]["completions"]


def template_variables():
    return {entry["name"]: entry["value"] for entry in CONTAINER["env"]}


def pod_variables(index):
    """What the container of one pod sees: the template's, and what an indexed Job sets."""
    return template_variables() | {"JOB_COMPLETION_INDEX": str(index)}


def action_for(exit_code):
    """Returns the action of the first rule for this exit code of a pod that nobody evicted."""
    for rule in JOB["spec"]["podFailurePolicy"]["rules"]:
        codes = rule.get("onExitCodes")
        if codes and (exit_code in codes["values"]) == (codes["operator"] == "In"):
            return rule["action"]
    return "Count"


def doctor(variables, wait):
    command = [COMMAND, "doctor", "--cluster", "--wait", str(wait), "--json", "-"]
    environment = {"PATH": os.environ["PATH"]} | variables
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def free_port():
    """Below the ports that Linux hands to clients (32768 on), which could take it before the first pod listens."""
    for port in random.sample(range(12_000, 32_000), 100):
        with socket.socket() as one:
            try:
                one.bind(("", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no port is free")


class Manifest(unittest.TestCase):
    def test_all_workers_run_at_once_and_know_how_many_they_are(self):
        self.assertEqual(JOB["spec"]["completionMode"], "Indexed")
        self.assertEqual(JOB["spec"]["parallelism"], WORKERS)
        self.assertEqual(template_variables()["JOB_COMPLETIONS"], str(WORKERS))

    def test_the_coordinator_is_the_first_pod_under_the_service(self):
        service, job = SERVICE["metadata"]["name"], JOB["metadata"]["name"]
        port = SERVICE["spec"]["ports"][0]["port"]
        self.assertEqual(template_variables()["HEADRACE_COORDINATOR"], f"{job}-0.{service}:{port}")
        self.assertEqual(CONTAINER["ports"][0]["containerPort"], port)
        self.assertEqual(POD["subdomain"], service)
        self.assertEqual(SERVICE["spec"]["clusterIP"], "None")
        self.assertTrue(SERVICE["spec"]["publishNotReadyAddresses"])
        self.assertEqual(SERVICE["spec"]["selector"], {"batch.kubernetes.io/job-name": job})

    def test_only_lost_and_killed_workers_are_started_again(self):
        self.assertEqual(POD["restartPolicy"], "Never")  # podFailurePolicy allows no other
        for code in (RESTART_ME, 137, 143):
            self.assertEqual(action_for(code), "Count", code)
        for code in (1, 2, 3, 126, 127, 134, 139):
            self.assertEqual(action_for(code), "FailJob", code)
        first = JOB["spec"]["podFailurePolicy"]["rules"][0]
        self.assertEqual((first["action"], first["onPodConditions"][0]["type"]), ("Ignore", "DisruptionTarget"))

    def test_every_worker_may_restart_as_often(self):
        self.assertEqual(JOB["spec"]["backoffLimit"], WORKERS * JOB["spec"]["backoffLimitPerIndex"])
        self.assertEqual(JOB["spec"]["maxFailedIndexes"], 0)

    def test_rules_name_the_container_and_paths_are_mounted(self):
        for rule in JOB["spec"]["podFailurePolicy"]["rules"]:
            self.assertEqual(rule.get("onExitCodes", {}).get("containerName", CONTAINER["name"]), CONTAINER["name"])
        mounts = {mount["mountPath"]: mount["name"] for mount in CONTAINER["volumeMounts"]}
        self.assertEqual(set(mounts.values()), {volume["name"] for volume in POD["volumes"]})
        options = dict(each.partition("=")[::2] for each in CONTAINER["args"])
        self.assertTrue(options["--data"].startswith("/data/") and "/data" in mounts)
        self.assertTrue(options["--checkpoint-dir"].startswith("/checkpoints/") and "/checkpoints" in mounts)
        claims = {volume["persistentVolumeClaim"]["claimName"] for volume in POD["volumes"]}
        self.assertIn(manifest()["PersistentVolumeClaim"]["metadata"]["name"], claims)
        self.assertEqual(int(options["--global-batch"]) % WORKERS, 0)


@unittest.skipUnless(COMMAND, "HEADRACE_COMMAND names no command")
class Pods(unittest.TestCase):
    def test_the_command_knows_every_option(self):
        shown = subprocess.run([COMMAND, "train", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual(CONTAINER["command"], ["headrace", "train"])
        for argument in CONTAINER["args"]:
            self.assertIn(argument.partition("=")[0] + " ", shown)

    def test_each_pod_reads_its_place(self):
        for index in range(WORKERS):
            output, errors = doctor(pod_variables(index), wait=0).communicate(timeout=60)
            self.assertNotEqual(output, "", errors)
            said = json.loads(output)
            self.assertEqual((said["launcher"], said["world"], said["rank"]), ("Kubernetes", WORKERS, index))
            self.assertEqual(said["coordinator"], template_variables()["HEADRACE_COORDINATOR"])
            self.assertEqual(said["chief"], index == 0)

    def test_pods_meet(self):
        if not (pathlib.Path(COMMAND).parent / "libheadrace_workers.so").exists():
            self.skipTest("built without gRPC or Gloo")
        here = {"HEADRACE_COORDINATOR": f"127.0.0.1:{free_port()}"}  # all pods on this host
        pods = [doctor(pod_variables(index) | here, wait=60) for index in range(WORKERS)]
        for index, pod in enumerate(pods):
            output, errors = pod.communicate(timeout=120)
            self.assertEqual(pod.returncode, 0, errors)
            self.assertEqual((json.loads(output)["rank"], len(json.loads(output)["hosts"])), (index, 1))


if __name__ == "__main__":
    unittest.main()
