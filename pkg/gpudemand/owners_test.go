package gpudemand

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu/mix"
)

func TestOfAGroupOnePodCounts(t *testing.T) {
	t.Parallel()
	var a arrivals
	for i, arrival := range []struct {
		group string
		known bool
		want  bool
	}{
		{"gang/g", false, true},
		{"gang/other", false, true},
		{"gang/g", false, false},
		{"", false, true},
		{"", false, true},
		{"gang/g", true, true}, // once the mix is known, only the pod before counts
		{"gang/g", true, false},
		{"gang/other", true, true},
		{"", true, true},
		{"", true, true},
	} {
		if got := a.independent(arrival.group, arrival.known); got != arrival.want {
			t.Errorf("arrival %d, of group %q: independent = %v, want %v", i, arrival.group, got, arrival.want)
		}
	}
	if a.groups != nil {
		t.Errorf("groups are kept once the mix is known: %v", a.groups)
	}
}

func TestTheOwnerOfPodsIsWhatMakesMore(t *testing.T) {
	t.Parallel()
	for want, owner := range map[string]*metav1.OwnerReference{
		"":                       nil,
		"default/Job/nightly":    {Kind: "Job", Name: "nightly-29391840", Controller: ptr.To(true)},
		"default/ReplicaSet/web": {Kind: "ReplicaSet", Name: "web-6d4cf56db6", Controller: ptr.To(true)},
		"default/StatefulSet/db": {Kind: "StatefulSet", Name: "db", Controller: ptr.To(true)},
		"default/Job/train":      {Kind: "Job", Name: "train", Controller: ptr.To(true)},
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}
		if owner != nil {
			pod.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		if got := ownerOf(pod); got != (mix.Owner{Namespace: "default", Controller: want}) {
			t.Errorf("owner %+v, want the controller %q", got, want)
		}
	}
}
