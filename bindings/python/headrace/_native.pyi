# The extension is the package's own business: __init__.pyi is the interface.
from typing import Any

def __getattr__(name: str) -> Any: ...
