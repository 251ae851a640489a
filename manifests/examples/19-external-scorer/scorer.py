"""A scorer that prefers nodes with an even number, in the place of a model that has learned something."""
import http.server
import json


class Scorer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        # The JSON keys of nodes and scores are those of the extender protocol: scores are from 0 to 10.
        scores = [{"Host": name, "Score": self.score(name)} for name in request["NodeNames"]]
        body = json.dumps(scores).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def score(self, node):
        return 10 if int(node.rsplit("-", 1)[1]) % 2 == 0 else 0

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", 9000), Scorer).serve_forever()
