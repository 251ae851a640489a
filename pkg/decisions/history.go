// Package decisions remembers why the scheduler chose the nodes that it chose, and why it chose none: the last
// decisions with the points of the chosen node and of those that came next, and with what these points stand for, and
// the last tries that failed with the reasons. They are kept in memory, in the words of the plugins at that time, and
// are served with the scheduler's configuration.
package decisions

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/configz"

	"berth.dev/berth/pkg/cycles"
)

// Default is how many decisions are kept unless told otherwise, Most how many can be.
const (
	Default = 1000
	Most    = 100_000
)

// mostBytes bounds the memory of a history, however long the names in it are.
const mostBytes = 32 << 20

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
	// ChosenBy names the plugins that left no choice, or Batch for a node that was taken over from an equal pod.
	ChosenBy string `json:"chosenBy,omitempty"`
	// Compared is how many nodes were scored; 0 if only one fitted.
	Compared int `json:"compared"`
	// Nodes are the chosen one and the best of the others.
	Nodes []Candidate `json:"nodes"`
}

// Batch is what has chosen the node of a pod that is like the one before it.
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
	// Unit and Terms are what Raw stands for, of plugins that say so.
	Unit  string `json:"unit,omitempty"`
	Terms []Term `json:"terms,omitempty"`
}

// Term is a part of a cost, with what is charged.
type Term struct {
	cycles.Term
	For string `json:"for,omitempty"`
}

// List is what is served.
type List struct {
	metav1.TypeMeta `json:",inline"`
	// Kept is how many decisions are remembered at most, and how many attempts.
	Kept int `json:"kept"`
	// Items are the decisions, the latest first.
	Items []Decision `json:"items"`
	// Attempts are those that failed, the latest first.
	Attempts []Attempt `json:"attempts"`
}

// History holds the last decisions, and the last attempts that failed.
type History struct {
	most     int
	attempts *attempts

	mu sync.Mutex
	// ring holds the records, the oldest at next-held.
	ring       []*record
	next, held int
	bytes      int
}

// New makes a history of a number of decisions, and of the same number of attempts that failed.
func New(most int) (*History, error) {
	if most < 1 || most > Most {
		return nil, fmt.Errorf("%d decisions are not 1 to %d", most, Most)
	}
	return &History{most: most, attempts: newAttempts(most), ring: make([]*record, most)}, nil
}

// add remembers a decision, and forgets old ones where there are too many or they are too large.
func (h *History) add(r *record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == h.most {
		h.forget()
	}
	h.ring[h.next] = r
	h.next = (h.next + 1) % h.most
	h.held++
	for h.bytes += r.bytes(); h.bytes > mostBytes && h.held > 1; {
		h.forget()
	}
}

// forget drops the oldest decision.
func (h *History) forget() {
	at := (h.next - h.held + h.most) % h.most
	h.bytes -= h.ring[at].bytes()
	h.ring[at] = nil
	h.held--
}

// List returns the decisions and the attempts, the latest first.
func (h *History) List() List {
	h.mu.Lock()
	records := make([]*record, h.held)
	for i := range records {
		records[i] = h.ring[(h.next-1-i+h.most)%h.most]
	}
	h.mu.Unlock()
	list := List{TypeMeta: served, Kept: h.most, Items: make([]Decision, len(records)), Attempts: h.attempts.list()}
	for i, r := range records {
		list.Items[i] = r.decision()
	}
	return list
}

var served = metav1.TypeMeta{APIVersion: "berth.dev/v1alpha1", Kind: "DecisionList"}

// Serve puts the history beside the scheduler's configuration, under Name: behind the same authentication and
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

// live is the history as an object that is read when it is asked for.
type live struct {
	metav1.TypeMeta
	history *History
}

// DeepCopyObject returns the object itself: it has no content of its own.
func (l *live) DeepCopyObject() runtime.Object { return l }

// MarshalJSON encodes the decisions of this moment.
func (l *live) MarshalJSON() ([]byte, error) { return json.Marshal(l.history.List()) }

// Read returns the decisions in what a scheduler serves at Path.
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

// Subject is a pod that is asked about. Without a UID it is the latest one of that name.
type Subject struct {
	types.NamespacedName
	UID types.UID
}

// Of returns the latest decision about the pod, nil if there is none, and the attempts that failed, the latest first.
func (l *List) Of(pod Subject) (*Decision, []Attempt) {
	var decision *Decision
	var attempts []Attempt
	if pod.UID == "" {
		pod.UID = l.latest(pod.NamespacedName)
	}
	for i := range l.Items {
		if d := &l.Items[i]; d.Pod == pod.NamespacedName && d.UID == pod.UID {
			decision = d
			break
		}
	}
	for i := range l.Attempts {
		if a := &l.Attempts[i]; a.Pod == pod.NamespacedName && a.UID == pod.UID {
			attempts = append(attempts, *a)
		}
	}
	return decision, attempts
}

// latest is the UID of the pod of that name about which something was remembered last.
func (l *List) latest(pod types.NamespacedName) (uid types.UID) {
	var at time.Time
	for i := range l.Items {
		if d := &l.Items[i]; d.Pod == pod && !d.Time.Before(at) {
			uid, at = d.UID, d.Time
		}
	}
	for i := range l.Attempts {
		if a := &l.Attempts[i]; a.Pod == pod && a.Last.After(at) {
			uid, at = a.UID, a.Last
		}
	}
	return uid
}

// mostNodes is how many nodes of a decision are kept: the chosen one and the best others.
const mostNodes = 3

// record is a decision as it is kept. It does not change.
type record struct {
	at       time.Time
	pod      types.NamespacedName
	uid      types.UID
	profile  string
	node     string
	chosenBy string
	compared int
	kept     int
	names    [mostNodes]string
	totals   [mostNodes]int64
	// plugins are those that scored, shared by records; scores holds the points and then the raw scores of each node.
	plugins *plugins
	scores  []int64
	costs   []cost
}

// plugins are the plugins that scored a pod, with their weights.
type plugins struct {
	names   []string
	weights []int64
}

// cost is what a raw score stands for.
type cost struct {
	node   int
	plugin string
	cycles.Cost
}

// bytes is about how much memory the record takes.
func (r *record) bytes() int {
	n := int(unsafe.Sizeof(*r)) + len(r.pod.Namespace) + len(r.pod.Name) + len(r.uid) + len(r.chosenBy) + 8*len(r.scores)
	for i := range r.costs {
		n += int(unsafe.Sizeof(r.costs[i])) + len(r.costs[i].Terms)*int(unsafe.Sizeof(cycles.Term{}))
	}
	return n
}

// decision is the record as it is served.
func (r *record) decision() Decision {
	d := Decision{Time: r.at, Pod: r.pod, UID: r.uid, Profile: r.profile, Node: r.node, ChosenBy: r.chosenBy,
		Compared: r.compared,
		Nodes:    make([]Candidate, r.kept)}
	for i := range d.Nodes {
		n := len(r.plugins.names)
		of := r.scores[i*2*n : (i+1)*2*n]
		d.Nodes[i] = Candidate{Name: r.names[i], Total: r.totals[i], Scores: make([]Score, n)}
		for j, name := range r.plugins.names {
			s := Score{Plugin: name, Weight: r.plugins.weights[j], Weighted: of[j], Raw: of[n+j]}
			for k := range r.costs {
				if c := &r.costs[k]; c.node == i && c.plugin == name {
					s.Unit = c.Unit
					for _, t := range c.Terms {
						s.Terms = append(s.Terms, Term{Term: t, For: t.For})
					}
				}
			}
			d.Nodes[i].Scores[j] = s
		}
	}
	return d
}
