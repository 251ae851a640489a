// Command admission measures what the policies of manifests/admission cost when pods are written: pods are created one
// after the other, in turns without and with the policies, and the API server's processor time and the latency of the
// requests are compared.
//
//	go run ./hack/bench/admission
package main

import (
	"context"
	"errors"
	"fmt"
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
		"berth.dev/near": "app=cache 20GiB/h; app=queue", "berth.dev/licenses": "matlab=2,ansys", "berth.dev/spot": "avoid",
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
	Pods            string  `json:"pods"`
	Policies        bool    `json:"policies"`
	MedianMillis    float64 `json:"medianMillis"`
	P95Millis       float64 `json:"p95Millis"`
	CPUMillisPerPod float64 `json:"cpuMillisPerPod"`
}

var figures = []rig.Figure[result]{
	rig.Column("p50, ms", "%.2f", func(r result) float64 { return r.MedianMillis }),
	rig.Column("p95, ms", "%.2f", func(r result) float64 { return r.P95Millis }),
	rig.Column("CPU ms a pod", "%.2f", func(r result) float64 { return r.CPUMillisPerPod }),
}

func bench(ctx context.Context, out io.Writer) (any, error) {
	measured := map[bool][]sample{false: make([]sample, len(kinds)), true: make([]sample, len(kinds))}
	node := []byte("shapes:\n- {name: n, count: 1, allocatable: {cpu: \"8\", memory: 32Gi, pods: \"110\"}}\n")
	if err := live.On(ctx, node, func(ctx context.Context, bed *live.Bed) error {
		team, err := prepare(ctx, bed)
		if err != nil {
			return fmt.Errorf("preparing the namespace: %w", err)
		}
		// The first turn of each warms up and is not counted.
		for round := range *rounds + 1 {
			for _, with := range []bool{false, true} {
				if err := bed.Policies(ctx, "manifests/admission", with); err != nil {
					return err
				}
				if err := await(ctx, team, with); err != nil {
					return err
				}
				for i, kind := range kinds {
					s, err := create(ctx, bed, team, kind.annotations)
					if err != nil {
						return err
					}
					if of := &measured[with][i]; round > 0 {
						of.latencies, of.cpu = append(of.latencies, s.latencies...), of.cpu+s.cpu
					}
				}
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	var results []result
	for i, kind := range kinds {
		for _, with := range []bool{false, true} {
			s := measured[with][i]
			results = append(results, result{kind.name, with, 1000 * rig.Percentile(s.latencies, 50),
				1000 * rig.Percentile(s.latencies, 95), 1000 * s.cpu.Seconds() / float64(len(s.latencies))})
		}
	}
	return results, rig.Table(out, []string{"pods", "policies"}, func(r result) []string {
		return []string{r.Pods, map[bool]string{true: "with", false: "without"}[r.Policies]}
	}, figures, results)
}

// prepare makes a namespace whose pods get their scheduler, and a user who may write pods there: administrators are
// exempt from some of the policies.
func prepare(ctx context.Context, bed *live.Bed) (kubernetes.Interface, error) {
	if err := bed.Namespace(ctx, namespace); err != nil {
		return nil, err
	}
	label := []byte(`{"metadata":{"labels":{"berth.dev/scheduler":"berth-scheduler"}}}`)
	if _, err := bed.Client.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType, label,
		metav1.PatchOptions{}); err != nil {
		return nil, err
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}}}}
	if _, err := bed.Client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}}
	if _, err := bed.Client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return bed.As(user)
}

func podWith(annotations map[string]string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-", Annotations: annotations},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "image"}}}}
}

// await waits until a pod with values and devices that the policies refuse is refused, or is not any more.
func await(ctx context.Context, team kubernetes.Interface, with bool) error {
	for _, key := range []string{"berth.dev/spot", "berth.dev/gpu-assigned"} {
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true,
			func(ctx context.Context) (bool, error) {
				_, err := team.CoreV1().Pods(namespace).Create(ctx, podWith(map[string]string{key: "bad"}),
					metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				var refused *apierrors.StatusError
				return (err != nil && errors.As(err, &refused)) == with, nil
			})
		if err != nil {
			return fmt.Errorf("waiting for the policies to be there (%t): %w", with, err)
		}
	}
	return nil
}

// create creates pods one after the other, and removes them when they have been measured.
func create(ctx context.Context, bed *live.Bed, team kubernetes.Interface, annotations map[string]string) (s sample,
	err error) {
	use, err := bed.Measure(ctx, nil, func() error {
		for range *pods {
			from := time.Now()
			if _, err := team.CoreV1().Pods(namespace).Create(ctx, podWith(annotations), metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("creating a pod: %w", err)
			}
			s.latencies = append(s.latencies, time.Since(from).Seconds())
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	s.cpu = use.ControlPlaneCPU
	return s, bed.Empty(ctx, namespace)
}
