package gpuview

import (
	"reflect"
	"slices"
	"sync"

	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/process/informers"
)

// ProfileKeys are the names of GPUs in all profiles of one scheduler. It is safe for concurrent use.
type ProfileKeys struct {
	mu   sync.Mutex
	keys []*Keys
}

// ProfileKeysOf returns the value that the scheduler's profiles share.
func ProfileKeysOf(factory kubeinformers.SharedInformerFactory) *ProfileKeys {
	n, _ := informers.Shared(factory, func() (*ProfileKeys, error) { return &ProfileKeys{}, nil })
	return n
}

// Add adds the names of a profile. It has to be called while the profiles are made.
func (n *ProfileKeys) Add(keys *Keys) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.ContainsFunc(n.keys, func(known *Keys) bool { return reflect.DeepEqual(known, keys) }) {
		n.keys = append(n.keys, keys)
	}
}

// All are the names of all profiles, in the order of the profiles; the defaults if no profile has any. The caller must
// not change the list.
func (n *ProfileKeys) All() []*Keys {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.keys) == 0 {
		defaults := DefaultKeys()
		return []*Keys{&defaults}
	}
	return n.keys
}
