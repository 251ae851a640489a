package nodeagent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"berth.dev/berth/pkg/gpuview"
)

// requestTimeout bounds one request to the API server.
const requestTimeout = 15 * time.Second

// fieldManager is the name under which the API server records who set the annotations.
const fieldManager = "berth-node-agent"

// APINode is the node of that name in the API.
type APINode struct {
	Client kubernetes.Interface
	Name   string
}

// Read returns what the node says now.
func (n *APINode) Read(ctx context.Context) (*NodeState, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	node, err := n.Client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return stateOf(node), nil
}

// Write sets and removes annotations in one patch, which touches nothing else.
func (n *APINode) Write(ctx context.Context, changes map[string]*string) (*NodeState, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": changes}})
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	options := metav1.PatchOptions{FieldManager: fieldManager}
	node, err := n.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, options)
	if err != nil {
		return nil, err
	}
	return stateOf(node), nil
}

func stateOf(node *corev1.Node) *NodeState {
	return &NodeState{Annotations: gpuview.AgentAnnotations(node), HAMi: gpuview.HAMiRegistered(node)}
}
