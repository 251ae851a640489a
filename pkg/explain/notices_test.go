package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/tables"
	"berth.dev/berth/pkg/workview"
)

// urgent is a gang of two in a cluster of two full nodes. The pod on b loses less than that on a.
func urgent(notice bool) (member *v1.Pod, saves *v1.Pod, objects []runtime.Object) {
	running := func(name, on string) *v1.Pod {
		p := pod(name, on, "8", 0)
		p.Status.StartTime = &metav1.Time{Time: now.Add(-3 * time.Hour)}
		p.Annotations = map[string]string{}
		return p
	}
	silent := running("silent", "a")
	silent.UID = "silent"
	saves = running("saves", "b")
	saves.UID = "saves"
	saves.Annotations["berth.dev/last-checkpoint"] = now.Add(-time.Minute).Format(time.RFC3339)
	if notice {
		saves.Annotations["berth.dev/eviction-notice"] = "2m"
	}
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
	return member, saves, objects
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
	for name, notice := range map[string]bool{"at once": false, "after a notice": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			member, _, objects := urgent(notice)
			_, text := explained(t, member, objects)
			for _, want := range []string{
				"stays pending until room is made by evicting default/saves\n",
				"evicted, as they lose the least that makes room:\n  default/saves (priority 0): ",
				"spared, the cheapest first:\n  default/silent (priority 0): ",
			} {
				if !strings.Contains(text, want) {
					t.Errorf("the explanation is\n%s\nwant %q", text, want)
				}
			}
		})
	}
}

func TestItSaysWhoWasGivenNoticeForWhom(t *testing.T) {
	t.Parallel()
	member, saves, objects := urgent(true)
	saves.Status.Conditions = append(saves.Status.Conditions, v1.PodCondition{Type: workview.EvictionNotice,
		Status:  v1.ConditionTrue,
		Message: "gang default/urgent", LastTransitionTime: metav1.Time{Time: now.Add(-30 * time.Second)}})
	until := now.Add(90 * time.Second).UTC().Format(time.RFC3339)
	for name, tt := range map[string]struct {
		of   *v1.Pod
		want string
	}{
		"the gang": {member, "default/saves is told to save its work and to go, at " + until + " at the latest\n"},
		"the pod itself": {saves, "it is to be evicted for gang default/urgent, as soon as its work is saved, and at " +
			until + " at the latest\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, text := explained(t, tt.of, objects)
			if !strings.Contains(text, tt.want) {
				t.Errorf("the explanation is\n%s\nwant %q", text, tt.want)
			}
			if len(e.Notices) != 1 || e.Notices[0].Pod != "default/saves" {
				t.Errorf("the notices are %+v", e.Notices)
			}
		})
	}
	other := objects[2].(*v1.Pod)
	if e, _ := explained(t, other, objects); len(e.Notices) != 0 {
		t.Errorf("a pod that has nothing to do with it shows %+v", e.Notices)
	}
}
