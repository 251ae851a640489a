package explain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/screen/tables"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// shown is the explanation on a screen.
func shown(t *testing.T, e *Explanation, screen tables.Screen, top int) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, e.WriteTable(tables.Output{Writer: &out, Screen: screen}, top))
	return out.String()
}

// onPaper is the explanation where there is no screen.
func onPaper(t *testing.T, e *Explanation, top int) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, e.WriteTable(&out, top))
	return out.String()
}

func TestAnExplanationFitsTheTerminal(t *testing.T) {
	t.Parallel()
	both := pod("p", "", "1", 0)
	both.Spec.SchedulerName = "berth-scheduler"
	cheap := node("a-node-with-a-rather-long-name", "8")
	cheap.Annotations = map[string]string{"berth.dev/price-per-hour": "24"}
	taint := v1.Taint{Key: "team", Value: "x", Effect: v1.TaintEffectNoSchedule}
	members := []runtime.Object{node("a-node-with-a-rather-long-name", "8"), node("b", "8")}
	for i := range 5 {
		members = append(members, ofGang(fmt.Sprintf("a-member-with-a-rather-long-name-%d", i), "", "2", "5"))
	}
	for name, tt := range map[string]struct {
		e    *Explanation
		said []string
	}{
		"a pod that fits two of three nodes": {
			ask(t, both, cheap, node("b", "8"), pod("q", cheap.Name, "4", 0), node("c", "8", taint)),
			[]string{"total", "GPUAware ×20", "untolerated", "in milli-GPU, less is better", "runner-up"},
		},
		"a pod that fits nowhere": {
			ask(t, pod("p", "", "8", 0), cheap, node("b", "4"), pod("q", cheap.Name, "2", 0)),
			[]string{"closest to fitting", "nvidia.com/gpu", "preemption: "},
		},
		"a member of a gang that starts": {
			ask(t, members[2].(*v1.Pod), members...), []string{"planned on", "a-member-with-a-rather-long-name-0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, width := range []int{60, 80, 120, 200} {
				plain := shown(t, tt.e, tables.Screen{Width: width}, 10)
				for line := range strings.Lines(plain) {
					if wide := text.LongestLineLen(strings.TrimRight(line, "\n")); wide > width {
						t.Errorf("a line has %d columns, the screen %d: %q", wide, width, line)
					}
				}
				assert.Contains(t, strings.Join(strings.Fields(plain), " "), tt.said...)
				colored := shown(t, tt.e, tables.Screen{Width: width, Color: true}, 10)
				if diff := cmp.Diff(plain, text.StripEscape(colored)); diff != "" {
					t.Errorf("with colors the text differs on a screen of %d columns (-without +with):\n%s", width, diff)
				}
				if len(tt.e.scored()) < len(tt.e.Nodes) && colored == plain {
					t.Errorf("nothing is colored on a screen of %d columns with colors", width)
				}
			}
		})
	}
}
