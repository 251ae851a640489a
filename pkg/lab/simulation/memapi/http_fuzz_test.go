package memapi

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"berth.dev/berth/test/harness/require"
)

// FuzzRequests asks the server for whatever path, with whatever parameters and body: it answers all.
func FuzzRequests(f *testing.F) {
	f.Add(http.MethodGet, "/api/v1/pods", "limit=1&resourceVersion=0", "")
	f.Add(http.MethodPost, "/api/v1/namespaces/a/pods", "", `{"metadata":{"name":"p"}}`)
	f.Add(http.MethodPost, "/api/v1/namespaces/a/pods/p/binding", "", `{"target":{"name":"n"}}`)
	f.Add(http.MethodPatch, "/api/v1/namespaces/a/pods/p/status", "", `{"status":{"conditions":[{"type":"a"}]}}`)
	f.Add(http.MethodPut, "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/a/podgroups/g", "", `[]`)
	f.Add(http.MethodDelete, "/api/v1/nodes/n", "", `{"preconditions":{"uid":"u"}}`)
	f.Add(http.MethodGet, "/apis", "", "")
	f.Add(http.MethodGet, "/api/v1", "fieldSelector=spec.nodeName%3Dn&labelSelector=a,,b", "")
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		if strings.Contains(query, "watch") {
			t.Skip() // it would go on
		}
		switch method {
		case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		default:
			t.Skip()
		}
		req, err := http.NewRequestWithContext(t.Context(), method, "http://memapi.invalid", strings.NewReader(body))
		require.NoError(t, err)
		req.URL = &url.URL{Scheme: "http", Host: "memapi.invalid", Path: path, RawQuery: query}
		req.Header.Set("Content-Type", "application/strategic-merge-patch+json")
		answer, err := New().RoundTrip(req)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode < 200 || answer.StatusCode > 599 {
			t.Fatalf("%s %s is answered with %d", method, path, answer.StatusCode)
		}
	})
}
