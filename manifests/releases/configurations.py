"""Fields of the configuration files that the API server reads, and from which release an unknown one stops it.

From the json tags of k8s.io/apiserver/pkg/apis/{apiserver,audit} and component-base/tracing: all versions of a kind
together, up to Kubernetes 1.37. `[...]` is a list, a mapping a struct, a word a scalar's type; None takes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from manifests.document import Path

_KEYS = {"keys": [{"name": "string", "secret": "string"}]}
_CLAIM = {"claim": "string", "expression": "string"}
_PREFIXED = {**_CLAIM, "prefix": "string"}
_TLS = {
    "caBundle": "string",
    "clientKey": "string",
    "clientCert": "string",
    "tlsServerName": "string",
}
FIELDS: Mapping[str, Mapping[str, Any]] = {
    "EncryptionConfiguration": {
        "resources": [
            {
                "resources": ["string"],
                "providers": [
                    {
                        "aesgcm": _KEYS,
                        "aescbc": _KEYS,
                        "secretbox": _KEYS,
                        "identity": {},
                        "kms": {
                            "apiVersion": "string",
                            "name": "string",
                            "cachesize": "number",
                            "endpoint": "string",
                            "timeout": "string",
                        },
                    }
                ],
            }
        ]
    },
    "Policy": {
        "metadata": None,
        "omitStages": ["string"],
        "omitManagedFields": "bool",
        "rules": [
            {
                "level": "string",
                "users": ["string"],
                "userGroups": ["string"],
                "verbs": ["string"],
                "resources": [{"group": "string", "resources": ["string"], "resourceNames": ["string"]}],
                "namespaces": ["string"],
                "nonResourceURLs": ["string"],
                "omitStages": ["string"],
                "omitManagedFields": "bool",
            }
        ],
    },
    "AuthorizationConfiguration": {
        "authorizers": [
            {
                "type": "string",
                "name": "string",
                "webhook": {
                    "authorizedTTL": "string",
                    "cacheAuthorizedRequests": "bool",
                    "unauthorizedTTL": "string",
                    "cacheUnauthorizedRequests": "bool",
                    "timeout": "string",
                    "subjectAccessReviewVersion": "string",
                    "matchConditionSubjectAccessReviewVersion": "string",
                    "failurePolicy": "string",
                    "connectionInfo": {"type": "string", "kubeConfigFile": "string"},
                    "matchConditions": [{"expression": "string"}],
                },
            }
        ]
    },
    "AuthenticationConfiguration": {
        "anonymous": {"enabled": "bool", "conditions": [{"path": "string"}]},
        "jwt": [
            {
                "issuer": {
                    "url": "string",
                    "discoveryURL": "string",
                    "certificateAuthority": "string",
                    "audiences": ["string"],
                    "audienceMatchPolicy": "string",
                    "egressSelectorType": "string",
                },
                "claimValidationRules": [
                    {"claim": "string", "requiredValue": "string", "expression": "string", "message": "string"}
                ],
                "claimMappings": {
                    "username": _PREFIXED,
                    "groups": _PREFIXED,
                    "uid": _CLAIM,
                    "extra": [{"key": "string", "valueExpression": "string"}],
                },
                "userValidationRules": [{"expression": "string", "message": "string"}],
            }
        ],
    },
    "EgressSelectorConfiguration": {
        "egressSelections": [
            {
                "name": "string",
                "connection": {
                    "proxyProtocol": "string",
                    "transport": {"tcp": {"url": "string", "tlsConfig": _TLS}, "uds": {"udsName": "string"}},
                },
            }
        ]
    },
    "AdmissionConfiguration": {"plugins": [{"name": "string", "path": "string", "configuration": None}]},
    "TracingConfiguration": {"endpoint": "string", "samplingRatePerMillion": "number"},
}
# First minor that decodes strictly. An audit policy is read leniently to this day: unknown fields are dropped.
STRICT_SINCE = {
    "EncryptionConfiguration": 31,
    "AuthorizationConfiguration": 29,
    "AuthenticationConfiguration": 29,
    "EgressSelectorConfiguration": 32,
    "AdmissionConfiguration": 32,
    "TracingConfiguration": 32,
}
_SCALARS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a string", lambda value: isinstance(value, str)),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "number": ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
}


def unknown(kind: str, data: Mapping[Any, Any]) -> Iterator[Path]:
    """Every field that no version of this kind has."""
    yield from _unknown({**FIELDS[kind], "kind": None, "apiVersion": None}, data, ())


def _unknown(shape: Any, value: Any, path: Path) -> Iterator[Path]:
    if isinstance(shape, list) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(shape[0], item, (*path, index))
    elif isinstance(shape, dict) and isinstance(value, dict):
        for name, item in value.items():
            if name in shape:
                yield from _unknown(shape[name], item, (*path, name))
            else:
                yield (*path, name)


def mistyped(kind: str, data: Mapping[Any, Any]) -> Iterator[tuple[Path, str]]:
    """Every value that its field cannot take, and what it must be."""
    yield from _mistyped(FIELDS[kind], data, ())


def _mistyped(shape: Any, value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if value is None or shape is None:
        return
    if isinstance(shape, str):
        words, fits = _SCALARS[shape]
        if not fits(value):
            yield path, words
    elif not isinstance(value, type(shape)):
        yield path, "a list" if isinstance(shape, list) else "a mapping"
    elif isinstance(shape, list):
        for index, item in enumerate(value):
            yield from _mistyped(shape[0], item, (*path, index))
    else:
        for name in shape.keys() & value.keys():
            yield from _mistyped(shape[name], value[name], (*path, name))
