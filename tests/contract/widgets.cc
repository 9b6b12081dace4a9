// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/widgets.h"

namespace kube::contract {

std::string_view WidgetCrd() {
  return R"({
  "apiVersion": "apiextensions.k8s.io/v1",
  "kind": "CustomResourceDefinition",
  "metadata": {"name": "widgets.contract.grus.dev"},
  "spec": {
    "group": "contract.grus.dev",
    "scope": "Namespaced",
    "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wg"]},
    "versions": [{
      "name": "v1",
      "served": true,
      "storage": true,
      "subresources": {
        "status": {},
        "scale": {
          "specReplicasPath": ".spec.replicas",
          "statusReplicasPath": ".status.replicas",
          "labelSelectorPath": ".status.selector"
        }
      },
      "additionalPrinterColumns": [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"}
      ],
      "schema": {"openAPIV3Schema": {
        "type": "object",
        "required": ["spec"],
        "properties": {
          "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
              "size": {"type": "integer", "minimum": 0, "maximum": 100},
              "replicas": {"type": "integer", "minimum": 0, "default": 1},
              "color": {"type": "string", "enum": ["red", "green", "blue"], "default": "red"},
              "code": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 8},
              "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": true},
              "even": {"type": "integer", "multipleOf": 2},
              "enabled": {"type": "boolean"},
              "maybe": {"type": "string", "nullable": true},
              "when": {"type": "string", "format": "date-time"},
              "limit": {"x-kubernetes-int-or-string": true},
              "nested": {
                "type": "object",
                "properties": {
                  "depth": {"type": "integer", "default": 3},
                  "note": {"type": "string"}
                }
              },
              "made": {
                "type": "object",
                "default": {},
                "properties": {"by": {"type": "string", "default": "default"}}
              },
              "parts": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                  "type": "object",
                  "required": ["name"],
                  "properties": {
                    "name": {"type": "string"},
                    "count": {"type": "integer", "default": 1},
                    "note": {"type": "string"}
                  }
                }
              },
              "tags": {
                "type": "array",
                "x-kubernetes-list-type": "set",
                "maxItems": 4,
                "items": {"type": "string"}
              },
              "steps": {"type": "array", "minItems": 1, "items": {"type": "string"}},
              "labels": {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "string"}},
              "whole": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}}
              },
              "extra": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"known": {"type": "string"}}
              }
            }
          },
          "status": {
            "type": "object",
            "properties": {
              "replicas": {"type": "integer", "minimum": 0},
              "selector": {"type": "string"},
              "phase": {"type": "string"},
              "conditions": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "items": {
                  "type": "object",
                  "required": ["type", "status"],
                  "properties": {"type": {"type": "string"}, "status": {"type": "string"}}
                }
              }
            }
          }
        }
      }}
    }]
  }
})";
}

}  // namespace kube::contract
