package read

import (
	"errors"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/wellknown"
)

func mustBeAboutAValue(t *testing.T, err error) {
	t.Helper()
	if bad := (*wellknown.BadValue)(nil); !errors.As(err, &bad) || bad.Key == "" || bad.Allowed == "" {
		t.Fatalf("%v does not name the key and what is allowed", err)
	}
}

// FuzzGangSpec reads a PodGroup as it stands in a file.
func FuzzGangSpec(f *testing.F) {
	for _, seed := range []string{
		"spec: {minMember: 8, scheduleTimeoutSeconds: 60, minResources: {nvidia.com/gpu: 8}}",
		"metadata: {annotations: {berth.dev/min-members-by-role: 'leader=1,worker=3', berth.dev/topology-required: rack}}",
		"metadata: {annotations: {berth.dev/topology-required: 'a,b,c,d', berth.dev/topology-preferred: 'd, e,f,g,h,i'}}",
		"metadata: {annotations: {berth.dev/groups: '[{name: a, copies: 3, minCopies: 2, required: rack, " +
			"roles: {x: 1}, groups: [{name: b, pods: 4}]}]'}}",
		"metadata: {annotations: {berth.dev/groups: " +
			"'[{name: a, copies: 512, groups: [{name: b, copies: 512, pods: 100000}]}]'}}",
		"metadata: {annotations: {berth.dev/groups: '- &a {name: a, groups: [*a]}'}}",
		"spec: {minMember: -1, scheduleTimeoutSeconds: -9}",
		"spec: {minMember: 2147483647, scheduleTimeoutSeconds: 2147483647, minResources: {cpu: 1e99}}",
		"metadata: {annotations: {berth.dev/backfill: 'no', berth.dev/role-label: ''}}",
		"metadata: {annotations: {berth.dev/min-members-by-role: '=,=,a=99999999999999999999'}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var pg schedulingv1alpha1.PodGroup
		if yaml.Unmarshal([]byte(text), &pg) != nil {
			return
		}
		spec, err := Spec(&pg, time.Minute)
		if err != nil {
			mustBeAboutAValue(t, err)
			return
		}
		sum := 0
		for role, n := range spec.Minimum.Roles {
			if role == "" || n < 1 || n > maxMinMember || len(spec.Minimum.Roles) > maxRoles {
				t.Fatalf("%d members of role %q", n, role)
			}
			sum += n
		}
		if spec.Minimum.Total < max(1, sum) || spec.Timeout <= 0 || spec.Timeout > maxTimeout {
			t.Fatalf("minimum %+v, timeout %s", spec.Minimum, spec.Timeout)
		}
		none := func(string) int { return 0 }
		all := func(string) int { return maxMinMember }
		if root := spec.Minimum.Tree; root != nil && (!root.Met(all) || root.Short(all) != "" ||
			root.Met(none) != (root.Members() == 0) || spec.Minimum.Total > maxMinMember || !root.Equal(root.Without(none))) {
			t.Fatalf("groups are read as %+v", spec.Minimum)
		}
		pod := &v1.Pod{}
		pod.Labels = map[string]string{wellknown.RoleKey: "leader"}
		if role := Role(pod, &pg); role != "" && role != "leader" {
			t.Fatalf("role %q", role)
		}
		topology, err := TopologyOf(&pg, pod)
		if err != nil {
			mustBeAboutAValue(t, err)
			return
		}
		levels := topology.Levels()
		if len(levels) > maxTopologyLevels || len(levels) != len(slices.Compact(slices.Sorted(slices.Values(levels)))) ||
			slices.ContainsFunc(levels, func(key string) bool { return len(validation.IsQualifiedName(key)) > 0 }) {
			t.Fatalf("levels %q", levels)
		}
	})
}
