package scenarios_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/require"
	"berth.dev/berth/test/harness/rules"
)

// definitionsFolder is where the CustomResourceDefinitions are that the API in memory follows.
const definitionsFolder = "../../manifests/crd"

// epoch is when scenarios begin in virtual time.
var epoch = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)

// logs lets schedulers in virtual time log.
var logs = flag.Int("logs", -1, "let the schedulers in virtual time log at this level")

const (
	// restartAfter is how long a scheduler that was killed takes to be there again.
	restartAfter = time.Second
	// administrator is the user agent of what a scenario does itself, which the latency of the network does not touch.
	administrator = "scenario"
)

// virtual is a scheduler on the API in memory, in virtual time.
type virtual struct {
	world         *simulation.World
	configuration *schedulerconfig.Configuration
	plugins       frameworkruntime.Registry
	stop          func()
	// cut ends the connection of the scheduler that runs.
	cut *atomic.Bool
	// led is when the present scheduler began to lead, in nanoseconds since the epoch of the scenarios.
	led atomic.Int64
}

// runVirtual runs a script in virtual time.
func runVirtual(t *testing.T, s script) {
	err := simulation.Virtual(epoch, func() error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		c, err := newVirtual(s)
		if err != nil {
			return err
		}
		w, err := newWorld(t, c, uniqueName(s.name))
		if err != nil {
			return err
		}
		if err := c.start(); err != nil {
			return err
		}
		stopControllers, err := c.startControllers(ctx, s)
		if err != nil {
			return err
		}
		err = w.play(ctx, s.text)
		cancel()
		stopControllers()
		c.stop()
		return err
	})
	require.NoError(t, err)
}

func newVirtual(s script) (*virtual, error) {
	configuration, err := schedulerconfig.Load(s.in.config())
	if err != nil {
		return nil, err
	}
	r, err := rules.New(definitionsFolder)
	if err != nil {
		return nil, err
	}
	c := &virtual{world: simulation.NewWorld(), configuration: configuration}
	if s.in.own != "" {
		c.plugins = ownPlugins()
	}
	for _, definition := range r.Definitions() {
		if err := c.world.API.Create(definition); err != nil {
			return nil, err
		}
	}
	c.world.API.Rules, c.world.API.Network = r, &latency{sent: map[string]uint64{}}
	return c, nil
}

func (c *virtual) config() (*rest.Config, error) {
	config := c.world.API.RESTConfig()
	config.UserAgent = administrator
	return config, nil
}

func (*virtual) now() time.Duration { return time.Since(epoch) }

// metric is of all schedulers of this process: scripts that ask for one run alone.
func (*virtual) metric(_ context.Context, name string) (*dto.MetricFamily, error) {
	return metricHere(name)
}

// metricHere is a family of this process's metrics.
func metricHere(name string) (*dto.MetricFamily, error) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return nil, fmt.Errorf("reading the metrics: %w", err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family, nil
		}
	}
	return nil, nil
}

// heard is nothing: events take a few milliseconds at most, and those of all resources the same.
func (*virtual) heard(context.Context) (map[schema.GroupResource]int64, error) { return nil, nil }

func (c *virtual) leads(_ context.Context, after time.Time) bool {
	return c.led.Load() > int64(after.Sub(epoch))
}

func (c *virtual) kill(context.Context) error {
	c.cut.Store(true)
	c.stop()
	time.Sleep(restartAfter) //nolint:forbidigo // virtual time
	return c.start()
}

var errFrozen = errors.New("the API in memory cannot stand still; say real-only")

func (*virtual) freeze(context.Context, time.Duration, func()) error { return errFrozen }

// connection is that of one scheduler to the API.
type connection struct {
	to  http.RoundTripper
	cut *atomic.Bool
}

var errCut = errors.New("connection refused")

// RoundTrip implements http.RoundTripper.
func (c connection) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, errCut
	}
	return c.to.RoundTrip(req)
}

// start starts a scheduler, which leads at once.
func (c *virtual) start() error {
	c.cut = &atomic.Bool{}
	config := c.world.API.RESTConfig()
	config.Transport = connection{config.Transport, c.cut}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		cancel()
		return fmt.Errorf("recording events: %w", err)
	}
	recorders := func(name string) events.EventRecorderLogger { return broadcaster.NewRecorder(scheme.Scheme, name) }
	c.stop = func() {
		cancel()
		c.world.Stop()
		broadcaster.Shutdown()
	}
	if err := c.world.Start(simulation.Setup{API: config, Config: c.configuration, Parallelism: 1, Plugins: c.plugins,
		Events: profile.RecorderFactory(recorders), Logs: *logs >= 0}); err != nil {
		c.stop()
		return fmt.Errorf("starting the scheduler: %w", err)
	}
	c.led.Store(int64(time.Since(epoch)))
	c.world.Run()
	return nil
}

// latency makes requests and events take some milliseconds, so that what is done at the same time ends one after the
// other. How many depends on what is asked for and how often, not on which goroutine comes first.
type latency struct {
	mu     sync.Mutex
	sent   map[string]uint64
	events uint64
}

const (
	longestRequest = 8 * time.Millisecond
	longestEvent   = 2 * time.Millisecond
)

// Request implements memapi.Network.
func (l *latency) Request(req *http.Request) (there, back time.Duration, delivery memapi.Delivery) {
	if req.UserAgent() == administrator {
		return 0, 0, memapi.Delivered
	}
	what := req.Method + req.URL.Path
	l.mu.Lock()
	n := l.sent[what]
	l.sent[what]++
	l.mu.Unlock()
	return scatter(what, n, longestRequest), scatter(what, n+1, longestRequest), memapi.Delivered
}

// Event implements memapi.Network.
func (l *latency) Event() time.Duration {
	l.mu.Lock()
	l.events++
	n := l.events
	l.mu.Unlock()
	return scatter("event", n, longestEvent)
}

// scatter is a duration up to the longest that looks random.
func scatter(what string, n uint64, longest time.Duration) time.Duration {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, what, n)
	return time.Duration(hash.Sum64() % uint64(longest))
}
