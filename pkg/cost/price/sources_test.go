package price_test

import (
	"testing"

	"berth.dev/berth/pkg/cost/price"
)

func TestPricesOfNodesInOrderOfPrecedence(t *testing.T) {
	t.Parallel()
	three := 3 * price.Dollar
	is := func(pool string) func(map[string]string) bool {
		return func(labels map[string]string) bool { return labels["pool"] == pool }
	}
	table := price.NewTable([]price.Rule{
		{Matches: is("listed"), Price: three},
	})
	rates := price.Rates{Core: price.Dollar}
	for _, tc := range []struct {
		name            string
		pool            string
		stated, metered price.MicroDollars
		states, guess   bool
		want            price.MicroDollars
		given, priced   bool
	}{
		{name: "what a node states is final", pool: "listed", stated: 8 * price.Dollar, states: true,
			want: 8 * price.Dollar, given: true, priced: true},
		{name: "a node may state that it is free", pool: "listed", states: true, given: true, priced: true},
		{name: "the table comes before metrics", pool: "listed", metered: price.Dollar, want: three, given: true,
			priced: true},
		{name: "metrics come before the rates", metered: 4 * price.Dollar, guess: true, want: 4 * price.Dollar,
			priced: true},
		{name: "the rates estimate the rest", guess: true, want: 2 * price.Dollar, priced: true},
		{name: "without estimates the rest has no price"},
	} {
		s := price.Sources{Table: table, Rates: rates, Estimates: tc.guess}
		labels := map[string]string{"pool": tc.pool}
		got, given := s.Given(labels, tc.stated, tc.states)
		priced := given
		if !given {
			got, priced = s.Found(tc.metered, price.Capacity{MilliCPU: 2000})
		}
		if got != tc.want || given != tc.given || priced != tc.priced {
			t.Errorf("%s: %s, given %t, priced %t; want %s, %t, %t", tc.name, got, given, priced, tc.want, tc.given, tc.priced)
		}
	}
}
