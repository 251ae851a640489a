package advise

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// leaving is a node with the notice of an interruption.
func leaving(name, gpus string) *v1.Node {
	n := node(name, gpus, "1")
	n.Spec.Taints = []v1.Taint{{Key: "aws-node-termination-handler/spot-itn", Effect: v1.TaintEffectNoSchedule}}
	return n
}

func TestMembersAreMovedFromFailingHardware(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		objects []runtime.Object
		want    string // what the first gang moves
		says    string
	}{
		{"no node leaves", []runtime.Object{node("a", "8", "1"), pod("g1", "a", "4", member), pod("g2", "a", "4", member)},
			"", ""},
		{"a pod without a gang", []runtime.Object{leaving("a", "8"), node("b", "8", "1"), pod("x", "a", "4")}, "", ""},
		{"one of two members moves", []runtime.Object{leaving("a", "8"), node("b", "8", "1"), node("c", "8", "1"),
			pod("g1", "a", "8", member, saves("30m")), pod("g2", "b", "8", member)},
			"g1 from a to c",
			"node a has the taint aws-node-termination-handler/spot-itn; 1 member can move, which loses 4.0 GPU hours of work"},
		{"there is no room", []runtime.Object{leaving("a", "8"), node("b", "8", "1"), pod("g1", "a", "8", member),
			pod("g2", "b", "8", member)},
			"g1 from a to ", "not all replacements get a node beside the rest of the gang"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := ask(t, Target{}, tt.objects...)
			if tt.want == "" {
				if len(a.Repairs) > 0 {
					t.Errorf("found %+v", a.Repairs)
				}
				return
			}
			var b strings.Builder
			if err := a.WriteTable(&b); err != nil {
				t.Fatal(err)
			}
			if len(a.Repairs) != 1 || !strings.Contains(strings.Join(strings.Fields(b.String()), " "), tt.says) {
				t.Fatalf("want %q, got %+v:\n%s", tt.says, a.Repairs, &b)
			}
			if got := strings.TrimSuffix(moved(&Plan{Moves: []Move{{Pods: a.Repairs[0].Pods}}}), "; "); got != tt.want {
				t.Errorf("moves %q, want %q", got, tt.want)
			}
		})
	}
}
