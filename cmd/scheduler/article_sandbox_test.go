package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/pkg/rights"
	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// customScheduler is a configuration of two profiles with one plugin each, as tutorials on custom schedulers have it.
const customScheduler = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
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

// Many second schedulers run with the stock role alone.
func TestTheStockRoleIsEnoughToScheduleAndWhatItLacksIsSaid(t *testing.T) {
	t.Parallel()
	nodes := "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}}\n" +
		"status: {allocatable: {cpu: '96', memory: 1Ti, pods: '100', nvidia.com/gpu: '8'}}\n"
	box := box.Start(t, nodes, sandbox.Options{NoKubelet: true, NoScheduler: true})
	who := newAccount(t, box, "custom-scheduler", nil, "system:kube-scheduler")
	file := filepath.Join(t.TempDir(), "scheduler-config.yaml")
	connection := "clientConnection:\n  kubeconfig: " + who.kubeconfig(t) + "\n"
	if err := os.WriteFile(file, []byte(customScheduler+connection+"leaderElection:\n"+patientElection), 0o600); err != nil {
		t.Fatal(err)
	}
	process := startProcess(t, "--config="+file, "--secure-port=0", "--v=3")
	for name, profile := range map[string]string{"ml-training": "gpu-aware-scheduler", "batch-processing": "cost-optimized-scheduler"} {
		create(t, box, name, func(pod *v1.Pod) {
			pod.Spec.SchedulerName = profile
			resources := &pod.Spec.Containers[0].Resources
			resources.Requests["nvidia.com/gpu"] = resource.MustParse("4")
			resources.Limits = v1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}
		})
		awaitBound(t, box, name)
	}
	for _, right := range []string{"list priorityclasses.scheduling.k8s.io", "list storageclasses.storage.k8s.io"} {
		process.awaitLog(t, box, "The scheduler's account lacks a right", `right="`+right+`"`)
	}

	berth, err := sandbox.FindBinary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), berth, "validate", "--cluster", "--account=kube-system/custom-scheduler", "--output=json",
		"--kubeconfig="+box.Kubeconfig(), file)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Fatalf("berth validate ended with %v, want exit status 3", err)
	}
	var report struct {
		Rights rights.Report `json:"rights"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	missing := map[string]rights.Weight{}
	for _, m := range report.Rights.Missing {
		missing[m.Right()] = m.Weight
		if m.Weight == rights.Vital {
			t.Errorf("a vital right is missing: %s", m)
		}
	}
	if missing["list storageclasses.storage.k8s.io"] != rights.Feature || missing["patch nodes"] != rights.Conditional {
		t.Errorf("missing rights are %v, want the feature right list storageclasses.storage.k8s.io and the conditional right patch nodes "+
			"among them", missing)
	}
}
