package decisions

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const (
	// mostPerPod is how many attempts of a pod are kept: one that waits long must not displace all others.
	mostPerPod = 4
	// mostRejected is how many reasons of an attempt are kept, and mostExamples the nodes that are named for each.
	mostRejected, mostExamples = 8, 3
	// mostMessage is how many bytes of a message or a reason are kept.
	mostMessage = 2 << 10
	// mostAttemptBytes bounds the memory of all attempts.
	mostAttemptBytes = 16 << 20
)

// Attempt is a try to place a pod that failed. Tries one after the other that failed for the same reasons are one
// attempt.
type Attempt struct {
	Pod types.NamespacedName `json:"pod"`
	UID types.UID            `json:"uid"`
	// Profile of the pod.
	Profile string `json:"profile"`
	Failure
}

// Failure is how an attempt failed, and how often.
type Failure struct {
	// First and Last are the times of the first and the last try, and Times is how many there were.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Times int       `json:"times"`
	// Message is what the scheduler said last.
	Message string `json:"message"`
	// Node had been chosen, and the pod could not be bound to it; empty if none was.
	Node string `json:"node,omitempty"`
	// Nominated is the node on which pods were evicted for this one.
	Nominated string `json:"nominated,omitempty"`
	// Nodes is how many there were to choose from, 0 if the try did not come that far.
	Nodes int `json:"nodes"`
	// Rejected says how many of them each plugin rejected at the last try, and why, the most frequent first.
	Rejected []Rejected `json:"rejected"`
}

// Rejected is a number of nodes that a plugin rejected for the same reasons.
type Rejected struct {
	Plugin  string   `json:"plugin"`
	Reasons []string `json:"reasons"`
	Nodes   int      `json:"nodes"`
	// Examples are the names of some of them.
	Examples []string `json:"examples"`
}

// FailureHandler is what a scheduler calls with a pod that it could not place. It is scheduler.FailureHandlerFn,
// without all that is linked with a scheduler.
type FailureHandler = func(ctx context.Context, profile framework.Framework, pod *framework.QueuedPodInfo,
	status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time)

// Listen lets the history hear of tries that fail. It is the handler of failures that is told of all of them: those
// that find no node, and those that are turned down while the pod is bound. The handler that is returned has to take
// the place of the given one.
func (h *History) Listen(handle FailureHandler) FailureHandler {
	return func(ctx context.Context, profile framework.Framework, pod *framework.QueuedPodInfo,
		status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		// Who sees the pod's condition finds the attempt.
		h.failed(profile.ProfileName(), pod.Pod, status, nominating, time.Now())
		handle(ctx, profile, pod, status, nominating, start)
	}
}

// failed remembers a try that failed.
func (h *History) failed(profile string, pod *v1.Pod, status *fwk.Status, nominating *fwk.NominatingInfo,
	now time.Time) {
	a := &Attempt{Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, UID: pod.UID, Profile: profile,
		Failure: Failure{First: now, Last: now, Times: 1, Message: bounded(status.Message()), Node: pod.Spec.NodeName}}
	if nominating != nil {
		a.Nominated = nominating.NominatedNodeName
	}
	var fit *framework.FitError
	if errors.As(status.AsError(), &fit) {
		a.Nodes, a.Rejected = fit.NumAllNodes, rejected(fit)
	} else if status.Plugin() != "" {
		a.Rejected = []Rejected{{Plugin: status.Plugin(), Reasons: []string{a.Message}, Examples: []string{}}}
	}
	h.attempts.add(a)
}

// Blocked remembers what a plugin says of a pod that it does not let into the queue again: of a gang that it has
// planned without success.
func (h *History) Blocked(plugin string, pod *v1.Pod, why string) {
	now := time.Now()
	said := bounded(why)
	h.attempts.add(&Attempt{
		Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, UID: pod.UID, Profile: pod.Spec.SchedulerName,
		Failure: Failure{First: now, Last: now, Times: 1, Message: said,
			Rejected: []Rejected{{Plugin: plugin, Reasons: []string{said}, Examples: []string{}}}},
	})
}

// bounded is a text that is cut where it is very long. It is a copy, so that it does not keep a longer one alive.
func bounded(text string) string {
	if len(text) <= mostMessage {
		return text
	}
	return strings.ToValidUTF8(text[:mostMessage], "") + "…"
}

// rejected groups the nodes by why they were rejected.
func rejected(fit *framework.FitError) []Rejected {
	type reason struct{ plugin, text string }
	groups := map[reason]*Rejected{}
	// Most nodes are rejected for the same reasons as the one before.
	var last *Rejected
	var said []string
	count := func(status *fwk.Status, nodes int) *Rejected {
		if last != nil && last.Plugin == status.Plugin() && slices.Equal(said, status.Reasons()) {
			last.Nodes += nodes
			return last
		}
		key := reason{status.Plugin(), strings.Join(status.Reasons(), "\n")}
		g := groups[key]
		if g == nil {
			g = &Rejected{Plugin: key.plugin, Examples: []string{}}
			for _, text := range status.Reasons() {
				g.Reasons = append(g.Reasons, bounded(text))
			}
			groups[key] = g
		}
		g.Nodes += nodes
		last, said = g, status.Reasons()
		return g
	}
	statuses := fit.Diagnosis.NodeToStatus
	if statuses == nil {
		return nil
	}
	statuses.ForEachExplicitNode(func(node string, status *fwk.Status) { count(status, 1).example(node) })
	if absent := fit.NumAllNodes - statuses.Len(); absent > 0 {
		count(statuses.AbsentNodesStatus(), absent)
	}
	sorted := slices.SortedFunc(maps.Values(groups), func(a, b *Rejected) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Plugin, b.Plugin), slices.Compare(a.Reasons, b.Reasons))
	})
	kept := make([]Rejected, 0, min(len(sorted), mostRejected))
	for _, g := range sorted[:min(len(sorted), mostRejected)] {
		kept = append(kept, *g)
	}
	return kept
}

// example keeps the first names by the alphabet, whatever the order in which nodes come.
func (r *Rejected) example(node string) {
	at, _ := slices.BinarySearch(r.Examples, node)
	if at == mostExamples {
		return
	}
	r.Examples = slices.Insert(r.Examples, at, node)
	r.Examples = r.Examples[:min(len(r.Examples), mostExamples)]
}

// sameReasons says whether another try failed as this one did. Numbers may differ: of nodes, and in what plugins say of
// a node.
func (a *Attempt) sameReasons(b *Attempt) bool {
	return a.Node == b.Node && a.Nominated == b.Nominated && slices.Equal(a.kinds(), b.kinds())
}

// kinds are the reasons without their numbers, in order.
func (a *Attempt) kinds() []string {
	if len(a.Rejected) == 0 {
		return []string{withoutNumbers(a.Message)}
	}
	kinds := make([]string, len(a.Rejected))
	for i := range a.Rejected {
		kinds[i] = a.Rejected[i].Plugin + "\x00" + withoutNumbers(strings.Join(a.Rejected[i].Reasons, "\x00"))
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}

// bytes is about how much memory the attempt takes.
func (a *Attempt) bytes() int {
	n := int(unsafe.Sizeof(*a)) + len(a.Pod.Namespace) + len(a.Pod.Name) + len(a.UID) + len(a.Message) + len(a.Node) +
		len(a.Nominated)
	for i := range a.Rejected {
		r := &a.Rejected[i]
		n += int(unsafe.Sizeof(*r)) + len(r.Plugin)
		for _, text := range slices.Concat(r.Reasons, r.Examples) {
			n += int(unsafe.Sizeof(text)) + len(text)
		}
	}
	return n
}

// attempts holds the last attempts. They do not change once they are in it.
type attempts struct {
	most int

	mu sync.Mutex
	// all holds them in the order of their last try, the oldest first, and byPod those of a pod in the same order.
	all   *list.List
	byPod map[types.UID][]*list.Element
	bytes int
}

func newAttempts(most int) *attempts {
	return &attempts{most: most, all: list.New(), byPod: map[types.UID][]*list.Element{}}
}

// add remembers an attempt, and forgets others: where it continues the last one of its pod, that one; where there are
// too many, old ones.
func (h *attempts) add(a *Attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := h.byPod[a.UID]
	if n := len(of); n > 0 {
		if last := of[n-1].Value.(*Attempt); last.sameReasons(a) {
			a.First, a.Times = last.First, last.Times+1
			h.forget(of[n-1])
		} else if n == mostPerPod {
			h.forget(of[0])
		}
	}
	h.byPod[a.UID] = append(h.byPod[a.UID], h.all.PushBack(a))
	for h.bytes += a.bytes(); h.all.Len() > h.most || h.bytes > mostAttemptBytes && h.all.Len() > 1; {
		h.forget(h.all.Front())
	}
}

func (h *attempts) forget(e *list.Element) {
	a := h.all.Remove(e).(*Attempt)
	h.bytes -= a.bytes()
	left := slices.DeleteFunc(h.byPod[a.UID], func(other *list.Element) bool { return other == e })
	if len(left) == 0 {
		delete(h.byPod, a.UID)
	} else {
		h.byPod[a.UID] = left
	}
}

// list returns the attempts, the latest first.
func (h *attempts) list() []Attempt {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Attempt, 0, h.all.Len())
	for e := h.all.Back(); e != nil; e = e.Prev() {
		all = append(all, *e.Value.(*Attempt))
	}
	return all
}
