package kubeview

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/yaml"

	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gpu"
)

// complaint fails the test unless what is said of a bad value is a line that names the key.
func complaint(t *testing.T, err error) {
	t.Helper()
	var bad *BadValue
	if !errors.As(err, &bad) {
		t.Fatalf("%v is not about a value", err)
	}
	if text := bad.Error(); bad.Key == "" || !strings.Contains(text, bad.Key) || bad.Allowed == "" || strings.ContainsAny(text, "\n\r\x00") {
		t.Fatalf("%q is not a line that names the key and what is allowed", text)
	}
}

// FuzzPodKeys gives a pod every key that a user may write, as annotation and as label, with the same value.
func FuzzPodKeys(f *testing.F) {
	for _, seed := range []string{
		"", "true", "allow", "tolerate", "require", "40Gi", "1e99", "exclusive", "required", "0.5", "NaN", "1e-9", "8", "-1", "9223372036854775808", "Tesla-T4|NVIDIA-A10", "|",
		"2026-11-21T06:00:00+01:00", "matlab=2,ansys", "a/b,c/d", "leader=1,worker=3", "racks", "0-1-2", "GPU-a,NVIDIA,100,0:;", `{"pod":"p","node":"n","devices":[0],"milli":1}`, "line\nbreak", "\xff",
	} {
		f.Add(seed, seed)
	}
	keys := DefaultGPUKeys()
	written := slices.Concat(OwnKeys(), AskingKeys(), AnswerKeys(), GangLabels())
	f.Fuzz(func(t *testing.T, annotation, label string) {
		pod := &v1.Pod{}
		pod.Name, pod.Namespace, pod.UID, pod.Spec.NodeName = "p", "ns", "p", "n"
		pod.Annotations, pod.Labels = strs{}, strs{workloadTypeLabel: label}
		read := func() {
			if _, err := keys.PodGPURequest(pod); err != nil {
				complaint(t, err)
			}
			if w, bad := PodStartWindow(pod); bad != nil {
				complaint(t, bad)
			} else if again, err := time.Parse(time.RFC3339, w.Deadline.Format(time.RFC3339Nano)); err != nil || !again.Equal(w.Deadline) {
				t.Fatalf("deadline %q is read as %s", annotation, w.Deadline)
			}
			if _, _, bad := PodSpotPolicy(pod); bad != nil {
				complaint(t, bad)
			}
			class := &schedulingv1.PriorityClass{}
			class.Annotations = pod.Annotations
			if _, _, bad := ClassSpotPolicy(class); bad != nil {
				complaint(t, bad)
			}
			if _, bad := PodBackfill(pod); bad != nil {
				complaint(t, bad)
			}
			if name, bad := PodIPPool(pod); bad != nil {
				complaint(t, bad)
			} else if name != pod.Annotations[IPPoolKey] {
				t.Fatalf("pool %q is read as %q", pod.Annotations[IPPoolKey], name)
			}
			if _, bad := PodDatasets(pod); bad != nil {
				complaint(t, bad)
			}
			if _, bad := SLAClass(nil, pod); bad != nil {
				complaint(t, bad)
			}
			if _, err := TopologyOf(nil, pod); err != nil {
				complaint(t, err)
			}
			for _, d := range AssignedDevices(pod) {
				if d < 0 || d >= maxGPUs {
					t.Fatalf("device %d of %q", d, annotation)
				}
			}
			if key := keys.Unassigned(pod); key != "" && pod.Annotations[key] == "" && annotation != "" {
				t.Fatalf("%s claims GPUs and is not on the pod", key)
			}
			if held := keys.heldGPUs(pod); held.Count < 0 || held.Count > maxGPUs || held.Milli < 0 || held.Milli > gpu.WholeMilli {
				t.Fatalf("%q holds %+v", annotation, held)
			}
			if backed := keys.backedGPUs(pod); backed.WantsGPU() {
				t.Fatalf("annotations alone stand behind %+v", backed)
			}
		}
		// Each on its own, as one that is wrong hides what comes after it, and all together.
		for _, key := range written {
			clear(pod.Annotations)
			pod.Annotations[key], pod.Labels[key] = annotation, label
			read()
			delete(pod.Labels, key)
		}
		for _, key := range written {
			pod.Annotations[key], pod.Labels[key] = annotation, label
		}
		read()
	})
}

// FuzzStatedPrice reads the price of a node from its annotation and its label.
func FuzzStatedPrice(f *testing.F) {
	for _, seed := range []string{"3.06", "0", "-1", "1e3", "0.0000001", "92233720368547758.07", "NaN", " 1", "1_0"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, annotation, label string) {
		node := &v1.Node{}
		node.Annotations, node.Labels = strs{PricePerHourKey: annotation}, strs{nodeCostPerHourLabel: label}
		p, stated, bad := StatedPrice(node)
		for _, b := range bad {
			complaint(t, b)
		}
		if p < 0 || stated == (len(bad) == 2) {
			t.Fatalf("%q and %q: %v, stated %t, with %d bad values", annotation, label, p, stated, len(bad))
		}
	})
}

// FuzzLinkMatrix reads a matrix of links and holds the sets that it offers against their number and the range of scores.
func FuzzLinkMatrix(f *testing.F) {
	f.Add(`{"links":[[0,1,"NV12"],[2,3,"NV12"],[0,2,"SYS"]]}`, 4)
	f.Add(`{"links":[[0,1,"NV0"]]}`, 2)
	f.Add(`{"links":[[1,1,"PIX"],[0,9,"PIX"],[0,1]]}`, 8)
	f.Add(`{"links":[[0,1,"NV99"],[1,0,"SYS"]]}`, 16)
	f.Fuzz(func(t *testing.T, value string, n int) {
		if n < 2 || n > 16 {
			t.Skip()
		}
		links, err := parseLinks(value, n)
		if err != nil {
			return
		}
		all := uint64(1)<<n - 1
		for count := 1; count <= n; count++ {
			set, score, ok := links.Best(all, count, false)
			if !ok || score < 0 || score > gpu.MaxLinkScore || set&^all != 0 {
				t.Fatalf("%d of %d GPUs: set %b, score %d, %t", count, n, set, score, ok)
			}
			if linked, most, ok := links.Best(all, count, true); ok && (most > score || linked&^all != 0) {
				t.Fatalf("%d linked ones of %d GPUs score %d, any %d", count, n, most, score)
			}
		}
		if largest := links.LargestLinked(n); largest < 1 || largest > n {
			t.Fatalf("%d of %d GPUs are linked", largest, n)
		}
	})
}

// FuzzGangSpec reads a PodGroup as it stands in a file.
func FuzzGangSpec(f *testing.F) {
	for _, seed := range []string{
		"spec: {minMember: 8, scheduleTimeoutSeconds: 60, minResources: {nvidia.com/gpu: 8}}",
		"metadata: {annotations: {berth.dev/min-members-by-role: 'leader=1,worker=3', berth.dev/topology-required: rack}}",
		"spec: {minMember: -1, scheduleTimeoutSeconds: -9}", "spec: {minMember: 2147483647, scheduleTimeoutSeconds: 2147483647, minResources: {cpu: 1e99}}",
		"metadata: {annotations: {berth.dev/backfill: 'no', berth.dev/role-label: ''}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var pg schedulingv1alpha1.PodGroup
		if yaml.Unmarshal([]byte(text), &pg) != nil {
			return
		}
		spec, err := GangSpec(&pg, time.Minute)
		if err != nil {
			complaint(t, err)
			return
		}
		sum := 0
		for role, n := range spec.Minimum.Roles {
			if n < 1 {
				t.Fatalf("%d members of role %q", n, role)
			}
			sum += n
		}
		if spec.Minimum.Total < max(1, sum) || spec.Timeout <= 0 || spec.Timeout > maxTimeout {
			t.Fatalf("minimum %+v, timeout %s", spec.Minimum, spec.Timeout)
		}
		pod := &v1.Pod{}
		pod.Labels = strs{RoleKey: "leader"}
		if role := GangRole(pod, &pg); role != "" && role != "leader" {
			t.Fatalf("role %q", role)
		}
		if _, err := TopologyOf(&pg, pod); err != nil {
			complaint(t, err)
		}
	})
}

// FuzzAddressPool reads an IPPool as it stands in a file.
func FuzzAddressPool(f *testing.F) {
	for _, seed := range []string{
		"spec: {subnets: [{ranges: [10.0.0.0/29], exclude: [10.0.0.1], domain: {key: rack, value: a}}]}",
		"spec: {subnets: [{ranges: ['fd00::1-fd00::9']}, {ranges: ['fd00::5']}]}", "spec: {subnets: [{ranges: [0.0.0.0/0, '::/0']}]}", "spec: {subnets: [{}]}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var object networkv1alpha1.IPPool
		if yaml.Unmarshal([]byte(text), &object) != nil {
			return
		}
		pool, problems := AddressPool(&object)
		if (pool.Problem == "") != (len(problems) == 0) || pool.Problem != "" && len(pool.Subnets) > 0 {
			t.Fatalf("problem %q, %d problems, %d subnets", pool.Problem, len(problems), len(pool.Subnets))
		}
		for i := range pool.Subnets {
			for _, other := range pool.Subnets[:i] {
				if other.Addresses.Overlaps(pool.Subnets[i].Addresses) {
					t.Fatalf("two subnets of %q have an address in common", text)
				}
			}
		}
	})
}
