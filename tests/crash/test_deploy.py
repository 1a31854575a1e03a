"""The files in deploy/: scripts that run, manifests that say what they mean."""

from __future__ import annotations

import os
import socket
import stat
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
        v["name"]: v["persistentVolumeClaim"]["claimName"]
        for v in pod["volumes"]
        if "persistentVolumeClaim" in v
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


def script(*words: str, **scene: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *words], env=os.environ | scene, capture_output=True, text=True, timeout=60
    )


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_all_that_speak_to_spark_need_the_secret(manifest: dict[str, dict[str, Any]]) -> None:
    standalone = settings((DEPLOY / "standalone" / "spark-defaults.conf").read_text())
    pods = settings(manifest["ConfigMap"]["data"]["spark-defaults.conf"])
    for given in (standalone, pods):
        assert given["spark.authenticate"] == given["spark.network.crypto.enabled"] == "true"
        assert "spark.authenticate.secret" not in given, "it is nobody's but the one who makes it"
    pod = manifest["StatefulSet"]["spec"]["template"]["spec"]
    (volume,) = (v for v in pod["volumes"] if "secret" in v)
    name = volume["secret"]["secretName"]
    (mount,) = (m for m in pod["containers"][0]["volumeMounts"] if m["name"] == volume["name"])
    assert pods[f"spark.kubernetes.executor.secrets.{name}"] == mount["mountPath"]
    assert pods["spark.authenticate.secret.file"] == mount["mountPath"] + "/secret"
    assert volume["secret"]["defaultMode"] == 0o440
    text = (DEPLOY / "kubernetes" / "kelda.yaml").read_text()
    assert f"create secret generic {name} --from-literal=secret=" in text, "how it is made"


def test_the_image_lets_nobody_write_the_package() -> None:
    lines = (DEPLOY / "kubernetes" / "Dockerfile").read_text().splitlines()
    modes = [word for line in lines if "chmod" in line for word in line.split()]
    assert not [word for word in modes if "+" in word or word in ("777", "775", "666")]
    assert lines.index("USER spark") > max(i for i, line in enumerate(lines) if "pip install" in line)
    assert [line for line in lines if line.startswith("USER ")][-1] == "USER spark"


def test_the_script_keeps_its_files_to_itself(tmp_path: Path) -> None:
    assert "/tmp" not in SCRIPT.read_text()
    made = script("secret", KELDA_RUN="", XDG_STATE_HOME=str(tmp_path))
    folder = tmp_path / "kelda" / "spark"
    assert made.returncode == 0, made.stderr
    secret = (folder / "secret").read_text()
    assert len(secret) == 64 and secret not in made.stdout
    assert mode(folder) == 0o700 and mode(folder / "secret") == 0o600
    assert sorted(path.name for path in folder.iterdir()) == ["secret"]
    script("secret", KELDA_RUN=str(folder))
    assert (folder / "secret").read_text() == secret, "made once"

    assert script("conf", str(tmp_path / "etc"), KELDA_RUN=str(folder)).returncode == 0
    conf = tmp_path / "etc" / "spark-defaults.conf"
    assert settings(conf.read_text())["spark.authenticate.secret"] == secret and mode(conf) == 0o600

    other = tmp_path / "other"
    told = script("start", "worker", "spark://127.0.0.1:1", KELDA_RUN=str(other), PYTHON=sys.executable)
    assert told.returncode == 1 and "copy it from the master's machine" in told.stderr
    (folder / "secret").chmod(0o644)
    told = script("conf", str(other), KELDA_RUN=str(folder))
    assert told.returncode == 1 and "others can read" in told.stderr
    (tmp_path / "link").symlink_to(folder)
    told = script("secret", KELDA_RUN=str(tmp_path / "link"))
    assert told.returncode == 1 and "set KELDA_RUN to a folder of your own" in told.stderr


@pytest.mark.spark
@pytest.mark.slow
def test_a_master_and_a_worker_come_and_go(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    scene = os.environ | {"PYTHON": sys.executable, "SPARK_PORT": port, "KELDA_RUN": str(tmp_path)}
    scene |= {"WORKER_CORES": "1", "WORKER_MEMORY": "600m"}

    def told(*words: str) -> str:
        return subprocess.run(
            [SCRIPT, *words], env=scene, capture_output=True, text=True, check=True, timeout=150
        ).stdout

    try:
        assert "master is up" in told("start", "master")
        assert "worker is up" in told("start", "worker", f"spark://127.0.0.1:{port}")
        assert "not running" not in told("status")
        assert "runs already" in told("start", "master")
    finally:
        stopped = told("stop", "worker") + told("stop", "master")
    assert stopped == "worker stopped\nmaster stopped\n"
    assert told("status") == "master: not running\nworker: not running\n"
