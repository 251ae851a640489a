package validate

import (
	placementv1alpha1 "berth.dev/berth/pkg/apis/placement/v1alpha1"
	"berth.dev/berth/pkg/policy"
)

// policy reads the rules as the scheduler does. The API server checks fields only, and compiles no expressions.
func (d *document) policy(p *placementv1alpha1.PlacementPolicy) {
	set, all := policy.NewSet([]*placementv1alpha1.PlacementPolicy{p})
	problems := all[p.Name]
	for _, problem := range problems {
		d.findIn(Error, "policy", problem.Field, body(problem))
	}
	if set.Empty() && len(problems) == 0 && !d.misspelt {
		d.findIn(Error, "policy", "spec", "a policy needs licenses, datasets or compliance")
	}
}
