package dashboard

import (
	"net"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/test/harness/require"
)

func TestOnlyLoopbackIsServed(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "0.0.0.0:0")
	require.NoError(t, err)
	defer listener.Close()
	if err := New(overview.Source{}).Serve(t.Context(), listener, func(string) { t.Error("it serves") }); err == nil ||
		!strings.Contains(err.Error(), "loopback") {
		t.Errorf("the error is %v", err)
	}
}

func TestAnHourIsKept(t *testing.T) {
	t.Parallel()
	s := New(overview.Source{Cluster: cluster})
	if plots := s.plots(); len(plots) != 0 {
		t.Errorf("without samples there are %d plots", len(plots))
	}
	now := time.Now()
	for i := range samples + 50 {
		s.history = append(s.history, sample{now.Add(time.Duration(i) * sampleEvery), cluster().Totals})
	}
	plots := s.plots()
	if len(plots) != 3 || plots[0].Caption != "now 3 allocated, 2 stranded" ||
		plots[2].Caption != "now 5 all nodes, 2 idle" {
		t.Errorf("plots are %+v", plots)
	}
}
