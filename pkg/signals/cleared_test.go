package signals

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNodesAreToldWhoseFaultsAreOver(t *testing.T) {
	t.Parallel()
	const window = time.Hour
	start := time.Now()
	fault := func(index, xid int, age time.Duration) Fault {
		return Fault{GPUID: GPUID{Index: index}, XID: xid, Time: start.Add(-age)}
	}
	for name, tc := range map[string]struct {
		before, after faultsByNode
		passed        time.Duration
		want          []string
	}{
		"nothing was wrong": {nil, nil, time.Minute, nil},
		"a fault stays": {faultsByNode{"a": {fault(0, 79, 0)}}, faultsByNode{"a": {fault(0, 79, 0)}},
			time.Minute, nil},
		"a fault appears": {nil, faultsByNode{"a": {fault(0, 79, 0)}}, time.Minute, nil},
		"the series are gone": {faultsByNode{"b": {fault(0, 79, 0)}, "a": {fault(1, 0, 0)}}, nil, time.Minute,
			[]string{"a", "b"}},
		"a fault becomes too old": {faultsByNode{"a": {fault(0, 79, 59*time.Minute)}},
			faultsByNode{"a": {fault(0, 79, 59*time.Minute)}}, 2 * time.Minute, []string{"a"}},
		"one that was too old already": {faultsByNode{"a": {fault(0, 79, 2*time.Hour)}}, nil, time.Minute, nil},
		"one of two GPUs recovers": {faultsByNode{"a": {fault(0, 79, 0), fault(1, 79, 0)}},
			faultsByNode{"a": {fault(1, 79, 0)}}, time.Minute, []string{"a"}},
		"one of two faults of a GPU is over": {faultsByNode{"a": {fault(0, 0, 0), fault(0, 79, 0)}},
			faultsByNode{"a": {fault(0, 79, 0)}}, time.Minute, nil},
		"another GPU fails in its place": {faultsByNode{"a": {fault(0, 79, 0)}}, faultsByNode{"a": {fault(1, 79, 0)}},
			time.Minute, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &GPUReader{judged: start}
			var told [][]string
			for range 2 {
				r.OnFaultsCleared(func(nodes []string) { told = append(told, nodes) })
			}
			r.tellCleared(&GPUSnapshot{faultWindow: window, faults: tc.before},
				&GPUSnapshot{faultWindow: window, faults: tc.after}, start.Add(tc.passed))
			var want [][]string
			if tc.want != nil {
				want = [][]string{tc.want, tc.want}
			}
			if diff := cmp.Diff(want, told); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if !r.judged.Equal(start.Add(tc.passed)) {
				t.Errorf("the next round compares with %s", r.judged)
			}
		})
	}
}

func TestAReaderThatIsNotConfiguredTellsNobody(t *testing.T) {
	t.Parallel()
	(*GPUReader)(nil).OnFaultsCleared(func([]string) { t.Error("called") })
}
