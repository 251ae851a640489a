// Package podresources asks the kubelet which devices it gives out and to which pods, by its PodResources API.
package podresources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// DefaultSocket is where the kubelet serves the API unless it was given another root directory.
const DefaultSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"

const (
	// Timeout bounds one reading: the kubelet answers from memory.
	Timeout = 10 * time.Second
	// maxAnswer is the kubelet's own bound.
	maxAnswer = 16 << 20
	// longestPause is how long the connection waits before it tries a socket again that was gone.
	longestPause = 5 * time.Second
)

// Held is one device that a pod holds.
type Held struct {
	// Pod is namespace and name.
	Pod string
	// ID is the device plugin's name for the device.
	ID string
}

// State is what the kubelet knows of the devices of some resources.
type State struct {
	// Held are the devices in the hands of pods, in order of ID.
	Held []Held
	// Offered are the IDs of the devices that are healthy, whether or not a pod holds them, in order. There are none while
	// the device plugin has not registered, and from kubelets before 1.28, which do not tell.
	Offered []string
}

// Resources are the names of the resources that are read. A name that ends in an asterisk stands for all that begin
// alike.
type Resources []string

func (r Resources) has(name string) bool {
	return slices.ContainsFunc(r, func(want string) bool {
		prefix, open := strings.CutSuffix(want, "*")
		return name == want || open && strings.HasPrefix(name, prefix)
	})
}

// Client reads from one kubelet. It connects when it is first asked, and again after a restart of the kubelet.
type Client struct {
	connection *grpc.ClientConn
	api        podresourcesv1.PodResourcesListerClient
	resources  Resources
}

// New makes a client for the socket at that path. It does not wait for the kubelet.
func New(socket string, resources Resources) (*Client, error) {
	connection, err := grpc.NewClient("unix:"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 100 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: longestPause,
			},
			MinConnectTimeout: Timeout,
		}))
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the kubelet's socket %s: %w", socket, err)
	}
	return &Client{connection: connection, api: podresourcesv1.NewPodResourcesListerClient(connection),
		resources: resources}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.connection.Close() }

// Read asks for the state of the moment.
func (c *Client) Read(ctx context.Context) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	list, err := c.api.List(ctx, &podresourcesv1.ListPodResourcesRequest{})
	if err != nil {
		return State{}, explain("listing pods' devices", err)
	}
	var state State
	for _, pod := range list.GetPodResources() {
		for _, container := range pod.GetContainers() {
			for _, devices := range container.GetDevices() {
				if !c.resources.has(devices.GetResourceName()) {
					continue
				}
				for _, id := range devices.GetDeviceIds() {
					state.Held = append(state.Held, Held{Pod: pod.GetNamespace() + "/" + pod.GetName(), ID: id})
				}
			}
		}
	}
	slices.SortFunc(state.Held, func(a, b Held) int { return strings.Compare(a.ID, b.ID) })
	allocatable, err := c.api.GetAllocatableResources(ctx, &podresourcesv1.AllocatableResourcesRequest{})
	switch {
	case status.Code(err) == codes.Unimplemented:
		return state, nil
	case err != nil:
		return State{}, explain("asking for allocatable devices", err)
	}
	for _, devices := range allocatable.GetDevices() {
		if c.resources.has(devices.GetResourceName()) {
			state.Offered = append(state.Offered, devices.GetDeviceIds()...)
		}
	}
	slices.Sort(state.Offered)
	return state, nil
}

// errForbidden says what helps: the kubelet makes its folder and its socket for root.
var errForbidden = errors.New(
	"the socket may not be opened: the agent needs the user or group that the kubelet made it for, " +
		"root by default")

func explain(doing string, err error) error {
	if strings.Contains(err.Error(), "permission denied") {
		return fmt.Errorf("%s: %w (%w)", doing, errForbidden, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
