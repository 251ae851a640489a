package advise

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// leaving is node a, with the notice of an interruption.
func leaving() *v1.Node {
	n := node("a", "8", "1")
	n.Spec.Taints = []v1.Taint{{Key: "aws-node-termination-handler/spot-itn", Effect: v1.TaintEffectNoSchedule}}
	return n
}

// asOne is a group of Kubernetes whose two pods are disrupted together.
var asOne = &schedulingv1beta1.PodGroup{
	ObjectMeta: metav1.ObjectMeta{Name: "g", Namespace: "default", UID: "g"},
	Spec: schedulingv1beta1.PodGroupSpec{
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 1}},
		DisruptionMode: &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}}}

func native(p *v1.Pod) {
	p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("g")}
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
		{"a pod without a gang", []runtime.Object{leaving(), node("b", "8", "1"), pod("x", "a", "4")}, "", ""},
		{"one of two members moves", []runtime.Object{leaving(), node("b", "8", "1"), node("c", "8", "1"),
			pod("g1", "a", "8", member, saves("30m")), pod("g2", "b", "8", member)},
			"g1 from a to c",
			"node a has the taint aws-node-termination-handler/spot-itn; 1 member can move, which loses 4.0 GPU hours of work"},
		{"of a group that is disrupted as a whole only, all move",
			[]runtime.Object{asOne, leaving(), node("b", "8", "1"), node("c", "8", "1"),
				pod("g1", "a", "8", native), pod("g2", "b", "8", native)},
			"g1 from a to b; g2 from b to c", "others go along (disruptionMode: all); 2 members can move"},
		{"there is no room", []runtime.Object{leaving(), node("b", "8", "1"), pod("g1", "a", "8", member),
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

func TestAGangAboveItsMinimumMovesByWhatIsDisruptedTogether(t *testing.T) {
	t.Parallel()
	with := map[string]string{"g1": "x", "g2": "x", "g3": "", "g4": ""}
	gangOf := func(pod *v1.Pod) membership { return membership{with: with[pod.Name]} }
	whole := &unit{Pods: []*v1.Pod{pod("g1", "a", "8"), pod("g2", "b", "8"), pod("g3", "a", "8"), pod("g4", "b", "8")}}
	for minimum, want := range map[int]string{1: "g1 g2, g3, g4", 2: "g1 g2, g3, g4", 3: "g1 g2 g3 g4"} {
		var units []string
		for _, u := range partsOf(whole, minimum, gangOf) {
			var names []string
			for _, pod := range u.Pods {
				names = append(names, pod.Name)
			}
			units = append(units, strings.Join(names, " "))
		}
		if got := strings.Join(units, ", "); got != want {
			t.Errorf("of a minimum of %d: units %q, want %q", minimum, got, want)
		}
	}
}
