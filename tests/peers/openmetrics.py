"""Parses metrics from standard input with Prometheus' official client library, and writes the samples as JSON."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

samples = [
    {"name": sample.name, "labels": sample.labels, "value": sample.value}
    for family in text_string_to_metric_families(sys.stdin.read())
    for sample in family.samples
]
json.dump(samples, sys.stdout)
