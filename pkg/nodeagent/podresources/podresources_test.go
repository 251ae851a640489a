package podresources_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"berth.dev/berth/pkg/nodeagent/podresources"
	"berth.dev/berth/test/harness/await"
)

var resources = podresources.Resources{"nvidia.com/gpu", "nvidia.com/mig-*"}

func newClient(t *testing.T, socket string) *podresources.Client {
	t.Helper()
	client, err := podresources.New(socket, resources)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func TestDevicesOfGPUResourcesAreRead(t *testing.T) {
	t.Parallel()
	k := &kubelet{
		pods: []*podresourcesv1.PodResources{
			holding("b", "nvidia.com/gpu", "GPU-1", "GPU-0"),
			holding("a", "nvidia.com/mig-1g.5gb", "MIG-7"),
			holding("nic", "rdma/hca", "mlx5_0"),
			holding("elsewhere", "nvidia.com/gpu.shared", "GPU-9::1"),
			{Namespace: "default", Name: "none"},
		},
		allocatable: []*podresourcesv1.ContainerDevices{
			{ResourceName: "nvidia.com/gpu", DeviceIds: []string{"GPU-2"}},
			{ResourceName: "nvidia.com/gpu", DeviceIds: []string{"GPU-0", "GPU-1"}},
			{ResourceName: "rdma/hca", DeviceIds: []string{"mlx5_0"}},
		},
	}
	socket := socketPath(t)
	t.Cleanup(k.serve(t, socket))
	got, err := newClient(t, socket).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := podresources.State{
		Held: []podresources.Held{{Pod: "default/b", ID: "GPU-0"}, {Pod: "default/b", ID: "GPU-1"},
			{Pod: "default/a", ID: "MIG-7"}},
		Offered: []string{"GPU-0", "GPU-1", "GPU-2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestAKubeletThatDoesNotTellWhatIsAllocatableTellsTheRest(t *testing.T) {
	t.Parallel()
	k := &kubelet{pods: []*podresourcesv1.PodResources{holding("a", "nvidia.com/gpu", "GPU-0")}, old: true}
	socket := socketPath(t)
	t.Cleanup(k.serve(t, socket))
	got, err := newClient(t, socket).Read(t.Context())
	if err != nil || got.Offered != nil || len(got.Held) != 1 {
		t.Errorf("state %+v, error %v", got, err)
	}
}

func TestReadingGoesOnAfterARestartOfTheKubelet(t *testing.T) {
	t.Parallel()
	socket := socketPath(t)
	client := newClient(t, socket)
	if _, err := client.Read(t.Context()); err == nil {
		t.Error("a kubelet that has not started was read")
	}
	before := &kubelet{pods: []*podresourcesv1.PodResources{holding("a", "nvidia.com/gpu", "GPU-0")}}
	stop := before.serve(t, socket)
	await.Until(t, "the kubelet that came", func() bool {
		state, err := client.Read(t.Context())
		return err == nil &&
			state.Held[0].ID == "GPU-0"
	})
	stop()
	if state, err := client.Read(t.Context()); err == nil {
		t.Errorf("a kubelet that is gone was read: %v", state)
	}
	after := &kubelet{pods: []*podresourcesv1.PodResources{holding("a", "nvidia.com/gpu", "GPU-1")}}
	t.Cleanup(after.serve(t, socket))
	await.Until(t, "the kubelet that came", func() bool {
		state, err := client.Read(t.Context())
		return err == nil &&
			state.Held[0].ID == "GPU-1"
	})
}
