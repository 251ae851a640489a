package address

import (
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func text(s Set) string {
	var parts []string
	for _, r := range s {
		parts = append(parts, r.First.String()+"-"+r.Last.String())
	}
	return strings.Join(parts, ",")
}

func TestSets(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		ranges, exclude []string
		want            string
		size            uint64
		bad             string
	}{
		"a CIDR without network and broadcast address": {ranges: []string{"10.0.0.0/29"}, want: "10.0.0.1-10.0.0.6",
			size: 6},
		"a network of two addresses": {ranges: []string{"10.0.0.0/31"}, want: "10.0.0.0-10.0.0.1",
			size: 2},
		"a single address": {ranges: []string{"10.0.0.5"}, want: "10.0.0.5-10.0.0.5", size: 1},
		"ranges that overlap and touch": {ranges: []string{"10.0.0.5-10.0.0.9", "10.0.0.1-10.0.0.4",
			"10.0.0.7-10.0.0.12"}, want: "10.0.0.1-10.0.0.12", size: 12},
		"one range within another": {ranges: []string{"10.0.0.1-10.0.0.9", "10.0.0.2"},
			want: "10.0.0.1-10.0.0.9", size: 9},
		"exclusions in the middle and at both ends": {ranges: []string{"10.0.0.1-10.0.0.9"},
			exclude: []string{"10.0.0.1", "10.0.0.5-10.0.0.6", "10.0.0.9"}, want: "10.0.0.2-10.0.0.4,10.0.0.7-10.0.0.8",
			size: 5},
		"an exclusion over two ranges": {ranges: []string{"10.0.0.1-10.0.0.3", "10.0.0.6-10.0.0.9"},
			exclude: []string{"10.0.0.0/29"}, want: "10.0.0.8-10.0.0.9", size: 2},
		"an IPv6 prefix": {ranges: []string{"2001:db8::/32"}, want: "2001:db8::1-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
			size: math.MaxUint64},
		"an IPv6 prefix of 64 bits without its first": {ranges: []string{"2001:db8::/64"},
			want: "2001:db8::1-2001:db8::ffff:ffff:ffff:ffff", size: math.MaxUint64},
		"both families": {ranges: []string{"2001:db8::5", "10.0.0.5"},
			want: "10.0.0.5-10.0.0.5,2001:db8::5-2001:db8::5", size: 2},
		"the last address that there is": {ranges: []string{"255.255.255.254-255.255.255.255"},
			exclude: []string{"255.255.255.255"}, want: "255.255.255.254-255.255.255.254", size: 1},
		"the last IPv4 address does not touch the first": {ranges: []string{"255.255.255.255", "::1"},
			want: "255.255.255.255-255.255.255.255,::1-::1", size: 2},
		"all excluded": {ranges: []string{"10.0.0.5"}, exclude: []string{"10.0.0.0/24"},
			bad: "all addresses are excluded"},
		"none":                                  {bad: "all addresses are excluded"},
		"a range the wrong way round":           {ranges: []string{"10.0.0.9-10.0.0.5"}, bad: "greater than the last"},
		"a range of two families":               {ranges: []string{"10.0.0.9-::1"}, bad: "different IP families"},
		"a CIDR with host bits":                 {ranges: []string{"10.0.0.9/24"}, bad: "beyond its prefix"},
		"an address with a zone":                {ranges: []string{"fe80::1%eth0"}, bad: "zone is not allowed"},
		"an IPv4 address in IPv6 form":          {ranges: []string{"::ffff:10.0.0.1"}, bad: "write it as 10.0.0.5"},
		"a CIDR of IPv4 addresses in IPv6 form": {ranges: []string{"::ffff:10.0.0.0/120"}, bad: "write it as 10.0.0.5"},
		"a CIDR around IPv4 addresses in IPv6 form": {ranges: []string{"::/80"},
			bad: "(::ffff:0.0.0.0/96) are not allowed, and are among these"},
		"a range that ends among them": {ranges: []string{"::1-::ffff:0:0"}, bad: "write it as 10.0.0.5"},
		"a range beside IPv4 addresses in IPv6 form": {ranges: []string{"::1:0:0:0-::1:0:0:1"}, want: "::1:0:0:0-::1:0:0:1",
			size: 2},
		"an address that is written in two ways": {ranges: []string{"2001:db8:0:0::1", "2001:db8::1", "2001:DB8::1"},
			want: "2001:db8::1-2001:db8::1", size: 1},
		"a range and an exclusion in long form": {ranges: []string{"2001:db8:0:0::1-2001:db8::3"},
			exclude: []string{"2001:0db8::0002"}, want: "2001:db8::1-2001:db8::1,2001:db8::3-2001:db8::3", size: 2},
		"an IPv4 address with zeros in front": {ranges: []string{"10.0.0.05"}, bad: "want a CIDR"},
		"no address":                          {ranges: []string{""}, bad: "want a CIDR"},
		"a bad exclusion":                     {ranges: []string{"10.0.0.5"}, exclude: []string{"x"}, bad: "want a CIDR"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := NewSet(test.ranges, test.exclude)
			if test.bad != "" {
				if err == nil || !strings.Contains(err.Error(), test.bad) {
					t.Errorf("error %v, want one that says %q", err, test.bad)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, text(s)); diff != "" || s.Size() != test.size {
				t.Errorf("size %d, want %d; ranges (-want +got):\n%s", s.Size(), test.size, diff)
			}
			for _, r := range s {
				if !s.Contains(r.First) || !s.Contains(r.Last) || s.Contains(netip.MustParseAddr("192.0.2.1")) {
					t.Errorf("%s does not contain its ends, or more", text(s))
				}
			}
		})
	}
}

// FuzzParseRange looks for texts that are read as something else than they say.
func FuzzParseRange(f *testing.F) {
	for _, seed := range []string{"10.0.0.0/24", "10.0.0.5", "10.0.0.5-10.0.0.9", "2001:db8::/32", "::", "::ffff:1.2.3.4",
		"0.0.0.0/0", "::/0", "-", "/", "1.2.3.4-", "fe80::1%a-b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRange(text, false)
		if err != nil {
			return
		}
		if r.Last.Less(r.First) || r.First.BitLen() != r.Last.BitLen() || r.First.Is4In6() || r.First.Zone() != "" {
			t.Errorf("%q is read as %v", text, r)
		}
		whole, err := ParseRange(text, true)
		if err != nil || r.First.Less(whole.First) || whole.Last.Less(r.Last) {
			t.Errorf("the whole of %q is %v (%v), its hosts are %v", text, whole, err, r)
		}
		again, err := ParseRange(r.First.String()+"-"+r.Last.String(), false)
		if err != nil || again != r {
			t.Errorf("%v is read again as %v: %v", r, again, err)
		}
	})
}
