package wellknown

import (
	"slices"
	"testing"
)

func TestOwnKeysAreSorted(t *testing.T) {
	t.Parallel()
	if keys := Own(); !slices.IsSorted(keys) || !slices.Contains(keys, SpotKey) {
		t.Errorf("got %v", keys)
	}
}
