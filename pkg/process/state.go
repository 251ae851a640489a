package process

import (
	"fmt"

	fwk "k8s.io/kube-scheduler/framework"
)

// Read returns what a plugin has written to the state of a cycle under the key, or fwk.ErrNotFound.
func Read[T fwk.StateData](state fwk.CycleState, key fwk.StateKey) (T, error) {
	var none T
	data, err := state.Read(key)
	if err != nil {
		return none, err // unwrapped, because it is compared for every node
	}
	value, ok := data.(T)
	if !ok {
		return none, fmt.Errorf("reading %s of the cycle: want %T, got %T", key, none, data)
	}
	return value, nil
}
