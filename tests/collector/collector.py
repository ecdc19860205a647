"""A collector of traces. Prints its port, and then each span that is posted to it, as a line of JSON.

What it decodes with is generated from the definitions of OpenTelemetry. It ends with its standard input.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def plain(attributes):
    """The attributes as a dictionary of plain values."""
    return {it.key: getattr(it.value, it.value.WhichOneof("value")) for it in attributes}


def described(span, resource):
    """What a test asks of a span."""
    return {
        "name": span.name,
        "trace": span.trace_id.hex(),
        "id": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "kind": span.SpanKind.Name(span.kind),
        "status": span.status.StatusCode.Name(span.status.code),
        "nanoseconds": span.end_time_unix_nano - span.start_time_unix_nano,
        "links": [link.span_id.hex() for link in span.links],
        "attributes": plain(span.attributes),
        "events": [event.name for event in span.events],
        "resource": resource,
    }


class Collector(BaseHTTPRequestHandler):
    def do_POST(self):
        assert self.path == "/v1/traces", self.path
        assert self.headers["content-type"] == "application/x-protobuf"
        body = self.rfile.read(int(self.headers["content-length"]))
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = plain(of_resource.resource.attributes)
            for scope in of_resource.scope_spans:
                for span in scope.spans:
                    sys.stdout.write(json.dumps(described(span, resource)) + "\n")
        sys.stdout.flush()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Nothing."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
