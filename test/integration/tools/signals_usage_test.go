package tools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/showback"
	"berth.dev/berth/pkg/showback/history"
)

// TestUseIsReadFromARealPrometheus reads an hour of a day ago, in which two namespaces had GPUs.
func TestUseIsReadFromARealPrometheus(t *testing.T) {
	t.Parallel()
	from := time.Now().UTC().Truncate(time.Hour).Add(-24 * time.Hour)
	var lines []string
	family := func(name string, series map[string]string) {
		lines = append(lines, "# TYPE "+name+" gauge")
		for labels, value := range series {
			for at := from.Add(-10 * time.Minute); at.Before(from.Add(70 * time.Minute)); at = at.Add(time.Minute) {
				// From half past the hour there is nothing of the second half's pods.
				if strings.Contains(labels, "first-half") && at.Sub(from) >= 30*time.Minute-5*time.Minute {
					continue
				}
				lines = append(lines, fmt.Sprintf("%s{%s} %s %d", name, labels, value, at.Unix()))
			}
		}
	}
	family("kube_pod_resource_request", map[string]string{
		// Two schedulers say the same of one pod, and the target's labels hide the pod's own.
		`cluster="here",namespace="kube-system",pod="s-0",exported_namespace="ml",exported_pod="a",exported_node="n1",node="m",resource="nvidia.com/gpu",instance="s0"`: "2",
		`cluster="here",namespace="kube-system",pod="s-1",exported_namespace="ml",exported_pod="a",exported_node="n1",node="m",resource="nvidia.com/gpu",instance="s1"`: "2",
		`cluster="here",namespace="ml",pod="a",node="n1",resource="cpu"`:                                                                                                "16",
		`cluster="here",namespace="ml",pod="pending",resource="nvidia.com/gpu"`:                                                                                         "8",
		`cluster="there",namespace="ml",pod="c",node="n1",resource="nvidia.com/gpu"`:                                                                                    "8",
		`cluster="here",namespace="web",pod="first-half",node="n2",resource="nvidia.com/gpu"`:                                                                           "4",
	})
	// Of one pod the scheduler says nothing, and one has ended.
	family("kube_pod_container_resource_requests", map[string]string{
		`cluster="here",namespace="old",pod="b",node="n1",container="x",resource="nvidia_com_gpu",instance="k"`:    "1",
		`cluster="here",namespace="old",pod="b",node="n1",container="y",resource="nvidia_com_gpu",instance="k"`:    "1",
		`cluster="here",namespace="old",pod="done",node="n1",container="y",resource="nvidia_com_gpu",instance="k"`: "1",
		`cluster="here",namespace="ml",pod="a",node="n1",container="y",resource="nvidia_com_gpu",instance="k"`:     "2",
	})
	family("kube_pod_status_phase", map[string]string{
		`cluster="here",namespace="old",pod="b",phase="Running"`:      "1",
		`cluster="here",namespace="old",pod="done",phase="Succeeded"`: "1",
		`cluster="here",namespace="old",pod="done",phase="Running"`:   "0",
	})
	family("DCGM_FI_DEV_GPU_UTIL", map[string]string{
		`cluster="here",gpu="0",UUID="GPU-0",namespace="monitoring",pod="dcgm",exported_namespace="ml",exported_pod="a"`: "50",
		`cluster="here",gpu="1",UUID="GPU-1",namespace="monitoring",pod="dcgm",exported_namespace="ml",exported_pod="a"`: "100",
		// No pod has this one: the labels are those of the exporter.
		`cluster="here",gpu="2",UUID="GPU-2",namespace="monitoring",pod="dcgm"`: "100",
		`cluster="here",gpu="3",UUID="GPU-3",namespace="old",pod="b"`:           "9223372036854775794",
	})
	family("node_gpu_hourly_cost", map[string]string{`cluster="here",node="n1"`: "2.5"})
	family("berth_gpu_devices", map[string]string{`cluster="here",model="A100",instance="s0"`: "8", `cluster="here",model="A100",instance="s1"`: "8",
		`cluster="here",model="T4",instance="s0"`: "2"})
	// The label of pod a was changed to ml-2 half an hour in, one pod has none, and one has both labels of gangs.
	family("kube_pod_labels", map[string]string{
		`cluster="here",namespace="kube-system",pod="ksm",exported_namespace="ml",exported_pod="a",label_cost_center="first-half"`:                                  "1",
		`cluster="here",namespace="kube-system",pod="ksm",exported_namespace="ml",exported_pod="a",label_cost_center="ml-2"`:                                        "1",
		`cluster="here",namespace="web",pod="first-half",label_app="x",label_scheduling_x_k8s_io_pod_group="one",label_pod_group_scheduling_sigs_k8s_io_name="two"`: "1",
		`cluster="here",namespace="old",pod="b",label_pod_group_scheduling_sigs_k8s_io_name="three"`:                                                                "1",
		`cluster="there",namespace="old",pod="b",label_cost_center="elsewhere"`:                                                                                     "1",
	})
	server := startPrometheus(t, "", backfill(t, lines), "")
	args := gpuArgs(server.url).Prometheus
	args.MatchLabels = map[string]string{"cluster": "here"}
	query := history.Query{From: from, To: from.Add(time.Hour), Step: time.Minute, By: by(t, "namespace"),
		Resources: []string{"nvidia.com/gpu"}}
	s, err := history.Read(t.Context(), &args, query)
	if err != nil {
		t.Fatal(err)
	}
	const hour = 3_600_000
	used := int64(1.5 * hour)
	want := []showback.Line{
		{Key: "ml", MilliGPUSeconds: 2 * hour, MicroDollars: 5_000_000, UsedMilliGPUSeconds: &used},
		{Key: "old", MilliGPUSeconds: 2 * hour, MicroDollars: 5_000_000},
		// Prometheus takes a value to hold for five minutes.
		{Key: "web", MilliGPUSeconds: 2 * hour},
	}
	if diff := cmp.Diff(want, s.Lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if s.Idle.MilliGPUSeconds != 4*hour || s.Total.MilliGPUSeconds != 10*hour || !s.Measured || s.Source != "prometheus" {
		t.Errorf("idle %+v of %+v, measured %t, from %s; want 4 of 10 GPU-hours", s.Idle, s.Total, s.Measured, s.Source)
	}
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "dollars are those of the GPUs") {
		t.Errorf("notes: %q", s.Notes)
	}
	testUseByLabels(t, &args, query)
	query.From, query.To = from.Add(-48*time.Hour), from.Add(-47*time.Hour)
	if s, err := history.Read(t.Context(), &args, query); err == nil ||
		!strings.Contains(err.Error(), "has neither kube_pod_resource_request") {
		t.Errorf("of a time without samples: %+v, %v, want an error that says what is missing", s, err)
	}
}

func by(t *testing.T, text string) showback.By {
	t.Helper()
	b, err := showback.ParseBy(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// testUseByLabels reads the same hour by what kube-state-metrics says of the pods.
func testUseByLabels(t *testing.T, args *config.Prometheus, query history.Query) {
	t.Helper()
	const hour = 3_600_000
	used := int64(1.5 * hour)
	for _, test := range []struct {
		by    string
		lines []showback.Line
		note  string
	}{
		{"gang", []showback.Line{
			{Key: "old/three", MilliGPUSeconds: 2 * hour, MicroDollars: 5_000_000},
			{Key: "(none)", MilliGPUSeconds: 2 * hour, MicroDollars: 5_000_000, UsedMilliGPUSeconds: &used},
			{Key: "web/one", MilliGPUSeconds: 2 * hour},
		}, "gangs of a controller without a label"},
		{"label=absent", []showback.Line{
			{Key: "(none)", MilliGPUSeconds: 6 * hour, MicroDollars: 10_000_000, UsedMilliGPUSeconds: &used},
		}, "--metric-labels-allowlist=pods=[absent]"},
	} {
		query.By = by(t, test.by)
		s, err := history.Read(t.Context(), args, query)
		if err != nil {
			t.Fatalf("by %s: %v", test.by, err)
		}
		if diff := cmp.Diff(test.lines, s.Lines,
			cmpopts.SortSlices(func(a, b showback.Line) bool { return a.Key < b.Key })); diff != "" {
			t.Errorf("by %s (-want +got):\n%s", test.by, diff)
		}
		if !slices.ContainsFunc(s.Notes, func(note string) bool { return strings.Contains(note, test.note) }) ||
			s.By != test.by {
			t.Errorf("by %s: %q, notes %q", test.by, s.By, s.Notes)
		}
	}
	// While the series of both values of pod a last, either counts, and never both.
	query.By = by(t, "label=costCenter")
	s, err := history.Read(t.Context(), args, query)
	if err != nil {
		t.Fatal(err)
	}
	had := map[string]int64{}
	for _, line := range s.Lines {
		had[line.Key] = line.MilliGPUSeconds
	}
	if had["first-half"]+had["ml-2"] != 2*hour || had["ml-2"] < hour || had[showback.None] != 4*hour {
		t.Errorf("by a label that was changed: %v", had)
	}
}
