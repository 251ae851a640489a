package address

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/test/harness/require"
)

func TestRanges(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want string
		size int64
		bad  string
	}{
		"a CIDR without network and broadcast address": {text: "10.0.0.0/29", want: "10.0.0.1-10.0.0.6", size: 6},
		"a network of two addresses":                   {text: "10.0.0.0/31", want: "10.0.0.0-10.0.0.1", size: 2},
		"a network of one address":                     {text: "10.0.0.4/32", want: "10.0.0.4-10.0.0.4", size: 1},
		"a single address":                             {text: "10.0.0.5", want: "10.0.0.5-10.0.0.5", size: 1},
		"a range":                                      {text: "10.0.0.5-10.0.1.4", want: "10.0.0.5-10.0.1.4", size: 256},
		"an IPv6 prefix": {text: "2001:db8::/32", want: "2001:db8::1-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
			size: most},
		"an IPv6 prefix of 64 bits": {text: "2001:db8::/64", want: "2001:db8::1-2001:db8::ffff:ffff:ffff:ffff",
			size: most},
		"a range over a boundary of 64 bits": {text: "2001:db8:0:1:ffff:ffff:ffff:ffff-2001:db8:0:2::1",
			want: "2001:db8:0:1:ffff:ffff:ffff:ffff-2001:db8:0:2::1", size: 3},
		"all IPv4 addresses":                    {text: "0.0.0.0/0", want: "0.0.0.1-255.255.255.254", size: 1<<32 - 2},
		"an address in long form":               {text: "2001:DB8:0:0::1", want: "2001:db8::1-2001:db8::1", size: 1},
		"a range the wrong way round":           {text: "10.0.0.9-10.0.0.5", bad: "greater than the last"},
		"a range of two families":               {text: "10.0.0.9-::1", bad: "different IP families"},
		"a CIDR with host bits":                 {text: "10.0.0.9/24", bad: "beyond its prefix"},
		"an address with a zone":                {text: "fe80::1%eth0", bad: "has no zone"},
		"an IPv4 address in IPv6 form":          {text: "::ffff:10.0.0.1", bad: "written as 10.0.0.5"},
		"a CIDR of IPv4 addresses in IPv6 form": {text: "::ffff:10.0.0.0/120", bad: "written as 10.0.0.5"},
		"a range that ends among them":          {text: "::1-::ffff:0:0", bad: "written as 10.0.0.5"},
		"an IPv4 address with zeros in front":   {text: "10.0.0.05", bad: "want a CIDR"},
		"no address":                            {text: "", bad: "want a CIDR"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := ParseRange(test.text)
			if test.bad != "" {
				if err == nil || !strings.Contains(err.Error(), test.bad) {
					t.Errorf("error %v, want one that says %q", err, test.bad)
				}
				return
			}
			require.NoError(t, err)
			if got := r.First.String() + "-" + r.Last.String(); got != test.want || r.size() != test.size {
				t.Errorf("read as %s with %d addresses, want %s with %d", got, r.size(), test.want, test.size)
			}
		})
	}
}

// Whatever ranges are added in whatever order, a pool has each address once, and finds it where it was added.
func TestAPoolHasAnAddressOnce(t *testing.T) {
	t.Parallel()
	all := []netip.Addr{netip.MustParseAddr("255.255.255.252")}
	for a := all[0].Next(); a.IsValid(); a = a.Next() {
		all = append(all, a)
	}
	for _, text := range []string{"::", "::1", "::2", "::3"} {
		all = append(all, netip.MustParseAddr(text))
	}
	rapid.Check(t, func(rt *rapid.T) {
		p, of := &Pool{Domains: make([]Domain, 3), used: make([]int64, 3)}, map[netip.Addr]int{}
		for range 6 {
			subnet := rapid.IntRange(0, 2).Draw(rt, "subnet")
			from := rapid.IntRange(0, len(all)-1).Draw(rt, "from")
			to := from/4*4 + rapid.IntRange(from%4, 3).Draw(rt, "to") // of the same family
			has := slices.ContainsFunc(all[from:to+1], func(a netip.Addr) bool { _, has := of[a]; return has })
			if err := p.Add(subnet, Range{all[from], all[to]}); (err != nil) != has {
				rt.Fatalf("adding %s-%s: error %v; the pool has one of them: %t", all[from], all[to], err, has)
			}
			for _, a := range all[from : to+1] {
				if !has {
					of[a] = subnet
				}
			}
		}
		counts := make([]int64, len(p.Domains))
		for _, a := range all {
			subnet, ok := p.subnetOf(a)
			if want, has := of[a]; ok != has || has && subnet != want {
				rt.Fatalf("%s is of subnet %d: %t, want %d: %t", a, subnet, ok, want, has)
			}
			if ok {
				counts[subnet]++
			}
		}
		if got := p.free(); !slices.Equal(got, counts) {
			rt.Fatalf("sizes %v, want %v", got, counts)
		}
		taken := rapid.SliceOfN(rapid.SampledFrom(all), 0, 6).Draw(rt, "taken")
		for subnet := range p.Domains {
			want := netip.Addr{}
			for _, a := range all {
				if at, has := of[a]; has && at == subnet && !slices.Contains(taken, a) {
					want = a
					break
				}
			}
			if got := p.lowest(subnet, func(a netip.Addr) bool { return slices.Contains(taken, a) }); got != want {
				rt.Fatalf("the lowest free address of subnet %d is %s, want %s", subnet, got, want)
			}
		}
	})
}

// FuzzParseRange looks for texts that are read as something else than they say.
func FuzzParseRange(f *testing.F) {
	for _, seed := range []string{"10.0.0.0/24", "10.0.0.5", "10.0.0.5-10.0.0.9", "2001:db8::/32", "::", "::ffff:1.2.3.4",
		"0.0.0.0/0", "::/0", "-", "/", "1.2.3.4-", "fe80::1%a-b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRange(text)
		if err != nil {
			return
		}
		if r.Last.Less(r.First) || r.First.BitLen() != r.Last.BitLen() || r.First.Is4In6() || r.First.Zone() != "" {
			t.Errorf("%q is read as %v", text, r)
		}
		again, err := ParseRange(r.First.String() + "-" + r.Last.String())
		if err != nil || again != r {
			t.Errorf("%v is read again as %v: %v", r, again, err)
		}
	})
}
