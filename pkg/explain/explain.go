package explain

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/spelling"
)

// Question is the input of Pod.
type Question struct {
	// Configuration of the scheduler; it is not changed.
	Configuration *schedulerconfig.Configuration
	// Objects are the cluster, as a snapshot holds it; they are not changed.
	Objects []runtime.Object
	// Pod to explain. A pod that is bound is explained as of now and without itself.
	Pod *v1.Pod
	// Profile replaces the profile that the pod names, if not empty.
	Profile string
	// Unread are the kinds that could not be listed, each with the reason.
	Unread []string
	// Now is the time of the snapshot: price windows and deadlines depend on it.
	Now time.Time
}

// Explanation says where a pod is or would be scheduled, and why.
type Explanation struct {
	Pod PodName `json:"pod"`
	// State of the pod: pending or bound.
	State string `json:"state"`
	// BoundTo is the node of a bound pod.
	BoundTo       string `json:"boundTo,omitempty"`
	Profile       string `json:"profile"`
	Configuration string `json:"configuration"`
	// Verdict is the answer and its reason in one sentence.
	Verdict string `json:"verdict"`
	// Winner is the node that the scheduler chooses, empty if none fits. For a member of a gang that starts it is the node
	// in the gang's plan.
	Winner string `json:"winner,omitempty"`
	// Margin is the difference in points between the winner and the best node with a lower score.
	Margin int64 `json:"margin,omitempty"`
	// RunnerUp is the best node with a lower score, and what would have to change for it to win.
	RunnerUp *RunnerUp `json:"runnerUp,omitempty"`
	// Share says who enforces the pod's share of a GPU on its node, for a pod that asks for one.
	Share string `json:"share,omitempty"`
	// PreEnqueue are the plugins that keep the pod out of the scheduling queue.
	PreEnqueue []Rejection `json:"held"`
	// Gang is set for a member of a gang. Nodes then describe this member alone.
	Gang *Gang `json:"gang,omitempty"`
	// selector says which of the labels that the pod requires no node has, empty if there are none.
	selector string
	// hopeless are the nodes that would reject the pod even without other pods, and why.
	hopeless []Node
	// Closest are the nodes with the smallest shortfall, among those that would accept the pod without other pods.
	Closest []Shortfall `json:"closest"`
	// Preemption is the result of the search for pods of lower priority to evict.
	Preemption *Preemption `json:"preemption,omitempty"`
	// Late is a deadline that the pod cannot keep, as reported by the running scheduler.
	Late string `json:"late,omitempty"`
	// NotScored are plugins that did not score because the snapshot does not have their input.
	NotScored []NotScored `json:"notScored"`
	// Feasible nodes, best first, then rejected ones by name.
	Nodes []Node `json:"nodes"`
	// Notes say what the answer does not take into account.
	Notes []string `json:"notes"`
}

// PodName names a pod.
type PodName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (n PodName) String() string { return n.Namespace + "/" + n.Name }

// Rejection is a rejection by a plugin.
type Rejection struct {
	Plugin  string   `json:"plugin"`
	Reasons []string `json:"reasons"`
}

// Node is the result for one node: either Rejected or Scores is set.
type Node struct {
	Name     string     `json:"name"`
	Rejected *Rejection `json:"rejected,omitempty"`
	Total    int64      `json:"total"`
	Scores   []Score    `json:"scores"`
}

// Score is one plugin's score of a node.
type Score struct {
	Plugin string `json:"plugin"`
	// Raw is in a unit of the plugin, Normalised is from 0 to 100, and Weighted is Normalised times Weight.
	Raw        int64 `json:"raw"`
	Normalised int64 `json:"normalised"`
	Weight     int64 `json:"weight"`
	Weighted   int64 `json:"weighted"`
	// Cost explains Raw term by term, for plugins that can do so.
	Cost *Cost `json:"cost,omitempty"`
}

// Shortfall is the resource that a node has too little of.
type Shortfall struct {
	Node     string `json:"node"`
	Resource string `json:"resource"`
	Needs    string `json:"needs"`
	Free     string `json:"free"`
	// Largest is the largest amount that a node has in total, if that is less than what is needed.
	Largest string `json:"largest,omitempty"`
	// Like is a resource with a similar name that some node has, if none has Resource.
	Like string `json:"like,omitempty"`
}

// Preemption is what the scheduler does when no node fits: it evicts Victims from Node.
type Preemption struct {
	// Node is empty for a gang.
	Node    string   `json:"node,omitempty"`
	Victims []string `json:"victims"`
	// Losses say what each of the victims loses, and Spared what the cheapest other pods would lose. Both are empty if the
	// profile does not have Coscheduling.
	Losses []Loss `json:"losses"`
	Spared []Loss `json:"spared"`
	// Message says why no pods are evicted.
	Message string `json:"message,omitempty"`
}

// evicts reports whether pods are evicted.
func (p *Preemption) evicts() bool { return p != nil && len(p.Victims) > 0 }

// Pod explains a pod. An error says what is wrong with the question.
func Pod(q Question) (*Explanation, error) {
	target := gpuview.Unplaced(q.Pod)
	if target.Namespace == "" {
		target.Namespace = v1.NamespaceDefault
	}
	if podview.Finished(q.Pod) {
		return nil, fmt.Errorf(
			"pod %s/%s has ended (%s): there is nothing to schedule; --at-decision says why it was where it was",
			target.Namespace, target.Name, q.Pod.Status.Phase)
	}
	if q.Profile != "" {
		target.Spec.SchedulerName = q.Profile
	}
	if target.Spec.SchedulerName == "" {
		target.Spec.SchedulerName = v1.DefaultSchedulerName
	}
	if _, err := q.Configuration.Profile(target.Spec.SchedulerName); err != nil {
		return nil, foreign(target, q.Configuration, err)
	}
	e := &Explanation{
		Pod:   PodName{Namespace: target.Namespace, Name: target.Name},
		State: "pending", BoundTo: q.Pod.Spec.NodeName, Profile: target.Spec.SchedulerName,
		Configuration: q.Configuration.Name,
	}
	if e.BoundTo != "" {
		e.State = "bound"
	}
	e.Late = work.Missed(q.Pod)
	configuration, silenced := q.Configuration.WithoutSignals()
	configuration, _ = configuration.WithoutExtenderFiles()
	for _, plugin := range silenced {
		e.Notes = append(e.Notes, plugin+" was run without what Prometheus would tell it")
	}
	err := simulation.Virtual(q.Now, func() error { return explain(e, configuration, q.Objects, target) })
	if err != nil {
		return nil, fmt.Errorf("explaining pod %s: %w", e.Pod, err)
	}
	if e.Gang != nil && e.Gang.MinMember == 0 && len(q.Unread) > 0 {
		return nil, fmt.Errorf("explaining pod %s: the size of gang %s is unknown; objects that may declare it cannot be "+
			"listed: %s", e.Pod, e.Gang.Name, strings.Join(q.Unread, "; "))
	}
	if len(e.scored()) > 0 {
		e.NotScored = notScored(q.Configuration, target)
	}
	if planned := e.Gang.node(e.Pod.Name); planned != "" {
		e.Winner = planned
	}
	e.Verdict = e.sentence()
	e.Share = enforcement(q.Configuration.GPUKeys(e.Profile), q.Pod, cmp.Or(e.BoundTo, e.Winner), q.Objects)
	return e, nil
}

// foreign is the error for a pod of a scheduler that the configuration does not have.
func foreign(pod *v1.Pod, c *schedulerconfig.Configuration, missing error) error {
	name := pod.Spec.SchedulerName
	profiles := map[string]bool{}
	for i := range c.Component.Profiles {
		profiles[c.Component.Profiles[i].SchedulerName] = true
	}
	like, hint := spelling.Closest(name, profiles), ""
	switch {
	case like != "":
		hint = "; did you mean " + like + "?"
	case name == v1.DefaultSchedulerName:
		hint = "; a pod without schedulerName gets this one, which berth up --replace-default and the overlay " +
			"manifests/replace-default serve, too"
	}
	return fmt.Errorf("pod %s/%s: %w%s; --profile explains it as if it named one of them", pod.Namespace, pod.Name,
		missing, hint)
}

// enforcement says who enforces the pod's share of a GPU on a node; it is empty for a pod without a share or a node.
func enforcement(keys gpuview.Keys, pod *v1.Pod, name string, objects []runtime.Object) string {
	for _, obj := range objects {
		if node, ok := obj.(*v1.Node); ok && node.Name == name {
			return keys.Enforcement(pod, node)
		}
	}
	return ""
}
