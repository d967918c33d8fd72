"""The manifest for Kubernetes: its pods by Kubernetes' own schema, the rest by KubeRay's fields."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from typer.testing import CliRunner

from rdeepsense.cli.app import app

MANIFEST = Path(__file__).parents[2] / "docs" / "kubernetes" / "rayjob.yaml"
# Of ray.io/v1: the fields that this manifest may have, as the operator's reference names them.
JOB = {"entrypoint", "shutdownAfterJobFinishes", "ttlSecondsAfterFinished", "rayClusterSpec"}
CLUSTER = {"rayVersion", "headGroupSpec", "workerGroupSpecs"}
GROUP = {"rayStartParams", "template"}
WORKERS = GROUP | {"groupName", "replicas", "minReplicas", "maxReplicas"}


@pytest.fixture(scope="module")
def job() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(MANIFEST.read_text())
    assert (found["apiVersion"], found["kind"]) == ("ray.io/v1", "RayJob")
    return found


def groups(job: dict[str, Any]) -> list[dict[str, Any]]:
    cluster = job["spec"]["rayClusterSpec"]
    return [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]


def test_it_has_the_fields_of_a_ray_job_and_no_others(job: dict[str, Any]) -> None:
    cluster = job["spec"]["rayClusterSpec"]
    assert set(job["spec"]) == JOB
    assert set(cluster) == CLUSTER
    assert set(cluster["headGroupSpec"]) == GROUP
    assert all(set(group) == WORKERS for group in cluster["workerGroupSpecs"])
    for group in groups(job):  # `ray start` takes them as words
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())


@pytest.mark.parametrize("number", [0, 1], ids=["head", "workers"])
def test_its_pods_are_pods(job: dict[str, Any], number: int) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one"},
        **groups(job)[number]["template"],
    }
    kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)
    (container,) = pod["spec"]["containers"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}


def test_pods_that_are_none_are_refused(job: dict[str, Any]) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}}
    pod |= {"spec": {"containers": [{"name": "a", "imagee": "b"}]}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)


def test_its_command_is_one_of_ours(job: dict[str, Any]) -> None:
    words = shlex.split(job["spec"]["entrypoint"])
    assert words[0] == "rdeepsense"
    said = CliRunner().invoke(app, [*words[1:-4], "--help"]).output
    options = [word for word in words if word.startswith("--")]
    assert all(option in said for option in options), said
    mounts = {
        m["mountPath"]
        for g in groups(job)
        for m in g["template"]["spec"]["containers"][0]["volumeMounts"]
    }
    assert all(path.startswith(tuple(mounts)) for path in words if path.startswith("/"))
