// Package policy holds the rules of placement policies in a form that scheduling cycles can ask.
//
// A Set is made of all policies at once, when they change. What a pod has to do with it is worked out once for the pod,
// as a Demand, and what a node has to do with it once for the node, as Marks; a cycle only compares the two. Nothing
// changes in a Set, so that cycles, hints and informers' handlers share one without locks.
package policy

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1alpha1 "berth.dev/berth/pkg/apis/placement/v1alpha1"
)

// everywhere is the number of the set of all nodes.
const everywhere = -1

// rule is what all rules have.
type rule struct {
	policy, name string
	// id changes with every change of the policy.
	id string
	// lenient leaves the rule out where it cannot be evaluated.
	lenient bool
	pods    *podMatcher
	// nodes is the number of the rule's node set.
	nodes int
	// denied, kept and failed are what is said of nodes that the rule does not allow, that it keeps for other pods, and
	// that it cannot judge. Thousands of nodes are told so in one cycle.
	denied, kept, failed string
}

func (r *rule) String() string {
	return fmt.Sprintf("rule %s of placement policy %s", r.name, r.policy)
}

type licenseRule struct {
	rule
	license string
	count   int64
	// perPod is what a pod that is selected uses at least; 0 where the rule selects none.
	perPod int64
}

type datasetRule struct {
	rule
	dataset  string
	selects  bool
	required bool
	weight   int64
}

type complianceRule struct {
	rule
	exclusive bool
}

// compliance is that part of one policy.
type compliance struct {
	rule
	deny  bool
	rules []complianceRule
}

// Set is the rules of all policies.
type Set struct {
	licenses   []licenseRule
	datasets   []datasetRule
	compliance []compliance
	// nodes are the node sets by number, with the rules that they belong to.
	nodes []nodeSet
	// namespaces is set if some rule reads labels of namespaces.
	namespaces bool
	marks      marksTable
}

type nodeSet struct {
	*nodeMatcher
	lenient bool
}

// NewSet makes a set of policies. What is wrong with a policy is in problems under its name; its other rules hold.
func NewSet(policies []*placementv1alpha1.PlacementPolicy) (s *Set, problems map[string]field.ErrorList) {
	s, problems = &Set{}, map[string]field.ErrorList{}
	s.marks.known = map[string]*Marks{}
	// Sorted, so that the same policies make the same set whatever the order in which they are read.
	sorted := slices.SortedFunc(slices.Values(policies),
		func(a, b *placementv1alpha1.PlacementPolicy) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range sorted {
		b := &builder{Set: s, policy: p}
		b.add()
		if len(b.errs) > 0 {
			problems[p.Name] = b.errs
		}
	}
	return s, problems
}

// Empty reports whether there are no rules.
func (s *Set) Empty() bool {
	return len(s.licenses) == 0 && len(s.datasets) == 0 && len(s.compliance) == 0
}

// ReadsNamespaces reports whether some rule reads labels of namespaces.
func (s *Set) ReadsNamespaces() bool { return s.namespaces }

// builder adds one policy to a set.
type builder struct {
	*Set
	policy *placementv1alpha1.PlacementPolicy
	errs   field.ErrorList
}

func (b *builder) add() {
	spec, path := &b.policy.Spec, field.NewPath("spec")
	switch spec.FailurePolicy {
	case "", placementv1alpha1.Fail, placementv1alpha1.Ignore:
	default:
		b.invalid(path.Child("failurePolicy"), string(spec.FailurePolicy), "Fail, Ignore")
	}
	for i := range spec.Licenses {
		b.license(path.Child("licenses").Index(i), &spec.Licenses[i])
	}
	for i := range spec.Datasets {
		b.dataset(path.Child("datasets").Index(i), &spec.Datasets[i])
	}
	if spec.Compliance != nil {
		b.complianceOf(path.Child("compliance"), spec.Compliance)
	}
}

func (b *builder) invalid(path *field.Path, value any, allowed string) {
	b.errs = append(b.errs, field.Invalid(path, value, "want "+allowed))
}

// rule reads what all rules have.
func (b *builder) rule(path *field.Path, name string, pods *placementv1alpha1.PodSelector,
	nodes *placementv1alpha1.NodeSelector) rule {
	p := b.policy
	r := rule{policy: p.Name, name: name, nodes: everywhere, lenient: p.Spec.FailurePolicy == placementv1alpha1.Ignore,
		id: fmt.Sprintf("%s/%s/%d/%s", p.Name, p.UID, p.Generation, name)}
	r.denied, r.kept = "node(s) that "+r.String()+" does not allow", "node(s) that "+r.String()+" keeps for other pods"
	r.failed = "node(s) for which " + r.String() + " cannot be evaluated"
	var errs field.ErrorList
	r.pods, errs = newPodMatcher(path.Child("pods"), pods)
	b.errs = append(b.errs, errs...)
	b.namespaces = b.namespaces || r.pods.readsNamespaces()
	if nodes != nil {
		m, errs := newNodeMatcher(path.Child("nodes"), nodes)
		b.errs = append(b.errs, errs...)
		r.nodes = len(b.nodes)
		b.nodes = append(b.nodes, nodeSet{m, r.lenient})
	}
	return r
}

func (b *builder) license(path *field.Path, l *placementv1alpha1.LicenseRule) {
	r := licenseRule{rule: b.rule(path, l.Name, l.Pods, l.Nodes), license: cmp.Or(l.License, l.Name),
		count: int64(l.Count)}
	if r.count < 0 {
		// No license is the safe reading.
		b.invalid(path.Child("count"), l.Count, "0 or more")
		r.count = 0
	}
	if l.Pods != nil {
		r.perPod = 1
		if l.PerPod != nil {
			r.perPod = int64(*l.PerPod)
		}
		if r.perPod < 1 {
			b.invalid(path.Child("perPod"), *l.PerPod, "1 or more")
			r.perPod = 1
		}
	}
	b.licenses = append(b.licenses, r)
}

func (b *builder) dataset(path *field.Path, d *placementv1alpha1.DatasetRule) {
	r := datasetRule{rule: b.rule(path, d.Name, d.Pods, &d.Nodes), dataset: cmp.Or(d.Dataset, d.Name),
		selects: d.Pods != nil, weight: 100}
	switch d.Mode {
	case placementv1alpha1.Required:
		r.required = true
	case "", placementv1alpha1.Preferred:
	default:
		b.invalid(path.Child("mode"), string(d.Mode), "Required, Preferred")
	}
	if d.Weight != nil {
		r.weight = int64(*d.Weight)
	}
	if r.weight < 1 || r.weight > 100 {
		b.invalid(path.Child("weight"), r.weight, "1 to 100")
		r.weight = min(max(r.weight, 1), 100)
	}
	b.datasets = append(b.datasets, r)
}

func (b *builder) complianceOf(path *field.Path, c *placementv1alpha1.Compliance) {
	all := compliance{rule: b.rule(path, "compliance", c.Pods, nil)}
	switch c.DefaultAction {
	case placementv1alpha1.Deny:
		all.deny = true
	case "", placementv1alpha1.Allow:
	default:
		b.invalid(path.Child("defaultAction"), string(c.DefaultAction), "Allow, Deny")
		all.deny = !all.lenient
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		all.rules = append(all.rules,
			complianceRule{rule: b.rule(path.Child("rules").Index(i), r.Name, r.Pods, &r.Nodes), exclusive: r.Exclusive})
	}
	b.compliance = append(b.compliance, all)
}

// Limit is a rule on a license.
type Limit struct {
	Policy, Rule, License string
	Count                 int64
}

// Limits returns the rules on licenses by number.
func (s *Set) Limits() []Limit {
	limits := make([]Limit, len(s.licenses))
	for i := range s.licenses {
		l := &s.licenses[i]
		limits[i] = Limit{Policy: l.policy, Rule: l.name, License: l.license, Count: l.count}
	}
	return limits
}

// MarksOf returns what the node has to do with the set.
func (s *Set) MarksOf(node *v1.Node) *Marks {
	m := &Marks{in: newBits(len(s.nodes)), failed: newBits(len(s.nodes)), ignored: newBits(len(s.nodes))}
	about := nodeSubject(node)
	for i := range s.nodes {
		n := &s.nodes[i]
		yes, err := n.matches(about)
		switch {
		case err != nil && n.lenient:
			m.ignored.set(i)
		case err != nil:
			m.failed.set(i)
		case yes:
			m.in.set(i)
		}
	}
	return s.marks.intern(m)
}
