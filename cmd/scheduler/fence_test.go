package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"

	"berth.dev/berth/test/harness/require"
)

// freeLock is a lease that anybody may have.
type freeLock struct{ resourcelock.Interface }

func (freeLock) Identity() string { return "me" }

func (freeLock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

func TestTheSchedulerBindsOnlyWhileItsLeaseIsFresh(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n"}}`))
	}))
	t.Cleanup(server.Close)
	bind := func(config *schedulerserverconfig.Config) error {
		client, err := newWriter(config.KubeConfig)
		require.NoError(t, err)
		return client.CoreV1().Pods("n").Bind(t.Context(), &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Target: v1.ObjectReference{Name: "node"}}, metav1.CreateOptions{})
	}
	alone := &schedulerserverconfig.Config{KubeConfig: &rest.Config{Host: server.URL}}
	fenceIn(alone)
	if err := bind(alone); err != nil {
		t.Errorf("without leader election: %v", err)
	}
	one := &schedulerserverconfig.Config{
		KubeConfig:     &rest.Config{Host: server.URL},
		LeaderElection: &leaderelection.LeaderElectionConfig{Lock: freeLock{}, RenewDeadline: time.Minute},
	}
	fenceIn(one)
	if err := bind(one); err == nil || !strings.Contains(err.Error(), "does not lead") {
		t.Errorf("a standby: error %v, want a refusal", err)
	}
	require.NoError(t, one.LeaderElection.Lock.Update(t.Context(),
		resourcelock.LeaderElectionRecord{HolderIdentity: "me"}))
	if err := bind(one); err != nil {
		t.Errorf("the leader: %v", err)
	}
}

func TestABindingWhoseAnswerIsLostIsDone(t *testing.T) {
	t.Parallel()
	var bound atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			bound.Store(true)
			panic(http.ErrAbortHandler) // ends the connection
		}
		pod := v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "p",
			Namespace: "n", UID: "1"}}
		if bound.Load() {
			pod.Spec.NodeName = "node"
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(pod)
	}))
	t.Cleanup(server.Close)
	client, err := newWriter(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	for node, done := range map[string]bool{"node": true, "other": false} {
		err := client.CoreV1().Pods("n").Bind(t.Context(), &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1"}, Target: v1.ObjectReference{Name: node},
		}, metav1.CreateOptions{})
		if (err == nil) != done {
			t.Errorf("binding to %s: %v, want it to be done: %v", node, err, done)
		}
	}
}
