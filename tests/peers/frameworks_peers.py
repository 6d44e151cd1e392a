# peers: torch jax keras pytest numpy pillow
# package: headrace
"""The Python package's own tests with PyTorch, JAX and Keras, which CTest's environment is too small for."""

import subprocess
import sys
from pathlib import Path

TESTS = ("test_torch", "test_torch_items", "test_torch_samplers", "test_jax", "test_keras", "test_tensors", "test_functions",
         "test_custom_layers")

folder = Path(__file__).resolve().parent.parent / "bindings" / "python"
sys.exit(subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                         *(str(folder / f"{name}.py") for name in TESTS)], check=False).returncode)
