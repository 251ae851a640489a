package controlplane

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"

	"berth.dev/berth/test/harness/require"
)

// The library keeps the types of its expressions in a map of the process, without a lock.
func TestWhatBecomesOfAPod(t *testing.T) { //nolint:paralleltest // see above
	const delay = "pod-complete.stage.kwok.x-k8s.io/delay"
	all, err := allStages()
	require.NoError(t, err)
	started := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	now := started.Add(10 * time.Second)
	job := []metav1.OwnerReference{{Kind: "Job"}}
	kept := []string{"example.com/keep"}
	for name, test := range map[string]struct {
		phase       corev1.PodPhase
		owners      []metav1.OwnerReference
		annotations map[string]string
		deleted     bool
		finalizers  []string
		// stage is what happens to the pod, and in is when, from now.
		stage string
		in    time.Duration
	}{
		"a bound pod runs at once": {phase: corev1.PodPending, stage: "pod-ready"},
		"a Job's pod ends after a minute": {phase: corev1.PodRunning, owners: job,
			stage: "pod-complete", in: 50 * time.Second},
		"a Job's pod ends when it is told": {phase: corev1.PodRunning, owners: job,
			annotations: map[string]string{delay: "1h"}, stage: "pod-complete", in: time.Hour - 10*time.Second},
		"a pod that no Job owns runs on": {phase: corev1.PodRunning},
		"a pod with other annotations runs on": {phase: corev1.PodRunning,
			annotations: map[string]string{"a": "b"}},
		"a pod of a ReplicaSet runs on": {phase: corev1.PodRunning,
			owners: []metav1.OwnerReference{{Kind: "ReplicaSet"}}},
		"a pod that no Job owns ends when it is told": {phase: corev1.PodRunning,
			annotations: map[string]string{delay: "1h1m30s"}, stage: "pod-complete", in: time.Hour + 80*time.Second},
		"fractions count": {phase: corev1.PodRunning,
			annotations: map[string]string{delay: "1.5m"}, stage: "pod-complete", in: 80 * time.Second},
		"one whose time is over ends at once": {phase: corev1.PodRunning,
			annotations: map[string]string{delay: "5s"}, stage: "pod-complete", in: -5 * time.Second},
		"none at all is over at once": {phase: corev1.PodRunning,
			annotations: map[string]string{delay: "0s"}, stage: "pod-complete", in: -10 * time.Second},
		"a delay without a unit is said, and the pod runs on": {phase: corev1.PodRunning,
			annotations: map[string]string{delay: "90"}, stage: "pod-bad-delay"},
		"a negative delay is said, of a Job's pod, too": {phase: corev1.PodRunning, owners: job,
			annotations: map[string]string{delay: "-90s"}, stage: "pod-bad-delay"},
		"an empty delay is said": {phase: corev1.PodRunning, annotations: map[string]string{delay: ""},
			stage: "pod-bad-delay"},
		"a failed pod of a Job stays, and what was queued is dropped": {phase: corev1.PodFailed, owners: job,
			stage: "pod-ended"},
		"a pod that has succeeded stays": {phase: corev1.PodSucceeded,
			annotations: map[string]string{delay: "1h"}, stage: "pod-ended"},
		"a running pod that is deleted goes": {phase: corev1.PodRunning, owners: job, deleted: true,
			stage: "pod-delete"},
		"a failed pod that is deleted goes":        {phase: corev1.PodFailed, deleted: true, stage: "pod-delete"},
		"a pod that is deleted before it ran goes": {phase: corev1.PodPending, deleted: true, stage: "pod-delete"},
		"one with a finalizer ends first": {phase: corev1.PodRunning, deleted: true, finalizers: kept,
			stage: "pod-terminated"},
		"one with a finalizer ends, also before it ran": {phase: corev1.PodPending, deleted: true, finalizers: kept,
			stage: "pod-terminated"},
		"one with a finalizer that has ended goes with it": {phase: corev1.PodFailed, deleted: true, finalizers: kept,
			stage: "pod-delete"},
		"one with a finalizer that is not deleted runs on": {phase: corev1.PodRunning, finalizers: kept},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // see above
			// It is of one test alone: it makes its selectors ready when it is first used.
			ofPods, err := lifecycle.NewLifecycle(all[internalversion.StageResourceRef{APIGroup: "v1", Kind: "Pod"}])
			require.NoError(t, err)
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p", Finalizers: test.finalizers, Annotations: test.annotations,
					OwnerReferences: test.owners},
				Status: corev1.PodStatus{Phase: test.phase},
			}
			if test.phase != corev1.PodPending {
				pod.Status.StartTime = &metav1.Time{Time: started}
			}
			if test.deleted {
				pod.DeletionTimestamp = &metav1.Time{Time: now}
			}
			event := &lifecycle.Event{Annotations: pod.Annotations, Data: pod}
			stage, err := ofPods.Match(t.Context(), event)
			require.NoError(t, err)
			got := ""
			var in time.Duration
			if stage != nil {
				got = stage.Name()
				if in, _, err = stage.Delay(t.Context(), event, now); err != nil {
					t.Fatal(err)
				}
			}
			if got != test.stage || in != test.in {
				t.Errorf("stage %q in %v, want %q in %v", got, in, test.stage, test.in)
			}
		})
	}
}
