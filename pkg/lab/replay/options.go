package replay

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
	"berth.dev/berth/pkg/schedulerconfig"
)

// Input is what is replayed.
type Input struct {
	// Name describes the input in reports.
	Name string
	// Objects is the cluster at the start: the objects of a dump, or nodes.
	Objects []runtime.Object
	// Nodes are further nodes, which are made with the GPU names of the configuration. Shared has them share GPUs.
	Nodes  []trace.Node
	Shared bool
	// Rates price the nodes that state no price, before the configuration does. RatesName is their file.
	Rates     *price.ModelRates
	RatesName string
	// Jobs arrive.
	Jobs []trace.Job
	// Rebind removes the pods of Objects from their nodes and schedules them again, except those that belong to a node,
	// such as pods of DaemonSets.
	Rebind bool
}

// NewInput makes the input of a cluster of nodes and a trace of jobs.
func NewInput(name string, nodes []trace.Node, jobs []trace.Job) Input {
	return Input{Name: name, Nodes: nodes, Shared: sharesGPUs(jobs), Jobs: jobs}
}

func sharesGPUs(jobs []trace.Job) bool {
	return slices.ContainsFunc(jobs, func(j trace.Job) bool { return j.GPUs == 1 && j.GPUMilli < 1000 })
}

// Cluster returns copies of the objects, with the nodes of the trace as a profile of the configuration reads nodes, and
// with the rates' prices.
func (in *Input) Cluster(config *schedulerconfig.Configuration, profile string) ([]runtime.Object, error) {
	keys, rules := config.GPUKeys(profile), config.CapacityRules(profile)
	var objects []runtime.Object
	for _, n := range in.Nodes {
		objects = append(objects, nodeObject(n, in.Shared, &keys, rules))
	}
	for _, obj := range in.Objects {
		objects = append(objects, obj.DeepCopyObject())
	}
	for _, obj := range objects {
		node, ok := obj.(*v1.Node)
		if !ok || in.Rates == nil {
			continue
		}
		if _, stated, _ := priceview.StatedPrice(node); stated {
			continue
		}
		if err := setPrice(node, &keys, in.Rates); err != nil {
			return nil, fmt.Errorf("%s: %w", in.RatesName, err)
		}
	}
	return objects, nil
}

// Options of a replay.
type Options struct {
	Mode replayed.Mode
	// Seed decides the order of arrivals in ArrivalOrder, and in VirtualTime the order in which the scheduler knows the
	// nodes, which decides between nodes of equal score.
	Seed uint64
	// Profile is the scheduler name that the jobs' pods carry; empty for the configuration's preferred one.
	Profile string
	// CycleTime is the virtual time that one scheduling cycle takes.
	CycleTime time.Duration
	// Start is the virtual time of the beginning: it matters to prices and windows that depend on the hour.
	Start time.Time
	// Horizon ends a replay in VirtualTime early; 0 is when every job has ended.
	Horizon time.Duration
	// Warmup is left out at the beginning of the time over which VirtualTime takes means.
	Warmup time.Duration
	// Load is the offered GPU demand in ArrivalOrder, in thousandths of the cluster's GPUs.
	Load int64
	// FeatureGates ("Name=true,…") of the scheduler, besides those with which the manifests run it. A process has one
	// set of them: replays with others need another.
	FeatureGates string
	// Progress, if set, is updated by the replay, on a virtual clock. It must not block.
	Progress *replayed.Progress
}

// Defaults of Options.
const (
	DefaultCycleTime = time.Millisecond
	DefaultLoad      = 1300
)

// epoch is the default start of a replay, a Monday at midnight. The odd nanoseconds keep the actions of the replay
// apart from those of the scheduler on the full second: two actions at one instant would race.
var epoch = time.Date(2026, time.January, 5, 0, 0, 0, 137, time.UTC)

// shippedGates are those of the manifests, which give the reason.
const shippedGates = "NominatedNodeNameForExpectation=false"

// setGates sets the process's feature gates. If a gate is named twice, the last value counts.
func (o Options) setGates() error {
	gates := shippedGates
	if o.FeatureGates != "" {
		gates += "," + o.FeatureGates
	}
	values := map[string]bool{}
	if err := cliflag.NewMapStringBool(&values).Set(gates); err != nil {
		return fmt.Errorf("feature gates %q: %w; want Name=true,…", o.FeatureGates, err)
	}
	// SetFromMap refuses an unknown gate only after it has added it.
	known := utilfeature.DefaultMutableFeatureGate.GetAll()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, ok := known[featuregate.Feature(name)]; !ok {
			return fmt.Errorf("feature gates %q: Kubernetes has no feature gate %q", o.FeatureGates, name)
		}
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(values); err != nil {
		return fmt.Errorf("feature gates %q: %w", o.FeatureGates, err)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.CycleTime == 0 {
		o.CycleTime = DefaultCycleTime
	}
	if o.Load == 0 {
		o.Load = DefaultLoad
	}
	if o.Start.IsZero() {
		o.Start = epoch
	} else {
		o.Start = o.Start.UTC().Truncate(time.Microsecond).Add(time.Duration(epoch.Nanosecond()))
	}
	if o.Progress == nil {
		o.Progress = &replayed.Progress{}
	}
	return o
}

// Validate returns an error with the name of the flag, the value and the allowed values of an invalid option.
func (o Options) Validate() error {
	o = o.withDefaults()
	switch {
	case o.Mode != replayed.ArrivalOrder && o.Mode != replayed.VirtualTime:
		return fmt.Errorf("mode: %q is unknown; want %s or %s", o.Mode, replayed.ArrivalOrder, replayed.VirtualTime)
	case o.CycleTime < time.Microsecond || o.CycleTime > time.Minute || o.CycleTime%time.Microsecond != 0:
		return fmt.Errorf("cycle-time: %v is not allowed; want whole microseconds up to 1m", o.CycleTime)
	case o.Load < 1 || o.Load > 100_000:
		return fmt.Errorf("load: %d is not allowed; want 1 to 100000", o.Load)
	case o.Horizon < 0:
		return fmt.Errorf("horizon: %v is not allowed; want a time after the start, or 0s for the end of the work", o.Horizon)
	case o.Warmup < 0:
		return fmt.Errorf("warmup: %v is not allowed; want a time after the start, or 0s", o.Warmup)
	case o.Warmup > 0 && o.Mode != replayed.VirtualTime:
		return fmt.Errorf("warmup: %v is for mode %s: mode %s takes no means over time", o.Warmup, replayed.VirtualTime,
			o.Mode)
	case o.Warmup > 0 && o.Horizon > 0 && o.Warmup >= o.Horizon:
		return fmt.Errorf("warmup: %v leaves nothing of a horizon of %v", o.Warmup, o.Horizon)
	case o.Start.Year() < 2001 || o.Start.Year() > 2150:
		return fmt.Errorf("start: %s is not allowed; want the years 2001 to 2150", o.Start.Format(time.RFC3339))
	}
	return nil
}
