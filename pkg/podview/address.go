package podview

import (
	"net/netip"
	"regexp"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/address"
	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	"berth.dev/berth/pkg/wellknown"
)

const (
	ipPoolAllowed = "the name of an IPPool, such as racks"
	longestIPPool = 253
)

// ipPoolName matches names of IPPools.
var ipPoolName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// PodIPPool returns the name of the IPPool from which the pod asks for an address, empty for none.
func PodIPPool(pod *v1.Pod) (string, *wellknown.BadValue) {
	value, ok := pod.Annotations[wellknown.IPPoolKey]
	if !ok {
		return "", nil
	}
	if len(value) > longestIPPool || !ipPoolName.MatchString(value) {
		return "", BadAnnotation(pod, wellknown.IPPoolKey, ipPoolAllowed)
	}
	return value, nil
}

// StatefulSetOf returns the name of the StatefulSet that the pod belongs to, empty for none.
func StatefulSetOf(pod *v1.Pod) string { return appsController(pod, "StatefulSet") }

// ReservationName is the only name that an IPReservation of the address may have, so that there is at most one.
func ReservationName(a netip.Addr) string {
	name := "ip-" + strings.NewReplacer(".", "-", ":", "-").Replace(a.String())
	if strings.HasSuffix(name, "-") {
		return name + "0"
	}
	return name
}

// AddressPool reads an IPPool. With an error, the pool has the first error as its problem, and no addresses.
func AddressPool(p *berthv1alpha1.IPPool) (*address.Pool, field.ErrorList) {
	pool := &address.Pool{Name: p.Name, Namespaces: p.Spec.Namespaces}
	var problems field.ErrorList
	for i := range p.Spec.Subnets {
		subnet := &p.Spec.Subnets[i]
		pool.Domains = append(pool.Domains, AddressDomain(subnet.Domain))
		for j, text := range subnet.Ranges {
			r, err := address.ParseRange(text)
			if err == nil {
				err = pool.Add(i, r)
			}
			if err != nil {
				path := field.NewPath("spec", "subnets").Index(i).Child("ranges").Index(j)
				problems = append(problems, field.Invalid(path, text, err.Error()))
			}
		}
	}
	if len(p.Spec.Subnets) == 0 {
		problems = append(problems, field.Required(field.NewPath("spec", "subnets"), "a pool needs addresses"))
	}
	if len(problems) > 0 {
		return &address.Pool{Name: p.Name, Problem: problems[0].Error()}, problems
	}
	return pool, problems
}

// AddressDomain reads where addresses are routable: everywhere if d is nil.
func AddressDomain(d *berthv1alpha1.Domain) address.Domain {
	if d == nil {
		return address.Domain{}
	}
	return address.Domain{Key: d.Key, Value: d.Value}
}
