package release_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

// podValues are values of the keys that pods carry, bad and good ones. What each is the scheduler's reader says.
var podValues = map[string][]string{
	wellknown.BackfillKey: {"allow", "", "Allow", "yes", "true", "allow "},
	wellknown.DatasetsKey: {"imagenet", "a, b", "", "a,a", "A", "a,", "a b", strings.Repeat("x", 64), "a-", many(16),
		many(17)},
	wellknown.DeadlineKey: times, wellknown.LastCheckpointKey: times,
	wellknown.CheckpointEveryKey: durations, wellknown.ProtectForKey: durations,
	wellknown.RestartCostKey:     durations,
	wellknown.GangKey:            {"true", "false", "True", "", "yes", `say "hi"`},
	wellknown.GPUInterconnectKey: {"required", "preferred", "Required", "", "nvlink", "required ", "tab\there", "line\nbreak", `back\slash`},
	wellknown.GPUMemoryMinKey: {
		"40Gi", "40000Mi", "1Mi", "1048576", "1e9", "1048575500m", "1Pi", "0.5Gi", "80G",
		"", "0", "-1Gi", "40", "40GB", "40 Gi", "1Ei", "1048575", "much",
	},
	wellknown.GPUModelsKey: {"Tesla-T4", "Tesla-T4|NVIDIA-A10", " a | b ", "", "|", "a||b", "a| |b", "a|",
		strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("ä", 63), strings.Repeat("a|", 31) + "a",
		strings.Repeat("a|", 32) + "a",
		strings.Repeat("a|", 32), strings.Repeat("x", 64) + "|", "|" + strings.Repeat("x", 64)},
	wellknown.GPUSharingKey: {"exclusive", "shared", "", "Shared", "no", strings.Repeat("long ", 40)},
	wellknown.IPPoolKey: {"racks", "a.b-c", "", "-a", "A", "a b", "a.", strings.Repeat("x", 253),
		strings.Repeat("x", 254)},
	wellknown.LicensesKey: {"matlab", "matlab=2, ansys", "a = 2", "a=+3", "a=1000000", "", "a=0", "a=1000001", "a=-1",
		"a=x", "a=1=2", "a=1,a=2", "=1", "A", many(16), many(17)},
	wellknown.RunTimeKey: durations,
	wellknown.SLOLatencyKey: {"250", "0.5", "5.", ".5", "1000000000", "007", "", "0", "0.0", "-1", "+1", "1e3",
		"inf", "NaN", "1000000001", "1.2.3", ".", "0x10"},
	wellknown.SLOThroughputKey:     {"250", "1000000000000", "", "0", "fast", "1000000000001"},
	wellknown.SpotKey:              {"avoid", "tolerate", "require", "", "Avoid", "sometimes", "tolerate,require"},
	wellknown.TopologyRequiredKey:  topologies,
	wellknown.TopologyPreferredKey: topologies,
	wellknown.SegmentSizeKey:       segmentSizes,
	wellknown.SegmentTopologyKey:   segmentLevels,
	// Any value is one, as far as the pod alone can tell.
	wellknown.RoleKey: {"leader", ""}, wellknown.GroupKey: {"replica-0", ""}, wellknown.StartWindowKey: {"night", ""},
}

var durations = []string{
	"90m", "3h", "1h30m", "+2h", ".5h", "1.h", "0.001ms", "5µs", "5μs", "100ns", "87600h", "3650000000ms",
	"0000000087600h",
	"", "0", "0s", "-1h", "3", "3d", "h", ".h", "1h 30m", "87600h1ns", "99999h", "1000000h", "100000000m", "10000000000s",
	"1000000000000000ms", "9223372036854775808ns", "soon", "10s", "9.999s",
}

var times = []string{
	"2026-11-21T06:00:00+01:00", "2026-11-21T06:00:00Z", "2026-11-21T06:00:00.5Z", "2028-02-29T00:00:00Z",
	"", "tomorrow", "2026-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "2026-13-01T00:00:00Z",
	"2026-11-21T24:00:00Z", "2026-11-21 06:00:00Z", "2026-11-21T06:00:00", "2026-11-21", "2026-02-30T00:00:00Z",
	"1732168800",
}

var topologies = []string{
	"topology.kubernetes.io/rack", "zone, rack", "a,b,c,d,e,f,g,h",
	"", "rack/", "my rack", "zone,rack,zone", "zone,,rack", "a,b,c,d,e,f,g,h,i", "zone, my rack",
}

var (
	segmentSizes  = []string{"8", "2", "+8", "008", "100000", "", "1", "0", "-8", "8.0", "100001", "eight", "1e3"}
	segmentLevels = []string{"topology.kubernetes.io/rack", "", "my rack"}
)

// elsewhere are the keys that pods do not carry, that no request may write, or that a test of their own looks at.
var elsewhere = []string{
	wellknown.GPUAgentKey, wellknown.GPULinksKey, wellknown.GPUModeKey, wellknown.PricePerHourKey, wellknown.IPAddressKey,
	wellknown.MinMembersByRoleKey, wellknown.RoleLabelKey, wellknown.GroupsKey, wellknown.GroupLabelKey,
	wellknown.StandInKey, wellknown.SchedulerKey, wellknown.GPUAssignedKey,
	wellknown.SLAClassKey,
}

// many is a list of that many names.
func many(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = "n" + string(rune('a'+i))
	}
	return strings.Join(names, ",")
}

func TestTheTableHasEveryKeyThatPodsCarry(t *testing.T) {
	t.Parallel()
	keys := slices.Clone(elsewhere)
	for key := range podValues {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	if diff := cmp.Diff(wellknown.Own(), keys); diff != "" {
		t.Errorf("keys (-own +in the table or elsewhere):\n%s", diff)
	}
}

// said is what the scheduler's readers say of a pod, empty if they can read it.
func said(pod *corev1.Pod) string {
	keys := gpuview.DefaultKeys()
	_, gpuErr := keys.PodGPURequest(pod)
	_, topologyErr := read.TopologyOf(nil, pod)
	_, gangErr := (*read.OwnerPolicy)(nil).GangOf(pod)
	for _, err := range []error{gpuErr, topologyErr, gangErr} {
		var bad *wellknown.BadValue
		if errors.As(err, &bad) {
			return bad.Error()
		}
	}
	_, _, badSpot := priceview.PodSpotPolicy(pod)
	_, badWindow := priceview.PodStartWindow(pod)
	_, badObjective := podview.PodObjective(pod)
	_, _, badClass := podview.NamedSLAClass(pod)
	_, badLicenses := podview.PodLicenses(pod)
	_, badDatasets := podview.PodDatasets(pod)
	_, badIPPool := podview.PodIPPool(pod)
	_, badBackfill := read.Backfill(pod)
	_, badRunTime := work.DeclaredRunTime(pod)
	_, badWork := work.Declared(pod)
	_, badSaved := work.Saved(pod)
	for _, bad := range []*wellknown.BadValue{badSpot, badWindow, badObjective, badClass, badLicenses,
		badDatasets, badIPPool, badBackfill,
		badRunTime, badWork, badSaved} {
		if bad != nil {
			return bad.Error()
		}
	}
	return ""
}

func testValues(t *testing.T, w *guarded) {
	compare := func(t *testing.T, pod *corev1.Pod, want string) {
		t.Helper()
		_, err := w.user.CoreV1().Pods("default").Create(t.Context(), pod, dryRun)
		if got := denial(err); got != want {
			t.Errorf("annotations %q\nadmission: %s\nscheduler: %s", pod.Annotations, got, want)
		}
	}
	for key, values := range podValues {
		for _, value := range values {
			pod := podWith(map[string]string{key: value})
			compare(t, pod, said(pod))
		}
	}
	together := podWith(map[string]string{wellknown.TopologyRequiredKey: "a,b,c,d,e",
		wellknown.TopologyPreferredKey: "e,f,g,h,i"})
	compare(t, together, said(together))
	for _, size := range segmentSizes {
		for _, level := range segmentLevels {
			pod := podWith(map[string]string{wellknown.SegmentSizeKey: size, wellknown.SegmentTopologyKey: level})
			compare(t, pod, said(pod))
		}
	}
	class := podWith(map[string]string{wellknown.SLAClassKey: "gold"})
	compare(t, class, said(class))
	class.Labels = map[string]string{wellknown.SLAClassKey: "silver"}
	compare(t, class, said(class))
}

func testTemplates(t *testing.T, w *guarded) {
	user := newApplier(t, w.configOf(team))
	refused := said(podWith(map[string]string{wellknown.SpotKey: "sometimes"}))
	const selected = "{selector: {matchLabels: {app: x}}, template: TEMPLATE}"
	for _, test := range []struct{ version, kind, restart, spec string }{
		{"apps/v1", "Deployment", "Always", selected},
		{"apps/v1", "StatefulSet", "Always", selected},
		{"apps/v1", "DaemonSet", "Always", selected},
		{"apps/v1", "ReplicaSet", "Always", selected},
		{"v1", "ReplicationController", "Always", "{selector: {app: x}, template: TEMPLATE}"},
		{"batch/v1", "Job", "Never", "{template: TEMPLATE}"},
		{"batch/v1", "CronJob", "Never", `{schedule: "@daily", jobTemplate: {spec: {template: TEMPLATE}}}`},
	} {
		for spot, want := range map[string]string{"sometimes": refused, "avoid": ""} {
			template := fmt.Sprintf("{metadata: {labels: {app: x}, annotations: {berth.dev/spot: %s}}, "+
				"spec: {restartPolicy: %s, containers: [{name: main, image: image}]}}", spot, test.restart)
			object := fmt.Appendf(nil, "{apiVersion: %s, kind: %s, metadata: {name: x, namespace: default}, spec: %s}",
				test.version, test.kind, strings.Replace(test.spec, "TEMPLATE", template, 1))
			if got := denial(user.apply(t, unstructuredObjects(t, object)[0], metav1.DryRunAll)); got != want {
				t.Errorf("%s with %s: got %s, want %s", test.kind, spot, got, want)
			}
		}
	}
}

// groupsAs is a client of another user for PodGroups of the namespace default.
func (w *guarded) groupsAs(t *testing.T, user string) dynamic.ResourceInterface {
	t.Helper()
	return newApplier(t, w.configOf(user)).client.Resource(podGroups).Namespace("default")
}

func groupWith(name string, annotations map[string]string) *unstructured.Unstructured {
	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "spec": map[string]any{"minMember": int64(2)},
	}}
	group.SetName(name)
	group.SetAnnotations(annotations)
	return group
}

// createGroup tries to create a PodGroup and returns the denial.
func (w *guarded) createGroup(ctx context.Context, t *testing.T, annotations map[string]string) string {
	t.Helper()
	_, err := w.groupsAs(t, team).Create(ctx, groupWith("train", annotations), dryRun)
	return denial(err)
}

func testPodGroups(t *testing.T, w *guarded) {
	for key, values := range map[string][]string{
		wellknown.TopologyRequiredKey: topologies, wellknown.TopologyPreferredKey: topologies,
		wellknown.LastCheckpointKey: times, wellknown.CheckpointEveryKey: durations,
		wellknown.ProtectForKey: durations, wellknown.RestartCostKey: durations,
		wellknown.SegmentSizeKey: segmentSizes, wellknown.SegmentTopologyKey: segmentLevels,
		wellknown.BackfillKey:   {"allow", "", "yes"},
		wellknown.RoleLabelKey:  {"role", "example.com/role", "", "/", "my role"},
		wellknown.GroupLabelKey: {"group", "example.com/group", "", "/", "my group"},
		wellknown.GroupsKey:     {"[{name: a, pods: 2}]", "", "  ", "[{name: a, pods: 2}]" + strings.Repeat(" ", 1<<14)},
		wellknown.MinMembersByRoleKey: {
			"leader=1,worker=7", "leader=1, worker = 7", "a=0", "a=100000",
			"", "leader", "leader=", "=1", "a=1,a=2", "a=-1", "a=100001", "a=x", "a b=1", "a=1=2",
		},
	} {
		for _, value := range values {
			w.comparePodGroup(t, map[string]string{key: value})
		}
	}
}

// comparePodGroup checks that admission says of the annotations what the scheduler says.
func (w *guarded) comparePodGroup(t *testing.T, annotations map[string]string) {
	t.Helper()
	group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "train", Annotations: annotations}}
	_, topologyErr := read.TopologyOf(group, &corev1.Pod{})
	_, specErr := read.Spec(group, 0)
	_, badWork := work.Declared(group)
	_, badSaved := work.Saved(group)
	want := ""
	for _, bad := range []*wellknown.BadValue{badWork, badSaved} {
		if bad != nil {
			want = bad.Error()
		}
	}
	for _, err := range []error{topologyErr, specErr} {
		if err != nil {
			want = err.Error()
		}
	}
	if got := w.createGroup(t.Context(), t, annotations); got != want {
		t.Errorf("annotations %q\nadmission: %s\nscheduler: %s", annotations, got, want)
	}
}

func testOldValues(t *testing.T, w *guarded) {
	ctx := t.Context()
	pod := podWith(map[string]string{wellknown.SpotKey: "avoid"})
	created, err := w.user.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
	require.NoError(t, err)
	edit := func(patch string) error {
		_, err := w.user.CoreV1().Pods("default").Patch(ctx, created.Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{})
		return err
	}
	want := said(podWith(map[string]string{wellknown.SpotKey: "never"}))
	if got := denial(edit(`{"metadata":{"annotations":{"berth.dev/spot":"never"}}}`)); got != want {
		t.Errorf("changing the value to a bad one: got %s, want %s", got, want)
	}
	// The status subresource can write annotations, and the policy of values does not look at it.
	status := []byte(`{"metadata":{"annotations":{"berth.dev/spot":"never"}}}`)
	if _, err := w.user.CoreV1().Pods("default").Patch(ctx, created.Name, types.MergePatchType, status,
		metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	if err := edit(`{"metadata":{"labels":{"a":"b"}}}`); err != nil {
		t.Errorf("labelling a pod that has a bad value: %v", err)
	}
}
