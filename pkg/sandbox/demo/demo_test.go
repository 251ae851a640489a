package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/test/harness/require"
)

// Jobs run until they are deleted, and a cluster that stays up takes the examples once more.
func TestWorkloadsAreAsKubectlAppliesThem(t *testing.T) {
	t.Parallel()
	for _, w := range workloads {
		objects, err := w.objects()
		require.NoError(t, err)
		for _, object := range objects {
			delay, _, err := unstructured.NestedString(object.Object, "spec", "template", "metadata", "annotations", delayKey)
			if err != nil || (delay != "") != (object.GetKind() == "Job") {
				t.Errorf("%s %s: it ends after %q (%v)", object.GetKind(), object.GetName(), delay, err)
			}
			written := object.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
			if !strings.Contains(written, object.GetName()) || strings.Contains(written, delayKey) {
				t.Errorf("%s %s: kubectl would take %q for what was applied last", object.GetKind(), object.GetName(), written)
			}
		}
	}
}

// asItShouldBe is an outcome that passes every check.
func asItShouldBe() *Outcome {
	o := &Outcome{Nodes: map[string]*Node{}}
	node := func(name, model string, gpus, milli int) {
		o.Nodes[name] = &Node{Name: name, Model: model, GPUs: gpus, Milli: milli}
	}
	node("a", "NVIDIA-A100-SXM4-80GB", 8, 4*gpu.WholeMilli)
	node("l", "NVIDIA-L4", 4, 1800)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	place := func(workload, node string, n, gpus, milli int, devices ...int) {
		at = at.Add(10 * time.Millisecond)
		o.Placements = append(o.Placements, Placement{
			Workload: workload, Pod: fmt.Sprintf("%s-%d", workload, n), Node: node, GPUs: gpus, Milli: milli, Devices: devices,
			BoundAt: at,
		})
	}
	place("ml-training", "a", 0, 4, gpu.WholeMilli)
	for i := range 4 {
		place("batch-processing", "a", i, 0, 0)
	}
	for i := range 6 {
		place("inference-shared", "l", i, 1, 300, i/3)
	}
	for i := range 8 {
		name := fmt.Sprintf("b%d", i/2)
		node(name, "NVIDIA-A100-SXM4-80GB", 8, 8*gpu.WholeMilli)
		place("gang-training", name, i, 4, gpu.WholeMilli)
	}
	o.Pending = []Pending{{Workload: "gang-too-large", Pods: 24, Why: "needs 24 × 8 nvidia.com/gpu, fits 17"}}
	return o
}

func TestChecks(t *testing.T) {
	t.Parallel()
	// last returns the placement of a workload's last pod.
	last := func(o *Outcome, workload string) *Placement {
		for i := len(o.Placements) - 1; i >= 0; i-- {
			if o.Placements[i].Workload == workload {
				return &o.Placements[i]
			}
		}
		return nil
	}
	tests := []struct {
		name  string
		spoil func(o *Outcome)
		// fails is the claim that no longer holds; empty: all hold.
		fails string
	}{
		{"all claims hold of the outcome that is meant", func(*Outcome) {}, ""},
		{"GPUs without links do not do for training", func(o *Outcome) { last(o, "ml-training").Node = "l" }, "ml-training"},
		{"a batch pod on a node of its own adds it to the bill", func(o *Outcome) {
			o.Nodes["idle"] = &Node{Name: "idle"}
			last(o, "batch-processing").Node = "idle"
		}, "batch-processing"},
		{"seven of eight are no gang", func(o *Outcome) { last(o, "gang-training").Workload = "none" }, "gang-training"},
		{"a member that comes two minutes late shows half a gang", func(o *Outcome) {
			p := last(o, "gang-training")
			p.BoundAt = p.BoundAt.Add(2 * time.Minute)
		}, "gang-training"},
		{"a machine that binds one pod a second starts the gang as a whole, too", func(o *Outcome) {
			p := last(o, "gang-training")
			p.BoundAt = p.BoundAt.Add(8 * time.Second)
		}, ""},
		{"a second node that is half empty is one too many", func(o *Outcome) { o.Nodes["b0"].Milli = 4 * gpu.WholeMilli },
			"half empty"},
		{"a share without a device is not enforced by anybody",
			func(o *Outcome) { last(o, "inference-shared").Devices = nil }, "inference-shared"},
		{"a fourth share on one GPU gives it away twice", func(o *Outcome) { last(o, "inference-shared").Devices = []int{0} },
			"inference-shared"},
		{"a third GPU for six shares is one too many", func(o *Outcome) { last(o, "inference-shared").Devices = []int{2} },
			"inference-shared"},
		{"a placed member of the gang that does not fit holds something",
			func(o *Outcome) { last(o, "batch-processing").Workload = "gang-too-large" }, "gang-too-large"},
		{"a reason without numbers is none", func(o *Outcome) { o.Pending[0].Why = "no" }, "gang-too-large"},
		{"nothing placed at all fails without a panic", func(o *Outcome) { o.Placements, o.Pending = nil, nil },
			"ml-training"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := asItShouldBe()
			tt.spoil(o)
			failed := ""
			for _, c := range checks(o) {
				if !c.OK {
					failed += c.Claim + ": " + c.Found + "\n"
				}
			}
			if tt.fails == "" && failed != "" || !strings.Contains(failed, tt.fails) {
				t.Errorf("failed claims are %q, want those about %q", failed, tt.fails)
			}
		})
	}
}
