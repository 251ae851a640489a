package process

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// server is an API server with one pod, which answers as it is told.
type server struct {
	pod *v1.Pod
	// binding is the answer to a binding, done whether it is carried out.
	binding error
	done    bool
	// reading are the answers to the first looks at the pod.
	reading []error
	looks   int
}

func (s *server) client() *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if s.done {
			s.pod.Spec.NodeName = action.(clienttesting.CreateAction).GetObject().(*v1.Binding).Target.Name
		}
		return true, nil, s.binding
	})
	client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		s.looks++
		if s.looks <= len(s.reading) {
			return true, nil, s.reading[s.looks-1]
		}
		if s.pod == nil {
			return true, nil, apierrors.NewNotFound(v1.Resource("pods"), "p")
		}
		return true, s.pod, nil
	})
	return client
}

func TestABindingSucceedsIfThePodHasTheNode(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection reset by peer")
	slow := apierrors.NewTimeoutError("etcdserver: request timed out", 0)
	conflict := apierrors.NewConflict(v1.Resource("pods"), "p", lost)
	pod := func(uid types.UID, node string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: uid},
			Spec: v1.PodSpec{NodeName: node}}
	}
	for name, tc := range map[string]struct {
		server
		// ended is set when the context ends before the binding has an answer.
		ended bool
		want  error
		looks int
	}{
		"one that is answered": {server: server{pod: pod("1", ""), done: true}},
		"one whose answer is lost": {server: server{pod: pod("1", ""), binding: lost, done: true},
			looks: 1},
		"one that etcd does too late": {server: server{pod: pod("1", ""), binding: slow, done: true},
			looks: 1},
		"one that is lost": {server: server{pod: pod("1", ""), binding: lost}, want: lost,
			looks: 1},
		"one whose answer is lost in an outage": {server: server{pod: pod("1", ""), binding: lost, done: true,
			reading: []error{lost, slow, lost}}, looks: 4},
		"one of an API server that does not come back": {server: server{pod: pod("1", ""), binding: lost, done: true,
			reading: slices.Repeat([]error{lost}, 100)}, want: lost, looks: 17},
		"one whose answer is lost with the caller": {server: server{pod: pod("1", ""), binding: context.Canceled,
			done: true}, ended: true, looks: 1},
		"one of a caller that is gone in an outage": {server: server{pod: pod("1", ""), binding: lost, done: true,
			reading: []error{lost, lost}}, ended: true, want: lost, looks: 1},
		"a pod that another scheduler has bound": {server: server{pod: pod("1", "n"), binding: conflict},
			want: conflict},
		"a pod that has another node": {server: server{pod: pod("1", "m"), binding: lost}, want: lost,
			looks: 1},
		"another pod of that name on the node": {server: server{pod: pod("2", "n"), binding: lost}, want: lost,
			looks: 1},
		"a pod that is gone": {server: server{binding: lost}, want: lost, looks: 1},
		"a pod that may not be read": {server: server{pod: pod("1", "n"), binding: lost,
			reading: []error{apierrors.NewForbidden(v1.Resource("pods"), "p", lost)}}, want: lost, looks: 1},
		"one that the API server refuses is not asked": {server: server{pod: pod("1", ""),
			binding: apierrors.NewNotFound(v1.Resource("pods"), "p")}, want: apierrors.NewNotFound(v1.Resource("pods"), "p")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if tc.ended {
					cancel()
				}
				err := SureBindings(tc.client()).CoreV1().Pods("default").Bind(ctx, &v1.Binding{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "1"}, Target: v1.ObjectReference{Kind: "Node",
						Name: "n"},
				}, metav1.CreateOptions{})
				if (err == nil) != (tc.want == nil) || err != nil && err.Error() != tc.want.Error() {
					t.Errorf("error %v, want %v", err, tc.want)
				}
				if tc.looks != tc.server.looks {
					t.Errorf("looked at the pod %d times, want %d", tc.server.looks, tc.looks)
				}
			})
		})
	}
}
