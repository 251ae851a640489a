package box

import (
	"testing"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/require"
)

// Port reserves a port of loopback for a server of the test, until the test ends.
func Port(t *testing.T) *sandbox.Port {
	t.Helper()
	reservation, err := sandbox.ReservePort(0)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := reservation.Close(); err != nil {
			t.Error(err)
		}
	})
	return reservation
}
