package policy

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
)

// rule is what all rules have.
type rule struct {
	policy, name string
	// id changes with every change of the policy.
	id   string
	pods *matcher
	// nodes is the number of the rule's node set.
	nodes int
	// denied and failed are the reasons against nodes outside the rule's node set, and against nodes for which it cannot
	// be evaluated. They are made once, because thousands of nodes may need them in one cycle.
	denied, failed string
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
	// kept is the reason against nodes that an exclusive rule keeps for other pods.
	kept string
}

// compliance is the compliance rules of one policy.
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
	// nodes are the node sets by number.
	nodes []*matcher
	// namespaces is set if some rule reads labels of namespaces.
	namespaces bool
}

// NewSet makes a set of policies. Rules that cannot be evaluated are in problems, by the name of the policy; its other
// rules apply.
func NewSet(policies []*berthv1alpha1.PlacementPolicy) (s *Set, problems map[string]field.ErrorList) {
	s, problems = &Set{}, map[string]field.ErrorList{}
	// Sorted, so that the same policies make the same set whatever the order in which they are read.
	sorted := slices.SortedFunc(slices.Values(policies),
		func(a, b *berthv1alpha1.PlacementPolicy) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range sorted {
		b := &builder{Set: s, policy: p}
		b.add(&p.Spec)
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

// Licenses reports whether there are rules on licenses.
func (s *Set) Licenses() bool { return len(s.licenses) > 0 }

// ReadsNamespaces reports whether some rule reads labels of namespaces.
func (s *Set) ReadsNamespaces() bool { return s.namespaces }

// builder adds one policy to a set. The API server has checked the ranges and values of fields.
type builder struct {
	*Set
	policy *berthv1alpha1.PlacementPolicy
	errs   field.ErrorList
}

func (b *builder) add(spec *berthv1alpha1.PlacementPolicySpec) {
	path := field.NewPath("spec")
	for i := range spec.Licenses {
		l := &spec.Licenses[i]
		r := licenseRule{rule: b.rule(path.Child("licenses").Index(i), l.Name, l.Pods, l.Nodes),
			license: cmp.Or(l.License, l.Name), count: int64(l.Count)}
		r.denied = "node(s) outside the pools of license " + r.license + " (" + r.String() + ")"
		if l.Pods != nil {
			r.perPod = 1
			if l.PerPod != nil {
				r.perPod = int64(*l.PerPod)
			}
		}
		b.licenses = append(b.licenses, r)
	}
	for i := range spec.Datasets {
		d := &spec.Datasets[i]
		r := datasetRule{rule: b.rule(path.Child("datasets").Index(i), d.Name, d.Pods, &d.Nodes),
			dataset: cmp.Or(d.Dataset, d.Name), selects: d.Pods != nil, required: d.Mode == berthv1alpha1.Required,
			weight: 100}
		r.denied = "node(s) that do not hold dataset " + r.dataset + " (" + r.String() + ")"
		if d.Weight != nil {
			r.weight = int64(*d.Weight)
		}
		b.datasets = append(b.datasets, r)
	}
	if c := spec.Compliance; c != nil {
		path := path.Child("compliance")
		all := compliance{rule: b.rule(path, "compliance", c.Pods, nil), deny: c.DefaultAction == berthv1alpha1.Deny}
		for i := range c.Rules {
			of := &c.Rules[i]
			r := complianceRule{rule: b.rule(path.Child("rules").Index(i), of.Name, of.Pods, &of.Nodes),
				exclusive: of.Exclusive}
			r.denied = "node(s) that " + r.String() + " does not allow"
			r.kept = "node(s) that " + r.String() + " keeps for other pods"
			all.rules = append(all.rules, r)
		}
		b.compliance = append(b.compliance, all)
	}
}

// rule reads what all rules have.
func (b *builder) rule(path *field.Path, name string, pods *berthv1alpha1.PodSelector,
	nodes *berthv1alpha1.NodeSelector) rule {
	p := b.policy
	r := rule{policy: p.Name, name: name, id: fmt.Sprintf("%s/%s/%d/%s", p.Name, p.UID, p.Generation, name),
		pods: b.podMatcher(path.Child("pods"), pods), nodes: everywhere}
	r.failed = "node(s) for which " + r.String() + " cannot be evaluated"
	if nodes != nil {
		r.nodes = len(b.nodes)
		b.nodes = append(b.nodes, b.nodeMatcher(path.Child("nodes"), nodes))
	}
	return r
}

func (b *builder) invalid(path *field.Path, value string, err error) {
	b.errs = append(b.errs, field.Invalid(path, value, err.Error()))
}
