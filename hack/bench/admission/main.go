// Command admission measures what the policies of manifests/admission cost when pods are written: pods are created one
// after the other, in turns without and with the policies, and the API server's processor time and the latency of the
// requests are compared.
//
//	go run ./hack/bench/admission
package main

import (
	"context"
	"errors"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/hack/bench/rig"
)

var (
	pods   = rig.Count("pods", 500, "pods of each kind in each turn")
	rounds = rig.Count("rounds", 4, "turns without the policies, and turns with them")
)

const namespace, user = "bench", "team"

func main() {
	rig.Main("measures what the policies of manifests/admission cost when pods are written.", bench)
}

// kinds are pods by what they say: nothing, and values of several keys.
var kinds = []struct {
	name        string
	annotations map[string]string
}{
	{"plain", nil},
	{"annotated", map[string]string{
		"berth.dev/licenses": "matlab=2,ansys", "berth.dev/spot": "avoid",
		"berth.dev/topology-required": "topology.kubernetes.io/zone,topology.kubernetes.io/rack",
		"alibabacloud.com/gpu-milli":  "300",
	}},
}

// sample is what was measured of one kind of pods.
type sample struct {
	latencies []float64
	cpu       time.Duration
}

// result is what one kind of pods showed, with or without the policies.
type result struct {
	Pods            string  `json:"pods" row:"pods"`
	Policies        string  `json:"policies" row:"policies"`
	MedianMillis    float64 `json:"medianMillis" column:"p50, ms|%.2f"`
	P95Millis       float64 `json:"p95Millis" column:"p95, ms|%.2f"`
	CPUMillisPerPod float64 `json:"cpuMillisPerPod" column:"CPU ms a pod|%.2f"`
}

func bench(ctx context.Context, out io.Writer) (any, error) {
	measured := map[bool][]sample{false: make([]sample, len(kinds)), true: make([]sample, len(kinds))}
	node := []byte("shapes:\n- {name: n, count: 1, allocatable: {cpu: \"8\", memory: 32Gi, pods: \"110\"}}\n")
	if err := live.On(ctx, node, func(bed *live.Bed) {
		team := prepare(bed)
		// The first turn of each warms up and is not counted.
		for round := range *rounds + 1 {
			for _, with := range []bool{false, true} {
				bed.Policies("manifests/admission", with)
				await(bed, team, with)
				for i, kind := range kinds {
					if s, of := create(bed, team, kind.annotations), &measured[with][i]; round > 0 {
						of.latencies, of.cpu = append(of.latencies, s.latencies...), of.cpu+s.cpu
					}
				}
			}
		}
	}); err != nil {
		return nil, err
	}
	var results []result
	policies := map[bool]string{false: "without", true: "with"}
	for i, kind := range kinds {
		for _, with := range []bool{false, true} {
			s := measured[with][i]
			results = append(results, result{kind.name, policies[with], 1000 * rig.Percentile(s.latencies, 50),
				1000 * rig.Percentile(s.latencies, 95), 1000 * s.cpu.Seconds() / float64(len(s.latencies))})
		}
	}
	return results, rig.Table(out, results)
}

// prepare makes a namespace whose pods get their scheduler, and a user who may write pods there: administrators are
// exempt from some of the policies.
func prepare(bed *live.Bed) kubernetes.Interface {
	bed.Namespace(namespace)
	ctx, name := bed.Context(), metav1.ObjectMeta{Name: user}
	label := []byte(`{"metadata":{"labels":{"berth.dev/scheduler":"berth-scheduler"}}}`)
	rig.Must(bed.Client.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType, label, metav1.PatchOptions{}))
	rig.Must(bed.Client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name,
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}}}},
		metav1.CreateOptions{}))
	rig.Must(bed.Client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: name,
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}}, metav1.CreateOptions{}))
	return bed.As(user)
}

func podWith(annotations map[string]string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-", Annotations: annotations},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "image"}}}}
}

// await waits until a pod with values and devices that the policies refuse is refused, or is not any more.
func await(bed *live.Bed, team kubernetes.Interface, with bool) {
	for _, key := range []string{"berth.dev/spot", "berth.dev/gpu-assigned"} {
		rig.Check(wait.PollUntilContextTimeout(bed.Context(), 100*time.Millisecond, time.Minute, true,
			func(ctx context.Context) (bool, error) {
				_, err := team.CoreV1().Pods(namespace).Create(ctx, podWith(map[string]string{key: "bad"}),
					metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				var refused *apierrors.StatusError
				return errors.As(err, &refused) == with, nil
			}), "waiting for the policies to be there (%t)", with)
	}
}

// create creates pods one after the other, and removes them when they have been measured.
func create(bed *live.Bed, team kubernetes.Interface, annotations map[string]string) (s sample) {
	s.cpu = bed.Measure(nil, func() {
		for range *pods {
			from := time.Now()
			rig.Must(team.CoreV1().Pods(namespace).Create(bed.Context(), podWith(annotations), metav1.CreateOptions{}))
			s.latencies = append(s.latencies, time.Since(from).Seconds())
		}
	}).ControlPlaneCPU
	bed.Empty(namespace)
	return s
}
