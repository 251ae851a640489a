// Package address keeps account of fixed addresses: which there are, where they are routable, and who has them.
//
// It knows no Kubernetes. A Ledger is told of pools and of reservations that exist, and promises addresses to pods. An
// address is never promised twice, and what is promised or reserved is never promised to another pod. Sets of addresses
// are kept as ranges, so that an IPv6 prefix costs as much as a single address.
package address

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
)

// mapped are the IPv4 addresses in IPv6 form.
var mapped = netip.MustParsePrefix("::ffff:0:0/96")

// Range is the addresses from First to Last, both of one family.
type Range struct{ First, Last netip.Addr }

var (
	errForm         = errors.New("want a CIDR (10.0.0.0/24), an address (10.0.0.5) or a range (10.0.0.5-10.0.0.9)")
	errMapped       = errors.New("an IPv4 address in IPv6 form is not allowed: write it as 10.0.0.5")
	errMappedWithin = fmt.Errorf("IPv4 addresses in IPv6 form (%s) are not allowed, and are among these", mapped)
	errZone         = errors.New("an address with a zone is not allowed")
	errFamilies     = errors.New("the two ends are of different IP families")
	errOrder        = errors.New("the first address is greater than the last one")
	errHostBits     = errors.New("the CIDR has bits set beyond its prefix")
	errEmpty        = errors.New("all addresses are excluded")
)

// Parse reads an address in any form that names it alone: 2001:db8:0:0::1 is 2001:db8::1. Zones and IPv4 addresses in
// IPv6 form are refused: the same address would have two names.
func Parse(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		err = errForm
	case a.Zone() != "":
		err = errZone
	case a.Is4In6():
		err = errMapped
	default:
		return a, nil
	}
	return netip.Addr{}, fmt.Errorf("reading address %q: %w", text, err)
}

// ParseRange reads a CIDR, an address or two addresses joined by a hyphen. Of a CIDR it returns all addresses if whole
// is set, and else those that a host may have. A range with IPv4 addresses in IPv6 form is refused, as Parse refuses
// them.
func ParseRange(text string, whole bool) (Range, error) {
	r, err := parseRange(text, whole)
	if err == nil && r.First.Is6() && !r.Last.Less(mapped.Addr()) && !lastOf(mapped).Less(r.First) {
		return Range{}, fmt.Errorf("reading range %q: %w", text, errMappedWithin)
	}
	return r, err
}

func parseRange(text string, whole bool) (Range, error) {
	if strings.Contains(text, "/") {
		return parseCIDR(text, whole)
	}
	from, to, isRange := strings.Cut(text, "-")
	first, err := Parse(from)
	if err != nil {
		return Range{}, err
	}
	if !isRange {
		return Range{first, first}, nil
	}
	last, err := Parse(to)
	switch {
	case err != nil:
		return Range{}, err
	case first.BitLen() != last.BitLen():
		return Range{}, fmt.Errorf("reading range %q: %w", text, errFamilies)
	case last.Less(first):
		return Range{}, fmt.Errorf("reading range %q: %w", text, errOrder)
	}
	return Range{first, last}, nil
}

func parseCIDR(text string, whole bool) (Range, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return Range{}, fmt.Errorf("reading CIDR %q: %w", text, errForm)
	}
	if prefix.Addr().Is4In6() {
		return Range{}, fmt.Errorf("reading CIDR %q: %w", text, errMapped)
	}
	if prefix.Masked() != prefix {
		return Range{}, fmt.Errorf("reading CIDR %q: %w", text, errHostBits)
	}
	r := Range{prefix.Addr(), lastOf(prefix)}
	if whole || prefix.Addr().BitLen()-prefix.Bits() < 2 {
		return r, nil
	}
	r.First = r.First.Next()
	if r.First.Is4() {
		r.Last = r.Last.Prev()
	}
	return r, nil
}

// lastOf returns the last address of the prefix.
func lastOf(prefix netip.Prefix) netip.Addr {
	octets := prefix.Addr().AsSlice()
	for i := prefix.Bits(); i < len(octets)*8; i++ {
		octets[i/8] |= 1 << (7 - i%8)
	}
	last, _ := netip.AddrFromSlice(octets)
	return last
}

// Set is a set of addresses: ranges in ascending order that neither overlap nor touch.
type Set []Range

// NewSet returns the addresses of the ranges without the excluded ones.
func NewSet(ranges, exclude []string) (Set, error) {
	all, err := union(ranges, false)
	if err != nil {
		return nil, err
	}
	out, err := union(exclude, true)
	if err != nil {
		return nil, err
	}
	all = all.without(out)
	if len(all) == 0 {
		return nil, errEmpty
	}
	return all, nil
}

func union(texts []string, whole bool) (Set, error) {
	var s Set
	for _, text := range texts {
		r, err := ParseRange(text, whole)
		if err != nil {
			return nil, err
		}
		s = append(s, r)
	}
	slices.SortFunc(s, func(a, b Range) int { return a.First.Compare(b.First) })
	var merged Set
	for _, r := range s {
		if n := len(merged); n > 0 && merged[n-1].First.BitLen() == r.First.BitLen() {
			last := &merged[n-1].Last
			if next := last.Next(); !next.IsValid() || !next.Less(r.First) {
				if last.Less(r.Last) {
					*last = r.Last
				}
				continue
			}
		}
		merged = append(merged, r)
	}
	return merged, nil
}

// without returns the addresses of s that are not in out.
func (s Set) without(out Set) Set {
	var left Set
	for _, r := range s {
		for _, o := range out {
			if o.First.BitLen() != r.First.BitLen() || o.Last.Less(r.First) || r.Last.Less(o.First) {
				continue
			}
			if r.First.Less(o.First) {
				left = append(left, Range{r.First, o.First.Prev()})
			}
			r.First = o.Last.Next()
			if !r.First.IsValid() || r.Last.Less(r.First) {
				r = Range{}
				break
			}
		}
		if r.First.IsValid() {
			left = append(left, r)
		}
	}
	return left
}

// Contains reports whether the address is in the set.
func (s Set) Contains(a netip.Addr) bool {
	i, exact := slices.BinarySearchFunc(s, a, func(r Range, a netip.Addr) int { return r.First.Compare(a) })
	if exact {
		return true
	}
	return i > 0 && !s[i-1].Last.Less(a) && s[i-1].First.BitLen() == a.BitLen()
}

// Overlaps reports whether the sets have an address in common.
func (s Set) Overlaps(o Set) bool {
	for _, a := range s {
		for _, b := range o {
			if a.First.BitLen() == b.First.BitLen() && !a.Last.Less(b.First) && !b.Last.Less(a.First) {
				return true
			}
		}
	}
	return false
}

// Size returns how many addresses there are, at most math.MaxUint64.
func (s Set) Size() uint64 {
	var n uint64
	for _, r := range s {
		n = add(n, r.size())
	}
	return n
}

func (r Range) size() uint64 {
	first, last := r.First.As16(), r.Last.As16()
	low, borrow := bits.Sub64(binary.BigEndian.Uint64(last[8:]), binary.BigEndian.Uint64(first[8:]), 0)
	high, _ := bits.Sub64(binary.BigEndian.Uint64(last[:8]), binary.BigEndian.Uint64(first[:8]), borrow)
	if high > 0 {
		return math.MaxUint64
	}
	return add(low, 1)
}

// add adds, at most to math.MaxUint64.
func add(a, b uint64) uint64 {
	if sum, carry := bits.Add64(a, b, 0); carry == 0 {
		return sum
	}
	return math.MaxUint64
}

// from returns the first address of the set that is not below a; false if there is none.
func (s Set) from(a netip.Addr) (netip.Addr, bool) {
	for _, r := range s {
		switch {
		case !a.IsValid() || a.Less(r.First):
			return r.First, true
		case !r.Last.Less(a):
			return a, true
		}
	}
	return netip.Addr{}, false
}
