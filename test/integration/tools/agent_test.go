package tools_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/nodeagent/nvidiasmitest"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/box"
)

// fourGPUsInPairs answers as nvidia-smi of four GPUs with links between 0 and 1, and between 2 and 3.
const fourGPUsInPairs = `printf '\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\t X \tNV12\tSYS\tSYS\nGPU1\tNV12\t X \tSYS\tSYS\nGPU2\tSYS\tSYS\t X \tNV12\nGPU3\tSYS\tSYS\tNV12\t X \n'`

// schedulerFollowsAgent runs the agent with the rights of its manifests beside the built scheduler: a pod that needs
// linked GPUs waits until the agent has published the links.
func schedulerFollowsAgent(t *testing.T, shared *box.Box) {
	// Only the number of its GPUs is known.
	m := shared.Part(t, "agent", `shapes: [{name: gpu, count: 1, allocatable: {cpu: "64", memory: 512Gi, nvidia.com/gpu: "4"}}]`)
	installAgent(t, shared)
	linked := func(name string, gpus int64) {
		list := corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}
		m.Create(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name,
			Annotations: map[string]string{wellknown.GPUInterconnectKey: "required"}}, Spec: corev1.PodSpec{
			SchedulerName: "gpu-aware-scheduler",
			Containers: []corev1.Container{{Name: "c", Image: "work:1", Resources: corev1.ResourceRequirements{Requests: list,
				Limits: list}}},
		}})
	}
	linked("pair", 2)
	m.Pending(t, "pair", "without 2 NVLink-connected free GPUs")
	agent := box.Command(t, "berth-node-agent", "--node-name=gpu-0", "--kubeconfig="+agentKubeconfig(t, shared, "gpu-0"),
		"--nvidia-smi="+nvidiasmitest.Program(t, fourGPUsInPairs), "--listen=")
	m.Bound(t, "pair", "gpu-0")
	linked("three", 3)
	m.Pending(t, "three", "too few free GPUs (need 3, have 2)")
	if err := agent.Stop(); err != nil {
		t.Errorf("stopping the agent: %v", err)
	}
	// The links stay when the agent is gone.
	linked("other-pair", 2)
	m.Bound(t, "other-pair", "gpu-0")
}
