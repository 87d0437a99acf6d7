"""A trace collector: prints its port, then writes each span that it receives as a line of JSON."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


def plain(value):
    return getattr(value, value.WhichOneof("value"))


def attributes(pairs):
    return {pair.key: plain(pair.value) for pair in pairs}


class Collector(BaseHTTPRequestHandler):
    def do_POST(self):
        request = ExportTraceServiceRequest()
        request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    line = {
                        "path": self.path,
                        "resource": attributes(resource.resource.attributes),
                        "name": span.name,
                        "trace": span.trace_id.hex(),
                        "span": span.span_id.hex(),
                        "parent": span.parent_span_id.hex(),
                        "failed": span.status.code == 2,
                        "attributes": attributes(span.attributes),
                    }
                    print(json.dumps(line), flush=True)
        body = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Collector)
print(server.server_port, flush=True)
try:
    server.serve_forever()
except KeyboardInterrupt:
    sys.exit(0)
