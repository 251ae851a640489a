// Package decisions owns the last decisions of a scheduler, in memory: the scores of the chosen node and of the next
// best one, with the terms of these scores.
//
// cmd/scheduler wraps its profiles and serves the decisions beside its configuration; berth explain asks for them. It
// never changes a decision.
package decisions

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/configz"
)

// Default is how many decisions are kept by default, Most how many can be.
const (
	Default = 1000
	Most    = 10_000
)

// Name of the history among what the scheduler serves at Path.
const (
	Name = "berth.dev/decisions"
	Path = configz.DefaultConfigzPath
)

// Decision is one choice of a node.
type Decision struct {
	Time time.Time            `json:"time"`
	Pod  types.NamespacedName `json:"pod"`
	UID  types.UID            `json:"uid"`
	// Profile of the pod.
	Profile string `json:"profile"`
	// Node that was chosen.
	Node string `json:"node"`
	// ChosenBy names the PreFilter plugins that left one node, or is Batch if the node is that of an equal pod before.
	ChosenBy string `json:"chosenBy,omitempty"`
	// Compared is how many nodes were scored; 0 if only one fitted.
	Compared int `json:"compared"`
	// Nodes are the chosen one and the next best, with a lower score if there is one.
	Nodes []Candidate `json:"nodes"`
}

// Batch is the ChosenBy of a pod that gets the node of an equal pod before it.
const Batch = "batch of equal pods"

// Candidate is a node that was scored.
type Candidate struct {
	Name   string  `json:"name"`
	Total  int64   `json:"total"`
	Scores []Score `json:"scores"`
}

// Score is what a plugin gave the node.
type Score struct {
	Plugin string `json:"plugin"`
	// Raw is in the plugin's own unit, Weighted from 0 to 100 times Weight.
	Raw      int64 `json:"raw"`
	Weight   int64 `json:"weight"`
	Weighted int64 `json:"weighted"`
	// Unit and Terms explain Raw, for plugins that are Scorers.
	Unit  string `json:"unit,omitempty"`
	Terms []Term `json:"terms,omitempty"`
}

// Term is a cycles.Term whose For is encoded, too.
type Term struct {
	Name   string  `json:"name"`
	Amount float64 `json:"amount"`
	For    string  `json:"for,omitempty"`
}

// List is what is served.
type List struct {
	metav1.TypeMeta `json:",inline"`
	// Kept is how many decisions are remembered at most.
	Kept int `json:"kept"`
	// Items are the decisions, the latest first.
	Items []Decision `json:"items"`
}

// History holds the last decisions.
type History struct {
	most int

	mu sync.Mutex
	// decisions are in the order of time. They do not change once they are in it.
	decisions []*Decision
}

// New makes a history of a number of decisions.
func New(most int) (*History, error) {
	if most < 1 || most > Most {
		return nil, fmt.Errorf("%d decisions are not 1 to %d", most, Most)
	}
	return &History{most: most}, nil
}

// add adds a decision, and drops the oldest if there are too many.
func (h *History) add(d *Decision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.decisions) == h.most {
		h.decisions[0] = nil
		h.decisions = h.decisions[1:]
	}
	h.decisions = append(h.decisions, d)
}

// List returns the decisions, the latest first.
func (h *History) List() List {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := List{TypeMeta: served, Kept: h.most, Items: make([]Decision, 0, len(h.decisions))}
	for _, d := range slices.Backward(h.decisions) {
		list.Items = append(list.Items, *d)
	}
	return list
}

var served = metav1.TypeMeta{APIVersion: "berth.dev/v1alpha1", Kind: "DecisionList"}

// Serve serves the history under Name beside the scheduler's configuration, with the same authentication and
// authorization.
func (h *History) Serve() error {
	entry, err := configz.New(Name)
	if err != nil {
		return fmt.Errorf("serving the decisions: %w", err)
	}
	if err := entry.Set(&live{served, h}); err != nil {
		return fmt.Errorf("serving the decisions: %w", err)
	}
	return nil
}

// live is an object that encodes the history of the moment.
type live struct {
	metav1.TypeMeta
	history *History
}

// DeepCopyObject returns the object itself: it has no content of its own.
func (l *live) DeepCopyObject() runtime.Object { return l }

// MarshalJSON encodes the decisions of this moment.
func (l *live) MarshalJSON() ([]byte, error) { return json.Marshal(l.history.List()) }

// Read decodes the decisions from what a scheduler serves at Path.
func Read(body []byte) (*List, error) {
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("decoding what the scheduler serves at %s: %w", Path, err)
	}
	own, ok := all[Name]
	if !ok {
		return nil, fmt.Errorf("the scheduler keeps no decisions: it runs with --decision-history=0, or is not Berth's")
	}
	list := &List{}
	if err := json.Unmarshal(own, list); err != nil {
		return nil, fmt.Errorf("decoding the scheduler's decisions: %w", err)
	}
	return list, nil
}

// Subject is the pod of a question. Without a UID it is the latest one of that name.
type Subject struct {
	types.NamespacedName
	UID types.UID
}

// Of returns the latest decision about the pod, nil if there is none.
func (l *List) Of(pod Subject) *Decision {
	for i := range l.Items {
		if d := &l.Items[i]; d.Pod == pod.NamespacedName && (pod.UID == "" || d.UID == pod.UID) {
			return d
		}
	}
	return nil
}
