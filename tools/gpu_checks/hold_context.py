"""python3 hold_context.py N: says `held` and holds the primary context of GPU N until it is killed, or says why it cannot."""
import ctypes
import signal
import sys

COMPUTE_MODE = 20  # CU_DEVICE_ATTRIBUTE_COMPUTE_MODE; 0: several processes may use the GPU


def hold(ordinal):
    """Does not return where it holds."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no libcuda.so.1 here"
    device, mode, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    for name, arguments in (("cuInit", (0,)), ("cuDeviceGet", (ctypes.byref(device), ordinal)),
                            ("cuDeviceGetAttribute", (ctypes.byref(mode), COMPUTE_MODE, device))):
        if status := getattr(driver, name)(*arguments):
            return f"{name} failed with error {status}"
    if mode.value != 0:
        return "the GPU's compute mode admits one process at a time"
    if status := driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device):
        return f"cuDevicePrimaryCtxRetain failed with error {status}"
    print("held", flush=True)
    while True:
        signal.pause()


print(hold(int(sys.argv[1])))
