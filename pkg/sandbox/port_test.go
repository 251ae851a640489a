package sandbox

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"berth.dev/berth/test/harness/require"
)

func TestAPortIsKeptWhileItsServerDoesNotListen(t *testing.T) {
	t.Parallel()
	mine, err := ReservePort(0)
	require.NoError(t, err)
	if _, err := ReservePort(mine.Number); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("reserving it a second time: got error %v, want that it is in use", err)
	}
	// The server starts, ends and starts again.
	for range 2 {
		server, err := net.Listen("tcp", mine.Address())
		if err != nil {
			t.Fatalf("the server that it is for: %v", err)
		}
		require.NoError(t, server.Close())
	}
	require.NoError(t, mine.Close())
	again, err := ReservePort(mine.Number)
	if err != nil {
		t.Fatalf("reserving it after the end: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestAPortOnWhichAServerListensIsNotReserved(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	number := server.Addr().(*net.TCPAddr).Port
	if _, err := ReservePort(number); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("got error %v, want that it is in use", err)
	}
	// The refusal holds nothing.
	holder, err := net.Listen("tcp", address(reserved, number))
	require.NoError(t, err)
	if err := holder.Close(); err != nil {
		t.Error(err)
	}
}
