package advise

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/screen/progress"
)

// Question is the input of Cluster.
type Question struct {
	// Configuration of the scheduler; it is not changed.
	Configuration *schedulerconfig.Configuration
	// Objects are the cluster, as a snapshot holds it; they are not changed.
	Objects []runtime.Object
	// Now is the time of the snapshot.
	Now time.Time
	// LeftOut are the kinds that could not be read, a line each.
	LeftOut []string
	// Target limits the answer to one pending unit; the zero value asks about all.
	Target Unit
	// Most is how many pending units, nodes and kinds of nodes are looked at.
	Most int
	// Progress shows what is tried, if not nil.
	Progress *progress.Line
}

// Advice says what would help a cluster.
type Advice struct {
	// Configuration is where the scheduler's configuration was read.
	Configuration string `json:"configuration"`
	// Nodes and PendingPods are the numbers in the snapshot.
	Nodes       int `json:"nodes"`
	PendingPods int `json:"pendingPods"`
	// Pending says what would start pending work, the most important first.
	Pending []Pending `json:"pending"`
	// GiveBack are nodes that could be given back together, dearest first.
	GiveBack []GiveBack `json:"giveBack"`
	// NewNodes say what more nodes of a kind would let start.
	NewNodes []NewNode `json:"newNodes"`
	// Limits say what was not tried.
	Limits []string `json:"limits"`
	// Notes say what the advice does not take into account.
	Notes []string `json:"notes"`
}

// Cluster looks for advice. An error is about the question, or a failure of the simulated scheduler.
func Cluster(q Question) (*Advice, error) {
	s, err := newSearch(q)
	if err != nil {
		return nil, err
	}
	if err := s.look(); err != nil {
		return nil, fmt.Errorf("running the scheduler on the snapshot: %w", err)
	}
	s.advice.PendingPods = s.pendingPods
	if s.foreign > 0 {
		s.advice.Notes = append(s.advice.Notes, fmt.Sprintf("%s %s for schedulers that this configuration does not have",
			plural.Of(s.foreign, "pending pod"), plural.Choose(s.foreign, "is", "are")))
	}
	targets, err := choose(q.Target, s.waiting)
	if err != nil {
		return nil, err
	}
	if err := s.survey(); err != nil {
		return nil, fmt.Errorf("looking for pods that may move: %w", err)
	}
	if err := s.pending(targets); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(s.advice.Pending, func(p Pending) bool { return p.Plan == nil }) {
		s.noteFixed()
	}
	if q.Target == (Unit{}) {
		for _, part := range []func() error{s.newNodes, s.giveBack} {
			if err := part(); err != nil {
				return nil, err
			}
		}
	}
	return s.advice, nil
}

// search is the state of the search for advice.
type search struct {
	Question
	configuration *schedulerconfig.Configuration
	advice        *Advice

	// keys and priceOf read nodes as the configuration says.
	keys    gpuview.Keys
	priceOf func(*v1.Node) (price.MicroDollars, bool)

	nodes []*v1.Node
	pods  []*v1.Pod
	// pendingPods have no node, foreign of them are for other schedulers.
	pendingPods, foreign int
	// waiting are the units that stay pending, the most important first.
	waiting []*unit
	// running are the pods on nodes, by name, by node and by gang.
	running map[key]*runningPod
	onNode  map[string][]*runningPod
	gangs   map[gang.ID][]*runningPod
	budgets []budget
	// lost are pods that the scheduler evicts without any change.
	lost map[key]bool
	// began are the pods that the scheduler binds without any change.
	began map[key]bool
	// settled is the cluster at the end of that run, without pending pods, and with amounts of devices instead of claims.
	settled []runtime.Object
	devices *devices
	// then is the search in the cluster that the last plan leaves, nil without a plan.
	then *search
	// spares are nodes that might be given back, in the order in which they are tried.
	spares []spare
}

func newSearch(q Question) (*search, error) {
	if err := q.Configuration.RefuseExtenders(); err != nil {
		return nil, err
	}
	configuration, silenced := q.Configuration.WithoutSignals()
	priceOf, _, err := configuration.Prices("")
	if err != nil {
		return nil, configuration.Invalid(err)
	}
	s := &search{Question: q, configuration: configuration, keys: configuration.GPUKeys(""), priceOf: priceOf,
		advice: &Advice{Configuration: q.Configuration.Name}, began: map[key]bool{}}
	for _, plugin := range silenced {
		s.advice.Notes = append(s.advice.Notes, plugin+" was run without what Prometheus would tell it")
	}
	for _, kind := range q.LeftOut {
		if strings.HasPrefix(kind, "poddisruptionbudgets") {
			s.advice.Notes = append(s.advice.Notes,
				"PodDisruptionBudgets are unknown and may forbid moves: "+kind)
		}
	}
	if s.read(); len(s.nodes) == 0 {
		return nil, errors.New("the cluster has no nodes")
	}
	s.advice.Nodes = len(s.nodes)
	return s, nil
}

func (s *search) read() {
	s.running, s.onNode = map[key]*runningPod{}, map[string][]*runningPod{}
	s.gangs = map[gang.ID][]*runningPod{}
	for _, obj := range s.Objects {
		switch obj := obj.(type) {
		case *v1.Node:
			s.nodes = append(s.nodes, obj)
		case *v1.Pod:
			s.pods = append(s.pods, obj)
		case *policyv1.PodDisruptionBudget:
			s.budgets = append(s.budgets, readBudget(obj))
		}
	}
}

// next is the search in the cluster at the end of the run of a plan.
func (s *search) next(w *world) *search {
	n := &search{Question: s.Question, configuration: s.configuration, keys: s.keys, priceOf: s.priceOf,
		advice: s.advice, began: map[key]bool{}, lost: map[key]bool{}}
	n.Objects = w.without("", s.Objects)
	n.read()
	n.settle(w)
	for name, pod := range n.running {
		// Whether pods fit elsewhere is not checked again: a wrong answer only costs a try.
		if before := s.running[name]; before != nil {
			pod.stuck = before.stuck
		}
	}
	return n
}

func (s *search) say(format string, args ...any) {
	if s.Progress != nil {
		s.Progress.Show(fmt.Sprintf(format, args...))
	}
}

func (s *search) limit(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.advice.Limits, text) {
		s.advice.Limits = append(s.advice.Limits, text)
	}
}

// try runs the scheduler on the objects while f changes the cluster.
func (s *search) try(objects []runtime.Object, f func(*world) error) error {
	return simulate(s.configuration, objects, s.Now, firstByName, f)
}

// tryTies does so for each order of equally good nodes, while f returns true: a plan has to work in each order.
func (s *search) tryTies(objects []runtime.Object, f func(*world) (goOn bool, err error)) error {
	for _, order := range []tieOrder{firstByName, lastByName} {
		goOn := false
		err := simulate(s.configuration, objects, s.Now, order, func(w *world) (err error) {
			goOn, err = f(w)
			return err
		})
		if err != nil || !goOn {
			return err
		}
	}
	return nil
}

// look runs the scheduler on the unchanged snapshot: what it starts or evicts then needs no advice.
func (s *search) look() error {
	s.say("running the scheduler on the snapshot: %s, %s", plural.Of(len(s.nodes), "node"), plural.Of(len(s.pods), "pod"))
	return s.try(s.Objects, func(w *world) error {
		s.lost = w.Evicted()
		for _, pod := range s.pods {
			if pod.Spec.NodeName == "" && w.node(keyOf(pod)) != "" {
				s.began[keyOf(pod)] = true
			}
		}
		s.settle(w)
		return nil
	})
}

// settle finds the pending units and the running pods at the end of a run.
func (s *search) settle(w *world) {
	s.findUnits(w)
	waits := map[key]bool{}
	for _, u := range s.waiting {
		for _, pod := range u.Pods {
			waits[keyOf(pod)] = true
		}
	}
	left := slices.DeleteFunc(w.without("", s.Objects), func(obj runtime.Object) bool {
		pod, ok := obj.(*v1.Pod)
		return ok && waits[keyOf(pod)]
	})
	s.devices = readDevices(left)
	s.settled = s.devices.inPlaceOfClaims(left)
}

// byImportance orders units by priority, then by age.
func byImportance(a, b *unit) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), cmp.Compare(a.String(), b.String()))
}
