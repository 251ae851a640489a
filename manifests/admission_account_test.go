package manifests_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testAccount uses the rights of the scheduler's account as somebody would who has stolen its token.
func testAccount(t *testing.T, w *guarded) {
	scheduler := w.as(t, "system:serviceaccount:kube-system:berth-scheduler")
	for _, tc := range []struct {
		name, patch string
		refused     bool
	}{
		{"an annotation", `{"metadata":{"annotations":{"example.com/a":"b"}}}`, false},
		{"a label", `{"metadata":{"labels":{"app":"stolen"}}}`, true},
		{"a finalizer", `{"metadata":{"finalizers":["example.com/never"]}}`, true},
		{"an image", `{"spec":{"containers":[{"name":"main","image":"other"}]}}`, true},
		{"an owner", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]}}`, true},
		{"a deadline", `{"spec":{"activeDeadlineSeconds":5}}`, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod, err := w.user.CoreV1().Pods("default").Create(t.Context(), podWith(nil), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = scheduler.CoreV1().Pods("default").Patch(t.Context(), pod.Name, types.StrategicMergePatchType, []byte(tc.patch), metav1.PatchOptions{})
			if refused := err != nil && strings.Contains(err.Error(), "may change annotations of pods"); refused != tc.refused {
				t.Errorf("refused %t, want %t: %v", refused, tc.refused, err)
			}
		})
	}
}
