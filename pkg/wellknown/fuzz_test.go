package wellknown_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// complaint fails the test unless what is said of a bad value is a line that names the key.
func complaint(t *testing.T, err error) {
	t.Helper()
	var bad *wellknown.BadValue
	if !errors.As(err, &bad) {
		t.Fatalf("%v is not about a value", err)
	}
	if text := bad.Error(); bad.Key == "" || !strings.Contains(text, bad.Key) || bad.Allowed == "" ||
		strings.ContainsAny(text, "\n\r\x00") {
		t.Fatalf("%q is not a line that names the key and what is allowed", text)
	}
}

// FuzzPodKeys gives a pod every key that a user may write, as annotation and as label, with the same value.
func FuzzPodKeys(f *testing.F) {
	for _, seed := range []string{
		"", "true", "allow", "tolerate", "require", "40Gi", "1e99", "exclusive", "required", "0.5", "NaN", "1e-9", "8", "-1",
		"9223372036854775808", "Tesla-T4|NVIDIA-A10", "|",
		"2026-11-21T06:00:00+01:00", "matlab=2,ansys", "a/b,c/d", "leader=1,worker=3", "racks", "0-1-2", "GPU-a,NVIDIA,100,0:;", `{"pod":"p","node":"n","devices":[0],"milli":1}`, "line\nbreak", "\xff",
	} {
		f.Add(seed, seed)
	}
	keys := gpuview.DefaultKeys()
	written := slices.Concat(wellknown.Own(), gpuview.AskingKeys(), gpuview.AnswerKeys(), read.Labels())
	f.Fuzz(func(t *testing.T, annotation, label string) {
		pod := &v1.Pod{}
		pod.Name, pod.Namespace, pod.UID, pod.Spec.NodeName = "p", "ns", "p", "n"
		pod.Annotations, pod.Labels = map[string]string{}, map[string]string{gpuview.WorkloadTypeLabel: label}
		read := func() {
			if _, err := keys.PodGPURequest(pod); err != nil {
				complaint(t, err)
			}
			if w, bad := priceview.PodStartWindow(pod); bad != nil {
				complaint(t, bad)
			} else if again, err := time.Parse(time.RFC3339, w.Deadline.Format(time.RFC3339Nano)); err != nil ||
				!again.Equal(w.Deadline) {
				t.Fatalf("deadline %q is read as %s", annotation, w.Deadline)
			}
			if _, _, bad := priceview.PodSpotPolicy(pod); bad != nil {
				complaint(t, bad)
			}
			if _, bad := read.Backfill(pod); bad != nil {
				complaint(t, bad)
			}
			if _, bad := work.DeclaredRunTime(pod); bad != nil {
				complaint(t, bad)
			}
			if w, bad := work.Declared(pod); bad != nil {
				complaint(t, bad)
			} else if w.Every < 0 || w.Restart < 0 || w.Protected < 0 {
				t.Fatalf("%q is read as %+v", annotation, w)
			}
			if _, bad := work.Saved(pod); bad != nil {
				complaint(t, bad)
			}
			if bad := work.Doubtful(pod, time.Unix(0, 0)); bad != nil {
				complaint(t, bad)
			}
			if name, bad := podview.PodIPPool(pod); bad != nil {
				complaint(t, bad)
			} else if name != pod.Annotations[wellknown.IPPoolKey] {
				t.Fatalf("pool %q is read as %q", pod.Annotations[wellknown.IPPoolKey], name)
			}
			if _, bad := podview.PodDatasets(pod); bad != nil {
				complaint(t, bad)
			}
			if _, bad := podview.SLAClass(nil, pod); bad != nil {
				complaint(t, bad)
			}
			if _, err := read.TopologyOf(nil, pod); err != nil {
				complaint(t, err)
			}
			for _, d := range gpuview.AssignedDevices(pod) {
				if d < 0 || d >= gpuview.MaxGPUs {
					t.Fatalf("device %d of %q", d, annotation)
				}
			}
			if key := keys.Unassigned(pod); key != "" && pod.Annotations[key] == "" && annotation != "" {
				t.Fatalf("%s claims GPUs and is not on the pod", key)
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
