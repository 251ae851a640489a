package release_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testAccount uses the rights of the scheduler's account as somebody would who has stolen its token.
func testAccount(t *testing.T, w *guarded) {
	scheduler := w.as(t, "system:serviceaccount:kube-system:berth-scheduler")
	patch := func(ctx context.Context, patch string, options metav1.PatchOptions) (refused bool, err error) {
		pod, err := w.user.CoreV1().Pods("default").Create(ctx, podWith(nil), metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		_, err = scheduler.CoreV1().Pods("default").Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(patch), options)
		return err != nil && strings.Contains(err.Error(), "may change annotations of pods"), err
	}
	w.Await(t, "policy berth-scheduler-account", func(ctx context.Context) (bool, error) {
		refused, err := patch(ctx, `{"metadata":{"labels":{"app":"stolen"}}}`, metav1.PatchOptions{DryRun: dryRun.DryRun})
		if refused {
			err = nil
		}
		return refused, err
	})
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
			refused, err := patch(t.Context(), tc.patch, metav1.PatchOptions{})
			if refused != tc.refused {
				t.Errorf("refused %t, want %t: %v", refused, tc.refused, err)
			}
		})
	}
}
