package policy

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// Demand is the rules of a Set that concern a pod.
type Demand struct {
	// Refusal is why the pod may run on no node, whatever is evicted; empty if it may.
	Refusal string
	// UnknownDatasets are those that the pod names and no policy knows.
	UnknownDatasets []string

	set *Set
	key string
	// oneOf are sets of rules: the pod may run only on nodes of at least one rule of each.
	oneOf [][]*rule
	// closed are the exclusive rules that keep the pod off their nodes, unless one in open of the same policy lets it in.
	closed, open []*complianceRule
	licenses     []licenseDemand
	// preferred are datasets, each with the rules that say where it is.
	preferred [][]*datasetRule
	// best is the sum of the best weights of the preferred datasets.
	best int64
}

// licenseDemand is an amount of a license, with the numbers of the rules on it.
type licenseDemand struct {
	amount int64
	rules  []int
}

// Key identifies a demand, across Sets: demands with the same key are treated alike.
func (d *Demand) Key() string { return d.key }

// Filters reports whether there may be nodes on which the pod may not run.
func (d *Demand) Filters() bool {
	return len(d.oneOf) > 0 || len(d.closed) > 0 || len(d.licenses) > 0
}

// Scores reports whether the pod prefers nodes.
func (d *Demand) Scores() bool { return len(d.preferred) > 0 }

// UsesLicenses reports whether the pod uses licenses.
func (d *Demand) UsesLicenses() bool { return len(d.licenses) > 0 }

// amounts yields the licenses that the pod uses on a node, by the number of the rule. A node that may be in a pool
// counts there.
func (d *Demand) amounts(m Marks) iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		for _, l := range d.licenses {
			for _, number := range l.rules {
				if m.mayBeIn(d.set.licenses[number].nodes) && !yield(number, l.amount) {
					return
				}
			}
		}
	}
}

// reader computes a demand.
type reader struct {
	*Demand
	pod   *v1.Pod
	about *subject
	parts []string
}

// DemandOf returns the rules that concern the pod. A pod with a value that cannot be read gets a Refusal. So does a pod
// whose namespace is not known, nil, if some rule reads the labels of namespaces.
func (s *Set) DemandOf(pod *v1.Pod, namespace *v1.Namespace) *Demand {
	labels := map[string]string{v1.LabelMetadataName: pod.Namespace}
	if namespace != nil {
		labels = namespace.Labels
	}
	r := &reader{Demand: &Demand{set: s}, pod: pod, about: podSubject(pod, labels)}
	if namespace == nil && s.namespaces {
		r.refuse("namespace " + pod.Namespace + " is not known to the scheduler yet, and placement policies read its labels")
	}
	r.readLicenses()
	// Compliance is read before datasets, so that its reason against a node is reported.
	r.readCompliance()
	r.readDatasets()
	if r.Refusal != "" {
		r.parts = append(r.parts, r.Refusal)
	}
	r.key = strings.Join(r.parts, "\n")
	return r.Demand
}

// refuse notes the first reason against the pod.
func (r *reader) refuse(reason string) {
	if r.Refusal == "" {
		r.Refusal = reason
	}
}

// selects reports whether the rule selects the pod. A rule that cannot be evaluated refuses the pod.
func (r *reader) selects(of *rule) bool {
	yes, err := of.pods.matches(r.about)
	if err != nil {
		r.parts = append(r.parts, of.id+"!")
		r.refuse(fmt.Sprintf("%s cannot be evaluated: %v", of, err))
	}
	return yes
}

func (r *reader) readLicenses() {
	asked, bad := podview.PodLicenses(r.pod)
	if bad != nil {
		r.refuse(bad.Error())
	}
	for i := range r.set.licenses {
		l := &r.set.licenses[i]
		if l.perPod > 0 && r.selects(&l.rule) {
			at := slices.IndexFunc(asked, func(a podview.License) bool { return a.Name == l.license })
			if at < 0 {
				at, asked = len(asked), append(asked, podview.License{Name: l.license})
			}
			asked[at].Amount = max(asked[at].Amount, l.perPod)
		}
	}
	for _, a := range asked {
		d := licenseDemand{amount: a.Amount}
		for i := range r.set.licenses {
			if l := &r.set.licenses[i]; l.license == a.Name {
				d.rules = append(d.rules, i)
				r.parts = append(r.parts, l.id+"="+strconv.FormatInt(a.Amount, 10))
			}
		}
		if len(d.rules) == 0 {
			r.refuse(fmt.Sprintf("pod annotation %s: no placement policy has a license %s", wellknown.LicensesKey, a.Name))
			continue
		}
		r.licenses = append(r.licenses, d)
	}
}

func (r *reader) readDatasets() {
	named, bad := podview.PodDatasets(r.pod)
	if bad != nil {
		r.refuse(bad.Error())
	}
	for i := range r.set.datasets {
		if d := &r.set.datasets[i]; d.selects && r.selects(&d.rule) && !slices.Contains(named, d.dataset) {
			named = append(named, d.dataset)
		}
	}
	for _, name := range named {
		var required []*rule
		var preferred []*datasetRule
		best := int64(0)
		for i := range r.set.datasets {
			d := &r.set.datasets[i]
			switch {
			case d.dataset != name:
				continue
			case d.required:
				required = append(required, &d.rule)
			default:
				preferred = append(preferred, d)
				best = max(best, d.weight)
			}
			r.parts = append(r.parts, d.id)
		}
		if len(required) > 0 {
			r.oneOf = append(r.oneOf, required)
		}
		if len(preferred) > 0 {
			r.preferred = append(r.preferred, preferred)
			r.best += best
		}
		if len(required)+len(preferred) == 0 {
			r.UnknownDatasets = append(r.UnknownDatasets, name)
		}
	}
}

func (r *reader) readCompliance() {
	for i := range r.set.compliance {
		c := &r.set.compliance[i]
		if !r.selects(&c.rule) {
			continue
		}
		matched := false
		for j := range c.rules {
			of := &c.rules[j]
			switch {
			case r.selects(&of.rule):
				matched = true
				r.oneOf = append(r.oneOf, []*rule{&of.rule})
				if of.exclusive {
					r.open = append(r.open, of)
				}
				r.parts = append(r.parts, of.id)
			case of.exclusive && !podview.BelongsToNode(r.pod):
				r.closed = append(r.closed, of)
				r.parts = append(r.parts, "!"+of.id)
			}
		}
		if !matched && c.deny {
			r.parts = append(r.parts, c.id)
			r.refuse(fmt.Sprintf("placement policy %s denies pods that none of its compliance rules matches", c.policy))
		}
	}
}
