package gpuview

import (
	"reflect"
	"slices"
	"sync"

	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/wellknown"
)

// ProfileKeys tells the plugins of all profiles of one scheduler by which names the profiles know GPUs. It is safe for
// concurrent use.
type ProfileKeys struct {
	mu   sync.Mutex
	keys []*Keys
}

// ProfileKeysOf returns the value that the scheduler's profiles share.
func ProfileKeysOf(factory kubeinformers.SharedInformerFactory) *ProfileKeys {
	n, _ := informers.Shared(factory, func() (*ProfileKeys, error) { return &ProfileKeys{}, nil })
	return n
}

// Add makes the names of a profile known. It has to be called while the profiles are made.
func (n *ProfileKeys) Add(keys *Keys) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.ContainsFunc(n.keys, func(known *Keys) bool { return reflect.DeepEqual(known, keys) }) {
		n.keys = append(n.keys, keys)
	}
}

// All are the names of all profiles, in the order of these; the defaults where no profile has any of its own. The
// caller must not change the list.
func (n *ProfileKeys) All() []*Keys {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.keys) == 0 {
		return defaultKeys
	}
	return n.keys
}

// defaultKeys name GPUs where no profile reads them.
var defaultKeys = []*Keys{{GPUNames: wellknown.DefaultGPUNames()}}
