package controlplane

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"berth.dev/berth/test/harness/require"
)

func TestKwokIsToldToTryAgainWhatADeadServerDidNotDo(t *testing.T) {
	t.Parallel()
	answer := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	const lost = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"error reading from server: EOF","code":500}`
	for name, test := range map[string]struct {
		server http.HandlerFunc
		write  bool
		is     func(error) bool
	}{
		"etcd dies while it writes": {server: answer(http.StatusInternalServerError, lost), write: true,
			is: apierrors.IsServiceUnavailable},
		"an answer without words": {server: answer(http.StatusInternalServerError, ""), write: true,
			is: apierrors.IsServiceUnavailable},
		"the API server dies while it answers": {server: func(http.ResponseWriter,
			*http.Request) {
			panic(http.ErrAbortHandler)
		}, write: true, is: apierrors.IsServiceUnavailable},
		"what is gone stays gone": {server: answer(http.StatusNotFound, ""), write: true,
			is: apierrors.IsNotFound},
		"a conflict is not repeated": {server: answer(http.StatusConflict, ""), write: true,
			is: apierrors.IsConflict},
		"what is read is repeated by those who read": {server: answer(http.StatusInternalServerError, lost),
			is: apierrors.IsInternalError},
		"what is done is done": {server: answer(http.StatusOK, `{"kind":"Pod","apiVersion":"v1"}`), write: true, is: func(err error) bool { return err == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.server)
			defer server.Close()
			config := &rest.Config{Host: server.URL}
			config.Wrap(retryWrites)
			client, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			pods := client.CoreV1().Pods("default")
			if test.write {
				err = pods.Delete(t.Context(), "p", metav1.DeleteOptions{})
			} else {
				_, err = pods.Get(t.Context(), "p", metav1.GetOptions{})
			}
			if !test.is(err) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestARequestThatWasGivenUpIsNotUnavailable(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel(); <-over }))
	defer server.Close()
	defer close(over)
	config := &rest.Config{Host: server.URL}
	config.Wrap(retryWrites)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	if err := client.CoreV1().Pods("default").Delete(ctx, "p", metav1.DeleteOptions{}); err == nil ||
		apierrors.IsServiceUnavailable(err) {
		t.Errorf("error %v", err)
	}
}
