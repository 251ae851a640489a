package podview

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/address"
	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	"berth.dev/berth/pkg/wellknown"
)

const (
	ipPoolAllowed      = "the name of an IPPool, such as racks"
	longestIPPool      = 253
	decimal, int32Bits = 10, 32
)

// ipPoolName is what an IPPool may be called.
var ipPoolName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// PodIPPool returns the name of the IPPool that the pod wants an address of, empty for none.
func PodIPPool(pod *v1.Pod) (string, *wellknown.BadValue) {
	value, ok := pod.Annotations[wellknown.IPPoolKey]
	if !ok {
		return "", nil
	}
	if len(value) > longestIPPool || !ipPoolName.MatchString(value) {
		return "", &wellknown.BadValue{Object: "pod", Kind: "annotation", Key: wellknown.IPPoolKey, Value: value,
			Allowed: ipPoolAllowed}
	}
	return value, nil
}

// PodIdentities returns as whom a pod may have an address, the preferred one first: as a member of its StatefulSet, and
// by its own name. A pod with a generated name does not come back; it has its name while it lives.
func PodIdentities(pod *v1.Pod) []address.Identity {
	own := address.Identity{Namespace: pod.Namespace, Pod: pod.Name}
	owner := ControllerOf(pod)
	if owner == nil || owner.Kind != "StatefulSet" || !strings.HasPrefix(owner.APIVersion, appsv1.GroupName+"/") {
		return []address.Identity{own}
	}
	text, ok := strings.CutPrefix(pod.Name, owner.Name+"-")
	ordinal, err := strconv.ParseInt(text, decimal, int32Bits)
	if !ok || err != nil || ordinal < 0 {
		return []address.Identity{own}
	}
	return []address.Identity{{Namespace: pod.Namespace, StatefulSet: owner.Name, Ordinal: int32(ordinal)}, own}
}

// ReservationName is the only name that an IPReservation of the address may have: so the API server lets there be one
// of each address.
func ReservationName(a netip.Addr) string {
	name := "ip-" + strings.NewReplacer(".", "-", ":", "-").Replace(a.String())
	if strings.HasSuffix(name, "-") {
		return name + "0"
	}
	return name
}

// AddressPool reads an IPPool. What cannot be read is named, and the pool then has a problem and no addresses.
func AddressPool(p *networkv1alpha1.IPPool) (*address.Pool, field.ErrorList) {
	pool := &address.Pool{Name: p.Name, Namespaces: p.Spec.Namespaces}
	var problems field.ErrorList
	for i := range p.Spec.Subnets {
		s, path := &p.Spec.Subnets[i], field.NewPath("spec", "subnets").Index(i)
		set, err := address.NewSet(s.Ranges, s.Exclude)
		if err != nil {
			problems = append(problems, field.Invalid(path.Child("ranges"), strings.Join(s.Ranges, ","), err.Error()))
			continue
		}
		for j, other := range pool.Subnets {
			if set.Overlaps(other.Addresses) {
				problems = append(problems, field.Invalid(path.Child("ranges"), strings.Join(s.Ranges, ","),
					"has addresses in common with spec.subnets["+strconv.Itoa(j)+"]"))
			}
		}
		subnet := address.Subnet{Addresses: set}
		if s.Domain != nil {
			subnet.Domain = address.Domain{Key: s.Domain.Key, Value: s.Domain.Value}
		}
		pool.Subnets = append(pool.Subnets, subnet)
	}
	if len(p.Spec.Subnets) == 0 {
		problems = append(problems, field.Required(field.NewPath("spec", "subnets"), "a pool needs addresses"))
	}
	if len(problems) > 0 {
		pool.Subnets, pool.Problem = nil, problems.ToAggregate().Error()
	}
	return pool, problems
}
