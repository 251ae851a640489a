package gpu

import (
	"slices"
	"testing"
)

// TestEveryDeviceOfALargeNodeIsGivenOutOnce takes the devices of nodes with more of them than links are told apart.
func TestEveryDeviceOfALargeNodeIsGivenOutOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		n     int
		r     Request
		links *Links
		want  int
	}{
		"whole GPUs":  {80, Request{Count: 1, Milli: WholeMilli}, nil, 80},
		"all at once": {72, Request{Count: 72, Milli: WholeMilli}, nil, 1},
		"all at once, linked": {72, Request{Count: 72, Milli: WholeMilli, Interconnect: InterconnectRequired}, Mesh(72),
			1},
		"linked where none is":      {72, Request{Count: 72, Milli: WholeMilli, Interconnect: InterconnectRequired}, nil, 0},
		"one more than there are":   {72, Request{Count: 73, Milli: WholeMilli}, Mesh(72), 0},
		"shares of one GPU":         {70, Request{Count: 1, Milli: 600, Shared: true}, nil, 70},
		"shares of two GPUs":        {131, Request{Count: 2, Milli: 400, Shared: true}, nil, 130},
		"shares of all GPUs":        {100, Request{Count: 100, Milli: 300, Shared: true}, nil, 3},
		"as many as are told apart": {MaxLinked, Request{Count: 8, Milli: WholeMilli}, pairsOf(t, MaxLinked), 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inv := &Inventory{Mode: ModeShared, Devices: NewDevices(tc.n, 0), Links: tc.links, Replicas: 1, IndexKnown: true}
			judge := NewJudge(DefaultWeights(), false, nil, nil, &tc.r)
			placed := 0
			for Fit(inv, &tc.r).Cause == Fits {
				devices, share, ok := Choose(inv, &tc.r)
				if len(devices) != tc.r.Count || !ok || !slices.IsSorted(devices) {
					t.Fatalf("after %d pods: chose %v, %v", placed, devices, ok)
				}
				if c := judge.Change(inv, &tc.r, Placement{}); c.GPUs != float64(tc.r.Count*share.Milli)/WholeMilli {
					t.Fatalf("after %d pods: a change of %v GPUs", placed, c.GPUs)
				}
				if !inv.Take(devices, share) {
					t.Fatalf("after %d pods: cannot take %v", placed, devices)
				}
				placed++
			}
			if placed != tc.want {
				t.Errorf("%d pods placed, want %d; the next: %v", placed, tc.want, Fit(inv, &tc.r))
			}
		})
	}
}

func TestGrantsOfALargeNode(t *testing.T) {
	t.Parallel()
	inv := &Inventory{Mode: ModeDRA, Devices: NewDevices(80, 0), Replicas: 1, IndexKnown: true}
	inv.Devices[70].Unhealthy = true
	share := Share{Milli: WholeMilli}
	given := []Grant{{Device: 69, Share: share}, {Device: 70, Share: share}, {Device: 70, Share: share}}
	if n := inv.faulty(given); n != 1 {
		t.Errorf("%d faulty GPUs, want 1", n)
	}
	r := &Request{Interconnect: InterconnectRequired}
	if got := FitGranted(inv, r, given); got.Cause != NotLinked || got.Need != 2 {
		t.Errorf("two GPUs without links: %+v", got)
	}
	inv.Links = Mesh(80)
	if got := FitGranted(inv, r, given); got.Cause != Fits {
		t.Errorf("two GPUs of a mesh: %+v", got)
	}
	if score := inv.linkScoreOf(given); score != maxLinkScore {
		t.Errorf("link score %d", score)
	}
}

// TestStrandingOfALargeNode holds that GPUs beyond those that the streams fill change nothing.
func TestStrandingOfALargeNode(t *testing.T) {
	t.Parallel()
	s := newStranding(&Distribution{Portions: []Portion{{Shape: Shape{CPUMilli: 1000, Count: 2,
		Milli: WholeMilli}, Fraction: 1}}})
	value := func(n int) float64 {
		free := make([]int, n)
		for i := range free {
			free[i] = WholeMilli
		}
		return s.Value("", 1<<20, free)
	}
	if a, b := value(64), value(200); a != b {
		t.Errorf("%v stranded of 64 free GPUs, %v of 200", a, b)
	}
	if left := []int{700, 1000, 1000}; place(left, 4, 1000) != 0 || !slices.Equal(left, []int{700, 1000, 1000}) {
		t.Errorf("a pod that does not fit leaves %v", left)
	}
}
