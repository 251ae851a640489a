package price_test

import (
	"testing"

	"berth.dev/berth/pkg/price"
)

func TestPricesOfNodesInOrderOfPrecedence(t *testing.T) {
	t.Parallel()
	three := 3 * price.Dollar
	half, err := price.ParseAdjustment("-50%")
	if err != nil {
		t.Fatal(err)
	}
	is := func(pool string) func(map[string]string) bool {
		return func(labels map[string]string) bool { return labels["pool"] == pool }
	}
	table := price.NewTable([]price.Rule{
		{Matches: is("listed"), Price: &three},
		{Matches: func(l map[string]string) bool { return l["discount"] != "" }, Adjustment: half},
	})
	rates := price.Rates{Core: price.Dollar}
	for _, tc := range []struct {
		name            string
		pool, discount  string
		stated, metered price.MicroDollars
		states, guess   bool
		want            price.MicroDollars
		given, priced   bool
	}{
		{name: "what a node states is final", pool: "listed", discount: "x", stated: 8 * price.Dollar, states: true,
			want: 8 * price.Dollar, given: true, priced: true},
		{name: "a node may state that it is free", pool: "listed", states: true, given: true, priced: true},
		{name: "the table comes before metrics", pool: "listed", metered: price.Dollar, want: three, given: true,
			priced: true},
		{name: "the table is adjusted", pool: "listed", discount: "x", want: three / 2, given: true, priced: true},
		{name: "metrics come before the rates, and are adjusted", discount: "x", metered: 4 * price.Dollar, guess: true,
			want: 2 * price.Dollar, priced: true},
		{name: "the rates estimate the rest", guess: true, want: 2 * price.Dollar, priced: true},
		{name: "without estimates the rest has no price"},
	} {
		s := price.Sources{Table: table, Rates: rates, Estimates: tc.guess}
		labels := map[string]string{"pool": tc.pool, "discount": tc.discount}
		got, given := s.Given(labels, tc.stated, tc.states)
		priced := given
		if !given {
			got, priced = s.Found(labels, tc.metered, price.Capacity{MilliCPU: 2000})
		}
		if got != tc.want || given != tc.given || priced != tc.priced {
			t.Errorf("%s: %s, given %t, priced %t; want %s, %t, %t", tc.name, got, given, priced, tc.want, tc.given, tc.priced)
		}
	}
}
