package dump

import (
	"testing"

	"berth.dev/berth/pkg/gpuview"
)

func TestPlatformLabelsAreKeptInDumps(t *testing.T) {
	t.Parallel()
	for _, key := range gpuview.ProviderLabels() {
		if !openLabel(key) {
			t.Errorf("the value of %s would be hidden, and with it the GPUs of the node", key)
		}
	}
}
