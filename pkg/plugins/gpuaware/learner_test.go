package gpuaware

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func TestPodsThatBelongTogetherMakeNoMixKnown(t *testing.T) {
	t.Parallel()
	owned := func(uid string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: uid, UID: types.UID(uid), Controller: ptr.To(true)}}
	}
	for name, tc := range map[string]struct {
		owners func(i int) []metav1.OwnerReference
		labels map[string]string
		known  bool
	}{
		"pods on their own":             {func(int) []metav1.OwnerReference { return nil }, nil, true},
		"pods of one controller":        {func(int) []metav1.OwnerReference { return owned("job") }, nil, false},
		"pods of a controller each":     {func(i int) []metav1.OwnerReference { return owned(fmt.Sprint("job-", i)) }, nil, true},
		"pods of one gang, many owners": {func(i int) []metav1.OwnerReference { return owned(fmt.Sprint("job-", i)) }, strs{"scheduling.x-k8s.io/pod-group": "train"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, alone(defaultArgs()), gpuNodeObject("n", 8, "Tesla-T4"))
			learner := h.plugin.cluster.learner
			for i := range 100 {
				pod := podObject(fmt.Sprint("p", i), strs{"nvidia.com/gpu": "1"}, nil)
				pod.Labels, pod.OwnerReferences = tc.labels, tc.owners(i)
				learner.arrived(pod)
			}
			if got := learner.learnt().demand.Known(); got != tc.known {
				t.Errorf("known = %v, want %v", got, tc.known)
			}
		})
	}
}
