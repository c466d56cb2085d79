"""Volumes, claims and their classes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from snapshots.registry.objects import at
from snapshots.registry.tables.cells import AGE, NAME, UNSET, Column, count, field, text

MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def _modes(listed: object) -> str:
    present = set(listed) if isinstance(listed, list) else set()
    return ",".join(short for mode, short in MODES.items() if mode in present)


def phase(body: dict[str, Any], _: datetime) -> str:
    return "Terminating" if at(body, "metadata", "deletionTimestamp") else text(at(body, "status", "phase"), "")


def volume_modes(body: dict[str, Any], _: datetime) -> str:
    return _modes(at(body, "spec", "accessModes"))


def claim(body: dict[str, Any], _: datetime) -> str:
    ref = at(body, "spec", "claimRef")
    return f"{ref.get('namespace', '')}/{ref.get('name', '')}" if ref else ""


def storage_class(body: dict[str, Any], _: datetime) -> str:
    return text(at(body, "metadata", "annotations", OLD_CLASS) or at(body, "spec", "storageClassName"), "")


def claim_capacity(body: dict[str, Any], _: datetime) -> str:
    bound = at(body, "spec", "volumeName")
    return text(at(body, "status", "capacity", "storage"), "0") if bound else ""


def claim_modes(body: dict[str, Any], _: datetime) -> str:
    return _modes(at(body, "status", "accessModes")) if at(body, "spec", "volumeName") else ""


def class_name(body: dict[str, Any], _: datetime) -> str:
    default = at(body, "metadata", "annotations", DEFAULT_CLASS) == "true"
    return f"{at(body, 'metadata', 'name')}{' (default)' if default else ''}"


def expansion(body: dict[str, Any], _: datetime) -> str:
    return "true" if body.get("allowVolumeExpansion") else "false"


def attached(body: dict[str, Any], _: datetime) -> str:
    return "true" if at(body, "status", "attached") else "false"


MODE = Column("VOLUMEMODE", field("spec", "volumeMode", empty=UNSET), wide=True)
ATTRIBUTES = Column("VOLUMEATTRIBUTESCLASS", field("spec", "volumeAttributesClassName", empty=UNSET))

COLUMNS: dict[str, tuple[Column, ...]] = {
    "PersistentVolume": (
        NAME,
        Column("CAPACITY", field("spec", "capacity", "storage", empty="0")),
        Column("ACCESS MODES", volume_modes),
        Column("RECLAIM POLICY", field("spec", "persistentVolumeReclaimPolicy", empty="")),
        Column("STATUS", phase),
        Column("CLAIM", claim),
        Column("STORAGECLASS", storage_class),
        ATTRIBUTES,
        Column("REASON", field("status", "reason", empty="")),
        AGE,
        MODE,
    ),
    "PersistentVolumeClaim": (
        NAME,
        Column("STATUS", phase),
        Column("VOLUME", field("spec", "volumeName", empty="")),
        Column("CAPACITY", claim_capacity),
        Column("ACCESS MODES", claim_modes),
        Column("STORAGECLASS", storage_class),
        ATTRIBUTES,
        AGE,
        MODE,
    ),
    "StorageClass": (
        Column("NAME", class_name),
        Column("PROVISIONER", field("provisioner", empty="")),
        Column("RECLAIMPOLICY", field("reclaimPolicy", empty="Delete")),
        Column("VOLUMEBINDINGMODE", field("volumeBindingMode", empty=UNSET)),
        Column("ALLOWVOLUMEEXPANSION", expansion),
        AGE,
    ),
    "VolumeAttachment": (
        NAME,
        Column("ATTACHER", field("spec", "attacher", empty="")),
        Column("PV", field("spec", "source", "persistentVolumeName", empty="")),
        Column("NODE", field("spec", "nodeName", empty="")),
        Column("ATTACHED", attached),
        AGE,
    ),
    "CSINode": (NAME, Column("DRIVERS", count(("spec", "drivers"))), AGE),
    "VolumeAttributesClass": (NAME, Column("DRIVERNAME", field("driverName", empty="")), AGE),
}
