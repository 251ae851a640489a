package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/process/schedulerconfig"
	"berth.dev/berth/pkg/screen/tables"
	"berth.dev/berth/test/harness/require"
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
	require.NoError(t, err)
	e, err := Pod(Question{Configuration: c, Objects: objects, Pod: p, Now: now})
	require.NoError(t, err)
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

func TestItSaysThatASinglePodEvictsAWholeGang(t *testing.T) {
	t.Parallel()
	objects := []runtime.Object{node("a", "8")}
	for i := range 2 {
		p := pod(fmt.Sprintf("train-%d", i), "a", "4", 0)
		p.UID = types.UID(p.Name)
		p.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "train",
			"pod-group.scheduling.sigs.k8s.io/min-available": "2"}
		objects = append(objects, p)
	}
	boss := pod("boss", "", "8", 10)
	for _, obj := range append(objects[1:], boss) {
		obj.(*v1.Pod).Spec.SchedulerName = "default-scheduler"
	}
	e, text := explained(t, boss, append(objects, boss))
	want := []string{"default/train-0", "default/train-1"}
	if diff := cmp.Diff(want, e.Preemption.Victims); diff != "" {
		t.Errorf("victims (-want +got):\n%s\nthe explanation is\n%s", diff, text)
	}
}

func TestWithoutTheObjectThatSaysHowManyStartThereIsNoAnswer(t *testing.T) {
	t.Parallel()
	member := pod("train-0", "", "4", 0)
	member.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "train"}
	unread := "podgroups.scheduling.x-k8s.io: podgroups.scheduling.x-k8s.io is forbidden"
	_, err := Pod(Question{Configuration: shipped(t), Objects: []runtime.Object{node("a", "8"), member}, Pod: member,
		Unread: []string{unread}, Now: now})
	if err == nil || !strings.Contains(err.Error(), "gang default/train") || !strings.Contains(err.Error(), unread) {
		t.Errorf("the error is %v, want one that names the gang and what was not read", err)
	}
}
