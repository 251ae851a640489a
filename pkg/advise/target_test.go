package advise

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestTargetsAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Unit{"pod/p": {KindPod, "n", "p"}, "podgroup/g": {KindPodGroup, "n", "g"}, "": {},
		"p": {}, "pod/": {}, "job/j": {}, "pod/a/b": {}} {
		got, err := ParseTarget(text, "n")
		if got != want || (err != nil) != (want == Unit{}) {
			t.Errorf("%q is read as %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestOneUnitIsAskedAbout(t *testing.T) {
	t.Parallel()
	objects := []runtime.Object{node("a", "8", "1"), node("b", "8", "1"), pod("x", "a", "5"), pod("y", "a", "1"),
		pod("z", "b", "6"), pod("p", "", "3"), pod("q", "", "8", priority(-1))}
	a := ask(t, Unit{KindPod, "default", "p"}, objects...)
	if len(a.Pending) != 1 || a.Pending[0].Name != "p" || a.Pending[0].Plan == nil ||
		len(a.NewNodes)+len(a.GiveBack) > 0 {
		t.Fatalf("%+v", a)
	}
	var out strings.Builder
	err := a.WriteTable(&out)
	for _, want := range []string{"default/y", "starts", "kubectl cordon a\n", "kubectl delete pod -n default y\n",
		"kubectl uncordon a\n"} {
		if err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%q is not there, %v:\n%s", want, err, out.String())
		}
	}
	for _, target := range []Unit{{KindPod, "default", "x"}, {KindPod, "other", "p"}, {KindPodGroup, "default", "p"}} {
		if got, err := choose(target, []*unit{{Unit: Unit{KindPod, "default", "p"},
			Pods: []*v1.Pod{pod("p", "", "1")}}}); err == nil {
			t.Errorf("%s finds %s", fmt.Sprint(target), got)
		}
	}
}
