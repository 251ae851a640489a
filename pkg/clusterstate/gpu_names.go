package clusterstate

import (
	"reflect"
	"slices"
	"sync"

	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/kubeview"
)

// GPUNames tells the plugins of all profiles of one scheduler by which names the profiles know GPUs. It is safe for concurrent
// use.
type GPUNames struct {
	mu   sync.Mutex
	keys []*kubeview.GPUKeys
}

// GPUNamesOf returns the value that the scheduler's profiles share.
func GPUNamesOf(factory kubeinformers.SharedInformerFactory) *GPUNames {
	n, _ := informers.Shared(factory, func() (*GPUNames, error) { return &GPUNames{}, nil })
	return n
}

// Add makes the names of a profile known. It has to be called while the profiles are made.
func (n *GPUNames) Add(keys *kubeview.GPUKeys) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.ContainsFunc(n.keys, func(known *kubeview.GPUKeys) bool { return reflect.DeepEqual(known, keys) }) {
		n.keys = append(n.keys, keys)
	}
}

// All are the names of all profiles, in the order of these; none where no profile has any of its own.
func (n *GPUNames) All() []*kubeview.GPUKeys {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.keys)
}
