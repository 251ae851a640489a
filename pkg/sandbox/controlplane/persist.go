package controlplane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// retryWrites makes kwok retry writes that failed because etcd or the API server ended, as a kubelet does. kwok only
// retries after "service unavailable": a pod would stay forever if its deletion failed with another error.
func retryWrites(next http.RoundTripper) http.RoundTripper { return retriedWrites{next} }

// retriedWrites replaces errors of writes that may be temporary by "service unavailable".
type retriedWrites struct{ next http.RoundTripper }

// RoundTrip is part of http.RoundTripper.
func (p retriedWrites) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(r)
	switch {
	case r.Method == http.MethodGet || r.Context().Err() != nil:
		// Watches and lists are retried anyway.
		return response, err
	case err != nil:
		return unavailable(r, err.Error())
	case response.StatusCode != http.StatusInternalServerError:
		return response, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	_ = response.Body.Close()
	if err != nil {
		return unavailable(r, err.Error())
	}
	return unavailable(r, string(body))
}

// unavailable is the response "service unavailable".
func unavailable(r *http.Request, why string) (*http.Response, error) {
	status := apierrors.NewServiceUnavailable(why).ErrStatus
	status.APIVersion, status.Kind = "v1", "Status"
	body, err := json.Marshal(&status)
	if err != nil {
		return nil, fmt.Errorf("encoding a status: %w", err)
	}
	return &http.Response{
		Status: http.StatusText(http.StatusServiceUnavailable), StatusCode: http.StatusServiceUnavailable, Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Request: r,
	}, nil
}
