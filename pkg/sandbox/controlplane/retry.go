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

// persist lets kwok try again what failed because etcd or the API server died meanwhile, as a kubelet does. kwok
// repeats what is refused with "service unavailable" and forgets the rest: a pod whose deletion it could not write then
// would be there forever.
func persist(next http.RoundTripper) http.RoundTripper { return persistent{next} }

// persistent turns what a write may recover from into "service unavailable".
type persistent struct{ next http.RoundTripper }

// RoundTrip is part of http.RoundTripper.
func (p persistent) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(r)
	switch {
	case r.Method == http.MethodGet || r.Context().Err() != nil:
		// Watches and lists are repeated anyway.
		return response, err
	case err != nil:
		return unavailable(r, err.Error())
	case response.StatusCode != http.StatusInternalServerError:
		return response, nil
	}
	said, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	_ = response.Body.Close()
	if err != nil {
		return unavailable(r, err.Error())
	}
	return unavailable(r, string(said))
}

// unavailable is the answer of an API server that cannot do what it is asked just now.
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
