"""The part `device`: which GPU, which driver, what Headrace sees of it."""
from gpu_checks.machine import find_tool
from gpu_checks.readers import csv_rows, doctor_devices

NO_GPU = "no GPU: nothing to check"
ASKED = ("name,driver_version,memory.total,memory.used,compute_cap,clocks.sm,clocks.max.sm,clocks.mem,power.draw,"
         "power.limit,temperature.gpu,ecc.mode.current,pcie.link.gen.current,pcie.link.width.current,persistence_mode,"
         "mig.mode.current")


def device(check):
    result = {"gpus": [], "doctor": []}
    smi = find_tool("nvidia-smi")
    if smi:
        check.run("nvidia-smi-q", [smi, "-q", "-d", "MEMORY,UTILIZATION,ECC,TEMPERATURE,POWER,CLOCK,COMPUTE,PERFORMANCE"])
        asked = check.run("nvidia-smi", [smi, f"--query-gpu={ASKED}", "--format=csv"])
        result["gpus"] = csv_rows(asked.output) if asked.status == 0 else []
    outcome, result["doctor"] = check.headrace("doctor", "doctor")
    result["devices"] = doctor_devices(result["doctor"])
    if outcome.why:
        return result | {"failed": outcome.why}
    if check.machine.rehearsal:
        return result
    if not result["devices"] and not result["gpus"]:
        return result | {"failed": NO_GPU}
    if not result["devices"]:
        hints = [f"{line['name']}: {line['hint']}" for line in result["doctor"] if not line["found"] and line["hint"]]
        return result | {"failed": "nvidia-smi lists a GPU, headrace does not: " + "; ".join(hints)}
    return result
