package tools_test

import (
	"encoding/json"
	"testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/process/rights"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// customScheduler is a configuration of two profiles with one plugin each, as tutorials on custom schedulers have it.
const customScheduler = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
clientConnection:
  qps: 50
profiles:
  - schedulerName: gpu-aware-scheduler
    plugins:
      filter:
        enabled:
          - name: GPUAware
      score:
        enabled:
          - name: GPUAware
            weight: 5
  - schedulerName: cost-optimized-scheduler
    plugins:
      score:
        enabled:
          - name: CostOptimized
            weight: 5
`

// stockRolesAreEnough runs as many second schedulers do, with the stock roles alone. Without that for volumes a
// scheduler schedules nothing.
func stockRolesAreEnough(t *testing.T, shared *box.Box) {
	s := newSite(t, shared, "article", gpuNode)
	who := newAccount(t, shared, "custom-scheduler", nil, "system:kube-scheduler")
	file := write(t, "scheduler-config.yaml", s.config(t, customScheduler, who.kubeconfig(t, nil)))
	box.Command(t, "berth-scheduler", "--config="+file, "--secure-port=0", "--v=3").AwaitLog(t,
		"The scheduler cannot run", "get,list,watch storageclasses.storage.k8s.io (VolumeBinding")
	who.bind(t, "system:volume-scheduler")
	box.Command(t, "berth-scheduler", "--config="+file, "--secure-port=0", "--v=3")
	for name, profile := range map[string]string{"ml-training": "gpu-aware-scheduler",
		"batch-processing": "cost-optimized-scheduler"} {
		s.create(t, name, func(pod *v1.Pod) {
			pod.Spec.SchedulerName = s.profile(profile)
			asking(pod, "4")
		})
		s.Bound(t, name, "")
	}

	status, out, said := berth(t, "validate", "--cluster", "--account=kube-system/custom-scheduler", "--output=json",
		"--kubeconfig="+s.Kubeconfig(), file)
	var report struct {
		Rights rights.Report `json:"rights"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	missing, want := map[string]rights.Weight{}, 0
	for _, m := range report.Rights.Missing {
		missing[m.Right()] = m.Weight
		switch m.Weight {
		case rights.Vital:
			t.Errorf("a vital right is missing: %s", m)
		case rights.Feature:
			want = 3
		}
	}
	if status != want {
		t.Errorf("berth validate ended with %d, want exit status %d: %s", status, want, said)
	}
	if missing["patch nodes"] != rights.Conditional {
		t.Errorf("missing rights are %v, want the conditional right patch nodes among them", missing)
	}
}
