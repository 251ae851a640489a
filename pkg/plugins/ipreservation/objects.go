package ipreservation

import (
	"fmt"
	"strconv"

	"berth.dev/berth/pkg/address"
	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
)

const decimal, uint64Bits = 10, 64

// holdingOf reads a reservation.
func holdingOf(r *networkv1alpha1.IPReservation) (address.Holding, error) {
	a, err := address.Parse(r.Spec.Address)
	if err != nil {
		return address.Holding{}, fmt.Errorf("reading IPReservation %s: %w", r.Name, err)
	}
	// Versions of one resource grow; one that is no number, which no API server writes, is that of an object of unknown
	// age.
	version, _ := strconv.ParseUint(r.ResourceVersion, decimal, uint64Bits)
	return address.Holding{Address: a, Object: string(r.UID), Version: version, Pool: r.Spec.Pool,
		Domain:   domainOf(r.Spec.Domain),
		Identity: identityOf(&r.Spec.Pod), Pod: r.Spec.PodUID}, nil
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
