package overview

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/assert"
)

func TestDevicesThatAreClaimed(t *testing.T) {
	t.Parallel()
	slice := parse[resourcev1.ResourceSlice](t, `
metadata: {name: a-gpus}
spec:
  driver: gpu.nvidia.com
  nodeName: a
  pool: {name: a, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {type: {string: gpu}, productName: {string: Tesla T4}, uuid: {string: GPU-0}}, capacity: {memory: {value: 16Gi}}}
  - {name: gpu-1, attributes: {type: {string: gpu}, productName: {string: Tesla T4}, uuid: {string: GPU-1}}, capacity: {memory: {value: 16Gi}}}`)
	claim := parse[resourcev1.ResourceClaim](t, `
metadata: {namespace: team, name: c, uid: c}
status:
  reservedFor: [{resource: pods, name: p, uid: p}, {resource: pods, name: q, uid: q}]
  allocation: {devices: {results: [{request: r, driver: gpu.nvidia.com, pool: a, device: gpu-1}]}}`)
	claiming := func(p *v1.Pod) { p.UID = types.UID(p.Name) }
	b := newStore(node("a", ""), slice, pod("p", "a", "cpu=1", claiming), pod("q", "a", "cpu=1", claiming))
	for _, step := range []struct {
		what string
		do   func()
		want map[string]string
		// milliGPU is what each of two pods has that share the claim.
		milliGPU int64
	}{
		{"nothing is claimed", func() {}, map[string]string{"a": "FF"}, 0},
		{"a device is claimed", func() { b.Set(claim) }, map[string]string{"a": "FA"}, 500},
		{"the claim is gone", func() { b.Delete(claim) }, map[string]string{"a": "FF"}, 0},
		{"the slice is gone", func() { b.Delete(slice) }, map[string]string{}, 0},
	} {
		step.do()
		for _, j := range b.JobList(now).Jobs {
			if j.MilliGPU != step.milliGPU || j.ScheduledMilliGPU != step.milliGPU {
				t.Errorf("%s: pod %s has %d of %d milli-GPU, want %d", step.what, j.Name, j.ScheduledMilliGPU, j.MilliGPU,
					step.milliGPU)
			}
		}
		c := b.Cluster(now)
		assert.Equal(t, step.what, step.want, states(c))
		if len(c.Nodes) > 0 && c.Nodes[0].Sharing != Claims {
			t.Errorf("%s: GPUs are given out by %s", step.what, c.Nodes[0].Sharing)
		}
	}
}

func TestPodsThatClaimAndWaitAreLeftOut(t *testing.T) {
	t.Parallel()
	claiming := func(p *v1.Pod) { p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu"}} }
	b := newStore(node("a", ""), pod("bound", "a", "cpu=1", claiming), pod("waits", "", "cpu=1", claiming),
		pod("plain", "", "cpu=1"))
	want := []string{"1 pending pod: devices that are claimed count when they are allocated"}
	assert.Equal(t, "left out", want, b.Cluster(now).LeftOut)
	assert.Equal(t, "left out of the list of jobs", want, b.JobList(now).LeftOut)
}

func TestMoney(t *testing.T) {
	t.Parallel()
	costs := func(dollars string) func(*v1.Node) {
		return func(n *v1.Node) { n.Annotations = map[string]string{wellknown.PricePerHourKey: dollars} }
	}
	b := newStore(node("a", "nvidia.com/gpu=4", costs("8")), node("host", "", costs("1")),
		node("unpriced", "nvidia.com/gpu=1"), pod("p", "a", "nvidia.com/gpu=4"))
	c := b.Cluster(now)
	// GPUs carry of the price of a what cores (16 at 3 cents) and memory (64 GiB at 0.4) leave over: 0.736 dollars are
	// idle there.
	want := Totals{Nodes: 3, NodesWithGPUs: 2, NodesInUse: 1, GPUs: 5, AllocatedMilliGPU: 4000, IdleMilliGPU: 1000,
		StrandedMilliGPU: 1000, NodesWithoutPrice: 1,
		MicroDollarsPerHour: 9 * price.Dollar, IdleMicroDollarsPerHour: price.Dollar + 736_000}
	assert.Equal(t, "totals", want, c.Totals)
	const said = `4 of 5 GPUs allocated (80%), 1 idle (1 stranded), 0 unavailable
3 nodes, 2 with GPUs, 1 in use; $9.00 an hour, $1.74 of it idle (1 node without a price)
0 pods pending; 0 gangs pending`
	assert.Equal(t, "said", said, strings.Join(c.Lines(), "\n"))
}
