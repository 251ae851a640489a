package explain

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/pkg/process"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestAmountsAreShownWithFourDigits(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{
		0: "0", 1e-9: "0", -1e-9: "0", 0.000004: "0.000004", 0.0123456: "0.01235", 1: "1", -14.0625: "-14.06", 350: "350",
		483.96: "484", 12345.6: "12346",
	} {
		assert.Equal(t, fmt.Sprintf("amount(%v)", x), want, amount(x))
	}
}

func TestWhyNamesTheTermsThatTellTwoNodesApart(t *testing.T) {
	t.Parallel()
	waste := func(fit, opening, packing float64) *Cost {
		return costOf(process.Cost{Unit: "milli-GPU", Terms: []process.Term{
			{Name: "packing", Amount: packing, For: "unusable GPU"}, {Name: "best fit", Amount: fit, For: "what is left free"},
			{Name: "opening", Amount: opening, For: "opening an empty node"},
		}})
	}
	for _, tt := range []struct {
		name           string
		winner, second *Cost
		want           string
	}{
		{"what makes the difference comes first", waste(24, 0, 3), waste(4, 350, 3),
			"on b the pod costs 330 milli-GPU more: 350 more for opening an empty node, 20 less for what is left free"},
		{"a winner that costs more", waste(24.5, 350, 3), waste(5, 0, 28),
			"on b the pod costs 344.5 milli-GPU less: 350 less for opening an empty node, 19.5 less for what is left free, 25 " +
				"more for unusable GPU"},
		{"a term that hardly matters is not named", waste(14, 0, 3), waste(4, 350, 3),
			"on b the pod costs 340 milli-GPU more: 350 more for opening an empty node"},
		{"equal terms", waste(1, 2, 3), waste(1, 2, 3), ""},
		{"a winner without a cost", nil, waste(1, 2, 3), ""},
		{"a runner-up without a cost", waste(1, 2, 3), nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, "reason", tt.want, why("b", tt.winner, tt.second))
		})
	}
}

func TestTermsOfTheNodesAreShown(t *testing.T) {
	t.Parallel()
	p, cheap, dear := pod("p", "", "1", 0), node("cheap", "8"), node("dear", "8")
	p.Spec.SchedulerName = "berth-scheduler"
	cheap.Annotations = map[string]string{"berth.dev/price-per-hour": "24"}
	dear.Annotations = map[string]string{"berth.dev/price-per-hour": "30"}
	e := ask(t, p, cheap, dear, node("unpriced", "8"), pod("q", "cheap", "4", 0))

	assert.Contains(t, onPaper(t, e, 10),
		"GPUAware in milli-GPU, less is better:\n node      like it    sum  best fit  capability\n"+
			" cheap           0  23.97     9.141       14.83\n",
		"GPUAware: on unpriced the pod costs 7.617 milli-GPU more: 7.617 more for CPU and GPU left free on the node\n",
		"CostOptimized in dollars an hour, less is better:\n node     sum  opening  share\n cheap  2.882           2.882\n"+
			" dear      30    26.37  3.632\n")

	// Raw scores are millionths of a GPU of gain, and millionths of a dollar of cost.
	units := map[string]float64{"GPUAware": -1000, "CostOptimized": 1e6}
	costs := 0
	for _, n := range e.Nodes {
		for _, s := range n.Scores {
			if s.Cost == nil {
				continue
			}
			costs++
			if got := int64(math.Round(s.Cost.Total * units[s.Plugin])); got != s.Raw {
				t.Errorf("node %s: %s has the raw score %d, want that of the total, %d", n.Name, s.Plugin, s.Raw, got)
			}
			if slices.ContainsFunc(s.Cost.Terms, func(t process.Term) bool { return t.Amount == 0 }) {
				t.Errorf("node %s: %s shows terms that are zero: %+v", n.Name, s.Plugin, s.Cost.Terms)
			}
		}
	}
	if costs != 5 {
		t.Errorf("%d scores have a cost, want three of GPUAware and two of CostOptimized", costs)
	}

	at := slices.IndexFunc(e.Nodes[0].Scores, func(s Score) bool { return s.Plugin == "CostOptimized" })
	got, err := json.Marshal(e.Nodes[0].Scores[at].Cost)
	require.NoError(t, err)
	want := `{"unit":"dollars an hour","total":2.882,"terms":[{"name":"share","amount":2.882}]}`
	assert.Equal(t, "JSON", want, string(got))
}

func TestOneRowStandsForNodesWithTheSameTerms(t *testing.T) {
	t.Parallel()
	scored := func(name string, total int64, opening float64) Node {
		cost := costOf(process.Cost{Unit: "milli-GPU", Terms: []process.Term{
			{Name: "best fit", Amount: 14}, {Name: "opening", Amount: opening},
		}})
		return Node{Name: name, Total: total, Scores: []Score{{Plugin: "A", Raw: total, Cost: cost}}}
	}
	nodes := []Node{scored("a", 9, 0), scored("b", 8, 0), scored("c", 7, 350), scored("d", 7, 350)}
	for _, tt := range []struct {
		name string
		top  int
		want string
	}{
		{"together", 10, " node  like it  sum  opening  best fit\n a           1   14                 14\n" +
			" c           1  364      350        14\n"},
		{"every node by itself", 0, " node  sum  opening  best fit\n a      14                 14\n" +
			" b      14                 14\n c     364      350        14\n d     364      350        14\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := &page{top: tt.top}
			p.costs(alikeInRow(nodes, tt.top == 0), 0, "")
			_, got, _ := strings.Cut(p.String(), "less is better:\n")
			assert.Equal(t, "rows", tt.want, got)
		})
	}
}
