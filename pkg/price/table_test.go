package price

import (
	"strings"
	"testing"
)

func TestParseAdjustment(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   string
		on   MicroDollars
		want MicroDollars
		err  string
	}{
		"fifteen percent off":                 {in: "-15%", on: 2 * Dollar, want: 1_700_000},
		"a fraction of a percent on top":      {in: "+7.25%", on: 100 * Dollar, want: 107_250_000},
		"all of it off":                       {in: "-100%", on: 2 * Dollar, want: 0},
		"an amount off":                       {in: "-0.35", on: 2 * Dollar, want: 1_650_000},
		"an amount on top":                    {in: "+1", on: 2 * Dollar, want: 3 * Dollar},
		"more off than there is":              {in: "-3", on: 2 * Dollar, want: 0},
		"tenfold on top":                      {in: "+1000%", on: Dollar, want: 11 * Dollar},
		"more than all of it":                 {in: "-100.01%", err: "out of range"},
		"more than tenfold":                   {in: "+1000.01%", err: "out of range"},
		"three decimals of a percent":         {in: "-1.125%", err: "two decimals"},
		"no sign":                             {in: "15%", err: "signed"},
		"empty":                               {in: "", err: "signed"},
		"a sign alone":                        {in: "-", err: "signed"},
		"a sign and a percent mark":           {in: "-%", err: "signed"},
		"two signs":                           {in: "--15%", err: "signed"},
		"two percent marks":                   {in: "-15%%", err: "signed"},
		"a currency":                          {in: "-$1", err: "signed"},
		"an amount beyond the largest price":  {in: "+1000001", err: "signed"},
		"a percentage that does not fit":      {in: "+99999999999999999999%", err: "signed"},
		"words":                               {in: "cheap", err: "signed"},
		"the adjustment of an adjusted price": {in: "-50%", on: 3, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := ParseAdjustment(tc.in)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("ParseAdjustment(%q) = %v, %v; want an error with %q", tc.in, a, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Apply(tc.on); got != tc.want {
				t.Fatalf("%s on %s is %s, want %s", tc.in, tc.on, got, tc.want)
			}
		})
	}
}

func FuzzParseAdjustment(f *testing.F) {
	for _, s := range []string{"-15%", "+0.05", "", "-100%", "+%", "-99.999%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAdjustment(s)
		if err != nil {
			return
		}
		const p = 7 * Dollar
		got := a.Apply(p)
		if got < 0 || s[0] == '-' && got > p || s[0] == '+' && got < p {
			t.Fatalf("%q turns %s into %s", s, p, got)
		}
	})
}

func TestTable(t *testing.T) {
	t.Parallel()
	has := func(key, value string) func(map[string]string) bool {
		return func(labels map[string]string) bool { return labels[key] == value }
	}
	all := func(map[string]string) bool { return true }
	amount := func(m MicroDollars) *MicroDollars { return &m }
	quarterOff, err := ParseAdjustment("-25%")
	if err != nil {
		t.Fatal(err)
	}
	halfOff, err := ParseAdjustment("-50%")
	if err != nil {
		t.Fatal(err)
	}
	table := NewTable([]Rule{
		{Matches: has("type", "big"), Price: amount(8 * Dollar)},
		{Matches: has("type", "big"), Price: amount(9 * Dollar)},
		{Matches: has("zone", "far"), Price: amount(5 * Dollar), Weight: 10},
		{Matches: all, Adjustment: quarterOff, Weight: -1},
		{Matches: has("capacity", "spot"), Adjustment: halfOff},
	})
	for name, tc := range map[string]struct {
		labels   map[string]string
		want     MicroDollars
		unknown  bool
		adjusted MicroDollars
	}{
		"of equal weights the earlier counts": {labels: map[string]string{"type": "big"}, want: 8 * Dollar,
			adjusted: 6 * Dollar},
		"the heavier rule counts": {labels: map[string]string{"type": "big", "zone": "far"},
			want: 5 * Dollar, adjusted: 3_750_000},
		"only the heaviest adjustment is made": {labels: map[string]string{"type": "big", "capacity": "spot"},
			want: 8 * Dollar, adjusted: 4 * Dollar},
		"a node that no rule states a price for has none":     {labels: map[string]string{"type": "small"}, unknown: true},
		"a node without labels has none and does not trip us": {labels: nil, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := table.Price(tc.labels)
			if ok == tc.unknown || got != tc.want {
				t.Fatalf("price is %s (known %t), want %s (known %t)", got, ok, tc.want, !tc.unknown)
			}
			if adjusted := table.Adjust(got, tc.labels); adjusted != tc.adjusted {
				t.Fatalf("adjusted price is %s, want %s", adjusted, tc.adjusted)
			}
		})
	}
}
