"""The files in deploy/: scripts that run, manifests that say what they mean."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
SCRIPT = DEPLOY / "standalone" / "spark.sh"


def settings(text: str) -> dict[str, str]:
    """What a spark-defaults.conf sets."""
    lines = [line.strip() for line in text.splitlines()]
    return dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))


@pytest.fixture(scope="module")
def manifest() -> dict[str, dict[str, Any]]:
    """By kind: there is one of each."""
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "kelda.yaml").read_text()))
    found = {document["kind"]: document for document in documents if document}
    assert len(found) == len([d for d in documents if d])
    return found


def test_all_pods_see_the_shared_volume_under_one_path(manifest: dict[str, dict[str, Any]]) -> None:
    pod = manifest["StatefulSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    claims = {
        v["name"]: v["persistentVolumeClaim"]["claimName"] for v in pod["volumes"] if "configMap" not in v
    }
    mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
    given = settings(manifest["ConfigMap"]["data"]["spark-defaults.conf"])
    volume = "spark.kubernetes.executor.volumes.persistentVolumeClaim.kelda"
    assert given[f"{volume}.options.claimName"] == claims["kelda"]
    assert claims["kelda"] == manifest["PersistentVolumeClaim"]["metadata"]["name"]
    shared = given[f"{volume}.mount.path"]
    assert shared == mounts["kelda"]
    for option in ("--checkpoint=", "--out="):
        assert any(a.startswith(f"{option}{shared}/") for a in container["args"]), option
    assert pod["volumes"][1]["configMap"]["name"] == manifest["ConfigMap"]["metadata"]["name"]
    assert given["spark.kubernetes.container.image"] == container["image"]


def test_executors_find_the_driver(manifest: dict[str, dict[str, Any]]) -> None:
    given = settings(manifest["ConfigMap"]["data"]["spark-defaults.conf"])
    service, driver = manifest["Service"], manifest["StatefulSet"]
    name, namespace = service["metadata"]["name"], given["spark.kubernetes.namespace"]
    assert given["spark.driver.host"] == f"{name}.{namespace}.svc"
    assert service["spec"]["selector"] == driver["spec"]["template"]["metadata"]["labels"]
    ports = {str(port["port"]) for port in service["spec"]["ports"]}
    assert ports == {given["spark.driver.port"], given["spark.driver.blockManager.port"]}
    assert given["spark.kubernetes.driver.pod.name"] == driver["metadata"]["name"] + "-0"


def test_the_query_of_the_manifest_can_be_read(manifest: dict[str, dict[str, Any]]) -> None:
    from kelda.lang import parse

    assert parse(manifest["ConfigMap"]["data"]["busy.rq"]).windows


def test_the_defaults_can_be_read() -> None:
    assert (
        settings((DEPLOY / "standalone" / "spark-defaults.conf").read_text())["spark.executor.cores"] == "1"
    )


def test_the_script_can_be_read_and_says_how_it_is_used() -> None:
    subprocess.run(["sh", "-n", SCRIPT], check=True)
    told = subprocess.run([SCRIPT], capture_output=True, text=True)
    assert told.returncode == 2 and "spark.sh start master" in told.stderr


@pytest.mark.spark
@pytest.mark.slow
def test_a_master_and_a_worker_come_and_go(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    scene = os.environ | {"PYTHON": sys.executable, "SPARK_PORT": port, "KELDA_RUN": str(tmp_path)}
    scene |= {"WORKER_CORES": "1", "WORKER_MEMORY": "600m"}

    def script(*words: str) -> str:
        return subprocess.run(
            [SCRIPT, *words], env=scene, capture_output=True, text=True, check=True, timeout=150
        ).stdout

    try:
        assert "master is up" in script("start", "master")
        assert "worker is up" in script("start", "worker", f"spark://127.0.0.1:{port}")
        assert "not running" not in script("status")
        assert "runs already" in script("start", "master")
    finally:
        stopped = script("stop", "worker") + script("stop", "master")
    assert stopped == "worker stopped\nmaster stopped\n"
    assert script("status") == "master: not running\nworker: not running\n"
