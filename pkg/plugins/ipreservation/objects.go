package ipreservation

import (
	"fmt"

	"berth.dev/berth/pkg/address"
	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
)

// holdingOf reads a reservation.
func holdingOf(r *networkv1alpha1.IPReservation) (address.Holding, error) {
	a, err := address.Parse(r.Spec.Address)
	if err != nil {
		return address.Holding{}, fmt.Errorf("reading IPReservation %s: %w", r.Name, err)
	}
	return address.Holding{Address: a, Object: string(r.UID), Pool: r.Spec.Pool, Domain: domainOf(r.Spec.Domain), Identity: identityOf(&r.Spec.Pod)}, nil
}

func identityOf(p *networkv1alpha1.PodIdentity) address.Identity {
	who := address.Identity{Namespace: p.Namespace, StatefulSet: p.StatefulSet, Pod: p.Name}
	if p.Ordinal != nil {
		who.Ordinal = *p.Ordinal
	}
	return who
}

func domainOf(d *networkv1alpha1.Domain) address.Domain {
	if d == nil {
		return address.Domain{}
	}
	return address.Domain{Key: d.Key, Value: d.Value}
}
