package replay

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/leak"
	"berth.dev/berth/test/harness/require"
)

func usualKeys() *gpuview.Keys {
	keys := gpuview.DefaultKeys()
	return &keys
}

// objectsOf are the objects of an input by the usual names.
func objectsOf(t *testing.T, in Input) []runtime.Object {
	t.Helper()
	stock, err := schedulerconfig.Load(schedulerconfig.Stock)
	require.NoError(t, err)
	objects, err := in.Cluster(stock, "")
	require.NoError(t, err)
	return objects
}

func TestMain(m *testing.M) {
	leak.Main(m)
}
