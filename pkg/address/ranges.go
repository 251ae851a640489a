package address

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"strings"
)

// Range is the addresses from First to Last, both of one family.
type Range struct{ First, Last netip.Addr }

var (
	errForm     = errors.New("want a CIDR (10.0.0.0/24), an address (10.0.0.5) or a range (10.0.0.5-10.0.0.9)")
	errSpelling = errors.New("an address has no zone, and an IPv4 address is written as 10.0.0.5")
	errFamilies = errors.New("the two ends are of different IP families")
	errOrder    = errors.New("the first address is greater than the last one")
	errHostBits = errors.New("the CIDR has bits set beyond its prefix")
)

// Parse reads an address in any form that names it alone: 2001:db8:0:0::1 is 2001:db8::1. Zones and IPv4 addresses in
// IPv6 form are refused: the same address would have two names.
func Parse(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return netip.Addr{}, fmt.Errorf("reading address %q: %w", text, errForm)
	case a.Zone() != "" || a.Is4In6():
		return netip.Addr{}, fmt.Errorf("reading address %q: %w", text, errSpelling)
	}
	return a, nil
}

// ParseRange reads a CIDR, an address or two addresses joined by a hyphen. Of a CIDR it returns the addresses that a
// host may have.
func ParseRange(text string) (Range, error) {
	if strings.Contains(text, "/") {
		return parseCIDR(text)
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

func parseCIDR(text string) (Range, error) {
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return Range{}, fmt.Errorf("reading CIDR %q: %w", text, errForm)
	case prefix.Addr().Is4In6() || lastOf(prefix).Is4In6():
		return Range{}, fmt.Errorf("reading CIDR %q: %w", text, errSpelling)
	case prefix.Masked() != prefix:
		return Range{}, fmt.Errorf("reading CIDR %q: %w", text, errHostBits)
	}
	r := Range{prefix.Addr(), lastOf(prefix)}
	if prefix.Addr().BitLen()-prefix.Bits() < 2 {
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

// most is how many addresses a range counts as at most. All ranges of a pool together then fit an int64.
const most = 1 << 48

// size returns how many addresses there are, or most if there are more.
func (r Range) size() int64 {
	first, last := r.First.As16(), r.Last.As16()
	low, borrow := bits.Sub64(binary.BigEndian.Uint64(last[8:]), binary.BigEndian.Uint64(first[8:]), 0)
	high, _ := bits.Sub64(binary.BigEndian.Uint64(last[:8]), binary.BigEndian.Uint64(first[:8]), borrow)
	if high > 0 || low >= most {
		return most
	}
	return int64(low) + 1
}
