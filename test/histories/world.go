package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/histories/history"
	"berth.dev/berth/test/invariants"
)

const (
	// quiet is how long the scheduler has, after the last step, to do what can be done: longer than a gang's time to
	// start and its back-off together, and shorter than the 5 minutes after which pods are tried again that no event
	// woke.
	quiet = 4 * time.Minute
	// again is how long a fresh scheduler has to find what the first has not.
	again = 3 * time.Minute
	// returnAfter is how long a Job takes to make a pod again.
	returnAfter = time.Second
	// kept is in the reason of a pod that waits for a gang that is to start before it. A fresh scheduler has kept
	// nothing yet.
	kept = "kept for gang"
)

// The kinds of faults that the checker does not see.
const (
	forgotten = "a pod is left although it fits"
	unhelped  = "a pod is left although others could be evicted for it"
	restless  = "pods are evicted without end"
	wasteful  = "more pods are evicted than have to be"
	broken    = "the scheduler does not start"
)

var (
	pods      = v1.SchemeGroupVersion.WithResource("pods")
	nodes     = v1.SchemeGroupVersion.WithResource("nodes")
	claims    = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}
	podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
)

// world is where a history happens.
type world struct {
	configuration *schedulerconfig.Configuration
	lab           *simulation.World
	api           *memapi.Server
	user          dynamic.Interface
	weather       *weather
	checker       *invariants.Checker
	leaving       leaving
	rest          rest
	past
	// local is set if nodes have volumes.
	local bool
	stop  func()
	// runs is set while there is a scheduler.
	runs bool
	// logs lets the scheduler log.
	logs bool
}

// past is what has happened so far.
type past struct {
	removed  []types.NamespacedName // nodes
	made     map[string]*history.Pod
	returned int
	// goneJobs are deleted jobs with pods that are left.
	goneJobs []goneJob
	// evicted is when the scheduler evicted a pod last, evictions how often it has.
	evicted   time.Time
	evictions int
	// late is the first fault that was found when the cluster had come to rest.
	late *invariants.Fault
}

// live lets a history happen and returns the first fault, or nil. An error that is no Fault is about the history
// itself.
func live(h *history.History, configuration *schedulerconfig.Configuration, logs bool) error {
	return simulation.Virtual(time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC), func() error {
		lab := simulation.NewWorld()
		w := &world{configuration: configuration, lab: lab, api: lab.API, weather: newWeather(h),
			checker: invariants.New(invariants.Patience),
			past:    past{made: map[string]*history.Pod{}}, logs: logs}
		if h.LostPercent > 0 || h.MaxDelayMillis > 0 {
			w.checker.Patience = invariants.PatienceInStorm
		}
		w.local = h.HasLocalVolumes()
		w.checker.UnderWay = w.weather.underWay()
		if w.local {
			w.checker.UnderWay += volumesAfter + time.Second // the scheduler looks each second whether a volume is bound
		}
		w.api.Network = w.weather
		w.api.Graceful = true
		w.api.Observe = func(e memapi.Event) {
			w.checker.Observe(watch.EventType(e.Type), e.Object, e.Old)
			w.leaving.observe(e)
			w.rest.observe(e)
		}
		rest := w.api.RESTConfig()
		rest.UserAgent = userAgent
		user, err := dynamic.NewForConfig(rest)
		if err != nil {
			return fmt.Errorf("making a client: %w", err)
		}
		w.user = user
		objects := history.Furniture()
		for i := range h.Nodes {
			objects = append(objects, h.Nodes[i].Objects()...)
		}
		if err := w.create(objects...); err != nil {
			return err
		}
		if err := w.start(); err != nil {
			return err
		}
		defer func() { w.stop() }()
		return w.run(h)
	})
}

func (w *world) run(h *history.History) error {
	for i, step := range h.Steps {
		if err := w.pass(step.After.Duration); err != nil {
			return err
		}
		if err := w.do(&step); err != nil {
			return fmt.Errorf("step %d, %s: %w", i, step, err)
		}
		if fault := w.first(); fault != nil {
			return fault
		}
	}
	w.weather.calm.Store(true)
	w.checker.Excuse()
	if err := w.pass(quiet); err != nil {
		return err
	}
	w.lab.Settle()
	if h.LostPercent == 0 { // a lost reason is written again with the next attempt only
		w.checker.Explained()
	}
	if fault := w.first(); fault != nil {
		return fault
	}
	if time.Since(w.evicted) < quiet/4 {
		return &invariants.Fault{Kind: restless,
			Detail: fmt.Sprintf("the last one %s after the last step", quiet-time.Since(w.evicted))}
	}
	if most := h.MostEvictions; most != nil && w.evictions > *most {
		return &invariants.Fault{Kind: wasteful, Detail: fmt.Sprintf("%d, no more than %d have to be", w.evictions, *most)}
	}
	if fault := w.overlooks(); fault != nil {
		return fault
	}
	return w.forgotten()
}

// forgotten starts a fresh scheduler, which remembers nothing, on what the first has left: what it does now the first
// should have done.
func (w *world) forgotten() error {
	before, uids, reasons := w.checker.Placement(), w.uids(), map[string]string{}
	teams, _ := w.teams()
	promises := rivalled(teams, nil, math.MinInt32)
	for name := range before {
		reasons[name] = w.checker.Reason(types.NamespacedName{Namespace: history.Namespace, Name: name})
	}
	w.stop()
	w.lab.Settle()
	if err := w.start(); err != nil {
		return err
	}
	if err := w.pass(again); err != nil {
		return err
	}
	w.lab.Settle()
	if fault := w.checker.First(); fault != nil {
		return fault
	}
	after := w.checker.Placement()
	kind, later, forPort := forgotten, w.uids(), false
	for name, node := range before {
		if later[name] != uids[name] {
			kind = unhelped // it was evicted, and may have come back under its name
		}
		// The account from which victims are chosen does not know ports: whether a gang is evicted for one depends on
		// what else runs there.
		forPort = forPort || node == "" && after[name] != "" && w.made[name] != nil && w.made[name].Port
	}
	if promises || kind == unhelped && (forPort || w.weather.lostPercent > 0) {
		// A fresh scheduler does not know what was kept for a gang that waits. An eviction whose request is lost is
		// not tried again before something else happens to its preemptor: kube-scheduler evicts in the background and
		// forgets what failed. A fresh scheduler does not know that it was tried.
		return nil
	}
	for name, node := range before {
		if now, exists := after[name]; (!exists || now != node) && !strings.Contains(reasons[name], kept) {
			return &invariants.Fault{Kind: kind,
				Detail: fmt.Sprintf("%s on %q (%s), a fresh scheduler moves it to %q", name, node, reasons[name], now)}
		}
	}
	return nil
}

// uids are those of all pods by name.
func (w *world) uids() map[string]types.UID {
	uids := map[string]types.UID{}
	for _, obj := range w.api.List(pods) {
		pod := obj.(*v1.Pod)
		uids[pod.Name] = pod.UID
	}
	return uids
}

// start starts a scheduler.
func (w *world) start() error {
	err := w.lab.Start(simulation.Setup{Config: w.configuration, Parallelism: 1, Logs: w.logs})
	if err != nil {
		return &invariants.Fault{Kind: broken, Detail: err.Error()}
	}
	w.runs = true
	w.rest.stir()
	w.lab.Run()
	w.stop = func() {
		w.runs = false
		w.lab.Stop()
	}
	return nil
}

func (w *world) create(objects ...runtime.Object) error {
	for _, obj := range objects {
		if err := w.api.Create(obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// faultOf tells a fault of the scheduler from other errors.
func faultOf(err error) (*invariants.Fault, bool) {
	var fault *invariants.Fault
	return fault, errors.As(err, &fault)
}
