package podresources_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// kubelet serves the PodResources API over a socket, as the kubelet does.
type kubelet struct {
	podresourcesv1.UnimplementedPodResourcesListerServer
	mu          sync.Mutex
	pods        []*podresourcesv1.PodResources
	allocatable []*podresourcesv1.ContainerDevices
	// old kubelets do not know what is allocatable.
	old bool
}

func (k *kubelet) List(context.Context,
	*podresourcesv1.ListPodResourcesRequest) (*podresourcesv1.ListPodResourcesResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return &podresourcesv1.ListPodResourcesResponse{PodResources: k.pods}, nil
}

func (k *kubelet) GetAllocatableResources(context.Context,
	*podresourcesv1.AllocatableResourcesRequest) (*podresourcesv1.AllocatableResourcesResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.old {
		return nil, status.Error(codes.Unimplemented, "unknown method GetAllocatableResources")
	}
	return &podresourcesv1.AllocatableResourcesResponse{Devices: k.allocatable}, nil
}

// serve starts the kubelet at a socket; stop ends it and removes the socket.
func (k *kubelet) serve(t *testing.T, socket string) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podresourcesv1.RegisterPodResourcesListerServer(server, k)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	return sync.OnceFunc(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Errorf("serving the kubelet's API: %v", err)
		}
	})
}

// socketPath is short enough for a socket, which paths of tests need not be.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubelet")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // left-overs do no harm
	return filepath.Join(dir, "kubelet.sock")
}

// holding is a pod with one container that holds devices.
func holding(name, resource string, ids ...string) *podresourcesv1.PodResources {
	return &podresourcesv1.PodResources{Namespace: "default", Name: name, Containers: []*podresourcesv1.ContainerResources{
		{Name: "c", Devices: []*podresourcesv1.ContainerDevices{{ResourceName: resource, DeviceIds: ids}}},
	}}
}
