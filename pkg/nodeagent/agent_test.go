package nodeagent

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/nodeagent/nvidiasmi"
	"berth.dev/berth/pkg/nodeagent/podresources"
	"berth.dev/berth/pkg/wellknown"
)

// world is what an agent reads and writes, changed by the test while the agent sleeps.
type world struct {
	mu        sync.Mutex
	state     podresources.State
	kubelet   error
	gpus      []nvidiasmi.GPU
	pairs     []nvidiasmi.Pair
	machine   error
	topology  error
	topoReads int
	minors    map[string]int
	minorErr  error

	node   map[string]string
	hami   bool
	api    error
	writes int
	// times are the writes that changed the time of the last reading and nothing else.
	times int
	reads int
}

func (w *world) Read(context.Context) (podresources.State, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state, w.kubelet
}

func (w *world) GPUs(context.Context) ([]nvidiasmi.GPU, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gpus, w.machine
}

func (w *world) Slices(context.Context) (map[string]int, error) { return map[string]int{slice: 0}, nil }

func (w *world) Minors(context.Context) (map[string]int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.minors, w.minorErr
}

func (w *world) Topology(context.Context) ([]nvidiasmi.Pair, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.topoReads++
	return w.pairs, w.topology
}

// apiNode is the world's Node object.
type apiNode struct{ *world }

func (n apiNode) Read(context.Context) (*NodeState, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reads++
	return &NodeState{maps.Clone(n.node), n.hami}, n.api
}

func (n apiNode) Write(_ context.Context, changes map[string]*string) (*NodeState, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.writes++
	if _, ok := changes[wellknown.GPUsInUseAtKey]; ok && len(changes) == 1 {
		n.times++
	}
	if n.api != nil {
		return nil, n.api
	}
	for key, value := range changes {
		if value == nil {
			delete(n.node, key)
		} else {
			n.node[key] = *value
		}
	}
	return &NodeState{maps.Clone(n.node), n.hami}, nil
}

// annotations are those of the node but for the time of the last reading, which must be there while GPUs in use are.
func (w *world) annotations(t *testing.T) map[string]string {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := maps.Clone(w.node)
	_, inUse := rest[wellknown.GPUsInUseKey]
	if _, timed := rest[wellknown.GPUsInUseAtKey]; timed != inUse && rest[wellknown.GPUDevicesKey] != old {
		t.Errorf("GPUs in use: %v, their time: %v", inUse, timed)
	}
	delete(rest, wellknown.GPUsInUseAtKey)
	return rest
}

// twoGPUs are two linked GPUs; a pod holds the second.
func twoGPUs() *world {
	return &world{
		state: podresources.State{Held: []podresources.Held{{Pod: "default/a", ID: second}},
			Offered: []string{first, second}},
		gpus: []nvidiasmi.GPU{{Index: 0, UUID: first, Name: "NVIDIA A100 80GB PCIe", MemMiB: 81920},
			{Index: 1, UUID: second, Name: "NVIDIA A100 80GB PCIe", MemMiB: 81920}},
		pairs: []nvidiasmi.Pair{{A: 0, B: 1, Link: "NV12"}},
		node:  map[string]string{},
	}
}

var intervals = Intervals{Kubelet: 5 * time.Second, Machine: time.Minute, Resync: 10 * time.Minute,
	Stale: 5 * time.Minute}

const (
	devicesOfTwo = `[{"index":0,"uuid":"` + first + `","model":"NVIDIA-A100-80GB-PCIe","memMiB":81920,"healthy":true},` +
		`{"index":1,"uuid":"` + second + `","model":"NVIDIA-A100-80GB-PCIe","memMiB":81920,"healthy":true}]`
	secondIsIll = `[{"index":0,"uuid":"` + first + `","model":"NVIDIA-A100-80GB-PCIe","memMiB":81920,"healthy":true},` +
		`{"index":1,"uuid":"` + second + `","model":"NVIDIA-A100-80GB-PCIe","memMiB":81920,"healthy":false}]`
	linksOfTwo = `{"links":[[0,1,"NV12"]]}`
	// old is a value of a former agent.
	old = "old"
)

func published(devices, links, inUse string) map[string]string {
	return map[string]string{wellknown.GPUDevicesKey: devices, wellknown.GPULinksKey: links, wellknown.GPUsInUseKey: inUse}
}

// step changes the world and says what is published some time later.
type step struct {
	change func(*world)
	after  time.Duration
	want   map[string]string
}

func TestWhatIsPublishedFollowsWhatIsRead(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	all := published(devicesOfTwo, linksOfTwo, "1")
	soon := 6 * time.Second
	for name, tc := range map[string]struct {
		start func(*world)
		steps []step
	}{
		"devices, links and use in one patch": {nil, []step{{nil, soon, all}}},
		"a pod ends": {nil,
			[]step{{nil, soon, all}, {func(w *world) { w.state.Held = nil }, soon, published(devicesOfTwo, linksOfTwo, "")}}},
		"a device that the kubelet no longer offers is not healthy": {nil, []step{
			{nil, soon, all}, {func(w *world) { w.state.Offered = []string{first} }, soon,
				published(secondIsIll, linksOfTwo, "1")},
		}},
		"the device plugin is away, which says nothing of a device": {nil, []step{
			{nil, soon, all}, {func(w *world) { w.state.Offered = nil }, soon, all},
		}},
		"a kubelet that restarts": {nil, []step{
			{nil, soon, all}, {func(w *world) { w.kubelet = down }, time.Minute, all},
			{func(w *world) { w.kubelet, w.state.Held = nil, nil }, soon, published(devicesOfTwo, linksOfTwo, "")},
		}},
		"a kubelet that stays away takes back what is in use": {nil, []step{
			{nil, soon, all}, {func(w *world) { w.kubelet = down }, 6 * time.Minute,
				map[string]string{wellknown.GPUDevicesKey: devicesOfTwo, wellknown.GPULinksKey: linksOfTwo}},
		}},
		"a driver that hangs for a while": {nil, []step{
			{nil, soon, all}, {func(w *world) { w.machine = down }, 3 * time.Minute, all},
			{func(w *world) { w.machine = nil }, 2 * time.Minute, all},
		}},
		"a driver that stays away takes everything back": {nil, []step{
			{nil, soon, all}, {func(w *world) { w.machine = down }, 7 * time.Minute, map[string]string{}},
		}},
		"what a former agent wrote stays until the sources have spoken": {func(w *world) {
			w.kubelet, w.node = down,
				published(old, old, "0")
		}, []step{
			{nil, time.Minute, published(old, old, "0")},
			{func(w *world) { w.kubelet = nil }, soon, all},
		}},
		"what a former agent wrote goes if they never do": {func(w *world) {
			w.machine, w.node = down, published(old, old,
				"0")
		}, []step{
			{nil, 6 * time.Minute, map[string]string{}},
		}},
		"a machine without a driver": {func(w *world) { w.machine, w.node = nvidiasmi.ErrAbsent, published(old, old, "0") },
			[]step{
				{nil, soon, map[string]string{}},
			}},
		"half of the GPUs vanish": {nil, []step{
			{nil, soon, all},
			{func(w *world) { w.gpus, w.state.Offered = w.gpus[1:], []string{second} }, 2 * time.Minute, map[string]string{
				wellknown.GPUDevicesKey: `[{"index":1,"uuid":"` + second + `","model":"NVIDIA-A100-80GB-PCIe","memMiB":81920,"healthy":true}]`, wellknown.GPUsInUseKey: "1",
			}},
		}},
		"links that cannot be read are left out, the rest is not": {func(w *world) { w.topology = down }, []step{
			{nil, soon, map[string]string{wellknown.GPUDevicesKey: devicesOfTwo, wellknown.GPUsInUseKey: "1"}},
			{func(w *world) { w.topology = nil }, 2 * time.Minute, all},
		}},
		"links of other GPUs are left out": {func(w *world) { w.pairs = []nvidiasmi.Pair{{A: 0, B: 2, Link: "NV12"}} },
			[]step{
				{nil, soon, map[string]string{wellknown.GPUDevicesKey: devicesOfTwo, wellknown.GPUsInUseKey: "1"}},
			}},
		"an API server that is away gets the newest state when it is back": {func(w *world) { w.api = down }, []step{
			{nil, 10 * time.Minute, map[string]string{}},
			{func(w *world) { w.api, w.state.Held = nil, nil }, 2 * time.Minute, published(devicesOfTwo, linksOfTwo, "")},
		}},
		"an annotation that another client changed is repaired": {nil, []step{
			{nil, soon, all}, {func(w *world) { w.node[wellknown.GPUsInUseKey] = "0" }, 11 * time.Minute, all},
		}},
		"a node of HAMi, whose plugin gives out others than the kubelet says": {func(w *world) {
			w.hami, w.node = true,
				published(old, old, "0")
		}, []step{
			{nil, soon, map[string]string{wellknown.GPUDevicesKey: devicesOfTwo, wellknown.GPULinksKey: linksOfTwo}},
		}},
		"HAMi comes to the node and goes": {nil, []step{
			{nil, soon, all},
			{func(w *world) { w.hami = true }, 11 * time.Minute, map[string]string{wellknown.GPUDevicesKey: devicesOfTwo,
				wellknown.GPULinksKey: linksOfTwo}},
			{func(w *world) { w.hami = false }, 11 * time.Minute, all},
		}},
		"devices that are named by their files, in another order": {func(w *world) {
			w.minors = map[string]int{first: 1, second: 0}
			w.state = podresources.State{Held: []podresources.Held{{Pod: "default/a", ID: "nvidia0"}},
				Offered: []string{"nvidia0", "nvidia1"}}
		}, []step{{nil, soon, all}}},
		"devices that are named by their files, which cannot be told apart": {func(w *world) {
			w.minorErr = down
			w.state = podresources.State{Held: []podresources.Held{{Pod: "default/a", ID: "nvidia0"}},
				Offered: []string{"nvidia0", "nvidia1"}}
		}, []step{
			{nil, soon, published(devicesOfTwo, linksOfTwo, "")},
			{func(w *world) { w.minors, w.minorErr = map[string]int{first: 1, second: 0}, nil }, 2 * time.Minute, all},
		}},
		"a GPU in slices is healthy and in use by any of them": {func(w *world) {
			w.gpus[0].MIG = true
			w.state = podresources.State{Held: []podresources.Held{{Pod: "default/a", ID: slice}},
				Offered: []string{second + "::0", second + "::1"}}
		}, []step{{nil, soon, published(`[{"index":0,"uuid":"`+first+`","model":"NVIDIA-A100-80GB-PCIe","memMiB":81920,"healthy":true,"mig":true},`+
			`{"index":1,"uuid":"`+second+`","model":"NVIDIA-A100-80GB-PCIe","memMiB":81920,"healthy":true,"replicas":2}]`, linksOfTwo, "0")}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := twoGPUs()
				if tc.start != nil {
					tc.start(w)
				}
				run(t, w)
				for i, s := range tc.steps {
					w.mu.Lock()
					if s.change != nil {
						s.change(w)
					}
					w.mu.Unlock()
					time.Sleep(s.after) //nolint:forbidigo // the bubble's clock, which waits for nothing
					synctest.Wait()
					if diff := cmp.Diff(s.want, w.annotations(t)); diff != "" {
						t.Errorf("annotations after step %d (-want +got):\n%s", i, diff)
					}
				}
			})
		})
	}
}

// run starts an agent that lasts as long as the test.
func run(t *testing.T, w *world) *Agent {
	t.Helper()
	a := New(w, w, apiNode{w}, intervals)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return a
}

func TestNothingButTheTimeIsWrittenWhileNothingChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := twoGPUs()
		a := run(t, w)
		time.Sleep(time.Hour) //nolint:forbidigo // the bubble's clock
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if changes := w.writes - w.times; changes != 1 || w.times > 12 || w.reads > 7 || w.topoReads != 1 {
			t.
				Errorf("%d writes, %d of the time alone, %d reads of the node, %d readings of the links in an hour; want 1, 12, "+
					"7, 1",
					changes, w.times, w.reads, w.topoReads)
		}
		if err := a.Alive(); err != nil {
			t.Error(err)
		}
	})
}

func TestThePublishedTimeIsNeverOldWhileTheKubeletAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := twoGPUs()
		// of another clock
		w.node = map[string]string{wellknown.GPUsInUseAtKey: gpuview.EncodeInUseAt(time.Now().Add(time.Hour))}
		run(t, w)
		age := func() time.Duration {
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			at, err := gpuview.ParseInUseAt(w.node[wellknown.GPUsInUseAtKey])
			if err != nil {
				t.Fatal(err)
			}
			return time.Since(at)
		}
		var oldest time.Duration
		for range 60 {
			time.Sleep(time.Minute) //nolint:forbidigo // the bubble's clock
			got := age()
			if oldest = max(oldest, got); got < 0 {
				t.Fatalf("the time is %s ahead", -got)
			}
		}
		if oldest > 6*time.Minute || oldest < 3*time.Minute {
			t.Errorf("the time became up to %s old, want about 5m", oldest)
		}
		w.mu.Lock()
		w.kubelet = errors.New("down")
		w.mu.Unlock()
		time.Sleep(4 * time.Minute) //nolint:forbidigo // the bubble's clock
		if got := age(); got < 4*time.Minute {
			t.Errorf("the time is %s old after 4m without an answer", got)
		}
	})
}

func TestAnAPIServerThatIsAwayIsAskedLessAndLess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := twoGPUs()
		w.api = errors.New("connection refused")
		run(t, w)
		time.Sleep(10 * time.Minute) //nolint:forbidigo // the bubble's clock
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if asked := w.reads + w.writes; asked < 10 || asked > 20 {
			t.Errorf("%d requests in 10 minutes, want one a minute after the first few", asked)
		}
	})
}
