# peers: kubernetes-validate
"""The manifest that users copy, against the schemas that Kubernetes publishes, unknown fields refused."""

from pathlib import Path

import kubernetes_validate
import yaml

import peers

MANIFEST = Path(__file__).resolve().parent.parent / "examples" / "kubernetes" / "train.yaml"
OLDEST = (1, 31)  # what its README asks for


def minor(version):
    return tuple(int(part) for part in version.split(".")[:2])


def complaint(document, version):
    try:
        kubernetes_validate.validate(document, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return error.message
    return ""


documents = list(yaml.safe_load_all(MANIFEST.read_text()))
versions = sorted({version for version in kubernetes_validate.utils.all_versions() if minor(version) >= OLDEST}, key=minor)
checks = peers.Checks()
checks.expect("there are schemas", versions)
for version in versions:
    for document in documents:
        found = complaint(document, version)
        checks.expect("documents", not found, f"{document['kind']}, Kubernetes {version}: {found}")
job = documents[-1]
checks.expect("a field that there is not is refused", complaint(job | {"spec": job["spec"] | {"workers": 4}}, versions[-1]))
checks.finish()
