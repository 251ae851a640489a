package explain

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/screen/tables"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// running has run on a node for three hours, and has saved its work that long ago, or never.
func running(name, on string, saved time.Duration) *v1.Pod {
	p := pod(name, on, "8", 0)
	p.UID, p.Status.StartTime = types.UID(name), &metav1.Time{Time: now.Add(-3 * time.Hour)}
	if saved > 0 {
		p.Annotations = map[string]string{"berth.dev/last-checkpoint": now.Add(-saved).Format(time.RFC3339),
			"berth.dev/restart-cost": "2m"}
	}
	return p
}

func explained(t *testing.T, p *v1.Pod, objects []runtime.Object) (*Explanation, string) {
	t.Helper()
	c, err := schedulerconfig.Load("../../manifests/replace-default/scheduler-config.yaml")
	require.NoError(t, err)
	e, err := Pod(Question{Configuration: c, Objects: objects, Pod: p, Now: now})
	require.NoError(t, err)
	return e, shown(t, e, tables.Screen{Width: 200}, 5)
}

// The one that has saved is evicted, and the one that would lose more is named with what it would lose.
func TestItSaysWhichPodsAreEvictedAndWhichNot(t *testing.T) {
	t.Parallel()
	single, gang := pod("p", "", "8", 10), []runtime.Object{ofGang("g-0", "", "4", "2"), ofGang("g-1", "", "4", "2")}
	single.Spec.SchedulerName = "default-scheduler"
	for _, member := range gang {
		p := member.(*v1.Pod)
		p.Spec.SchedulerName, p.Spec.Priority = "default-scheduler", single.Spec.Priority
	}
	full := []runtime.Object{node("a", "8"), node("b", "8"), running("silent", "a", 0),
		running("saves", "b", 15*time.Minute)}
	_, text := explained(t, single, append(full, single))
	assert.Contains(t, text, "; evicting default/saves makes room on b.",
		"evicted, as they lose the least that makes room:\n"+
			"  default/saves (priority 0): 2.4 GPU hours, not saved for 15m1s, and 2m0s to come back\n",
		"spared, the cheapest first:\n  default/silent (priority 0): 24.1 GPU hours, not saved since its start 3h0m1s ago\n")
	_, text = explained(t, gang[0].(*v1.Pod), slices.Concat(full, gang))
	assert.Contains(t, text, "; evicting default/saves makes room.\n",
		"evicted, as they lose the least that makes room:\n  default/saves (priority 0): ",
		"spared, the cheapest first:\n  default/silent (priority 0): ")
}

func TestItSaysThatASinglePodEvictsAWholeGang(t *testing.T) {
	t.Parallel()
	objects := []runtime.Object{node("a", "8")}
	for i := range 2 {
		p := ofGang(fmt.Sprintf("g-%d", i), "a", "4", "2")
		p.UID = types.UID(p.Name)
		objects = append(objects, p)
	}
	boss := pod("boss", "", "8", 10)
	for _, obj := range append(objects[1:], boss) {
		obj.(*v1.Pod).Spec.SchedulerName = "default-scheduler"
	}
	e, text := explained(t, boss, append(objects, boss))
	want := []string{"default/g-0", "default/g-1"}
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
	assert.Contains(t, fmt.Sprint(err), "gang default/train", unread)
}
