package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/process/schedulerconfig"
	"berth.dev/berth/pkg/screen/tables"
)

// urgent is a gang of two in a cluster of two full nodes. The pod on b loses less than that on a.
func urgent() (member *v1.Pod, objects []runtime.Object) {
	running := func(name, on string) *v1.Pod {
		p := pod(name, on, "8", 0)
		p.Status.StartTime = &metav1.Time{Time: now.Add(-3 * time.Hour)}
		p.Annotations = map[string]string{}
		return p
	}
	silent := running("silent", "a")
	silent.UID = "silent"
	saves := running("saves", "b")
	saves.UID = "saves"
	saves.Annotations["berth.dev/last-checkpoint"] = now.Add(-time.Minute).Format(time.RFC3339)
	objects = []runtime.Object{node("a", "8"), node("b", "8"), silent, saves}
	for i := range 2 {
		p := pod(fmt.Sprintf("urgent-%d", i), "", "4", 10)
		p.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "urgent",
			"pod-group.scheduling.sigs.k8s.io/min-available": "2"}
		objects = append(objects, p)
		member = p
	}
	for _, obj := range objects[2:] {
		obj.(*v1.Pod).Spec.SchedulerName = "default-scheduler"
	}
	return member, objects
}

func explained(t *testing.T, p *v1.Pod, objects []runtime.Object) (*Explanation, string) {
	t.Helper()
	c, err := schedulerconfig.Load("../../manifests/replace-default/scheduler-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e, err := Pod(Question{Configuration: c, Objects: objects, Pod: p, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return e, shown(t, e, tables.Screen{Width: 200}, 5)
}

func TestItSaysWhichPodsAGangEvictsAndWhichNot(t *testing.T) {
	t.Parallel()
	member, objects := urgent()
	_, text := explained(t, member, objects)
	for _, want := range []string{
		"; evicting default/saves makes room.\n",
		"evicted, as they lose the least that makes room:\n  default/saves (priority 0): ",
		"spared, the cheapest first:\n  default/silent (priority 0): ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the explanation is\n%s\nwant %q", text, want)
		}
	}
}
