package validate

import (
	"fmt"

	"berth.dev/berth/pkg/address"
	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/policy"
)

// policy reads the rules as the scheduler does. The API server does not compile the expressions.
func (d *document) policy(p *berthv1alpha1.PlacementPolicy) {
	set, all := policy.NewSet([]*berthv1alpha1.PlacementPolicy{p})
	problems := all[p.Name]
	for _, problem := range problems {
		d.findIn(Error, "policy", problem.Field, body(problem))
	}
	if set.Empty() && len(problems) == 0 && !d.misspelt {
		d.findIn(Error, "policy", "spec", "a policy needs licenses, datasets or compliance")
	}
}

// pool reads the addresses as the scheduler does. The API server accepts overlapping and reversed ranges.
func (d *document) pool(p *berthv1alpha1.IPPool) {
	_, problems := podview.AddressPool(p)
	for _, problem := range problems {
		d.findIn(Error, "address", problem.Field, body(problem))
	}
}

// reservation checks that the name of an IPReservation fits its address.
func (d *document) reservation(r *berthv1alpha1.IPReservation) {
	a, err := address.Parse(r.Spec.Address)
	if err != nil {
		d.findIn(Error, "address", "spec.address", err.Error())
		return
	}
	if want := podview.ReservationName(a); r.Name != want {
		d.findIn(Error, "address", "metadata.name",
			fmt.Sprintf("a reservation of %s must be named %s, not %s", a, want, r.Name))
	}
}
