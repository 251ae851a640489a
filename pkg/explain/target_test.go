package explain

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

func TestAnObjectIsNamedAsKubectlDoes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, kind, name, err string }{
		{"", "pod", "", ""},
		{"pod", "pod", "", ""},
		{"pod p", "pod", "p", ""},
		{"po/p", "pod", "p", ""},
		{"pod pod/p", "pod", "p", ""},
		{"pg train", "podgroup", "train", ""},
		{"podgroups.scheduling.x-k8s.io/train", "podgroup", "train", ""},
		{"Job j", "job", "j", ""},
		{"deploy/d", "deployment", "d", ""},
		{"sts s", "statefulset", "s", ""},
		{"rs r", "replicaset", "r", ""},
		{"node n", "", "", `"node" is not a kind that is explained: those are pod, podgroup`},
		{"pod/", "", "", "name a pod"},
		{"pod/a b", "", "", `"pod/a" already has a name`},
		{"pod a b", "", "", `"b" is too much`},
		{"pod job/j", "", "", `"job/j" is not a pod`},
		{"p", "", "", `"p" is not a kind`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			got, err := ParseTarget(strings.Fields(tt.args))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got error %v, want %q in it", err, tt.err)
				}
				return
			}
			if err != nil || got != (Target{tt.kind, tt.name}) {
				t.Errorf("got %v and error %v, want %s %s", got, err, tt.kind, tt.name)
			}
		})
	}
}

func TestAPodStandsForItsController(t *testing.T) {
	t.Parallel()
	owned := func(name, on, kind, owner string) *v1.Pod {
		p := pod(name, on, "1", 0)
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, Controller: ptr.To(true)}}
		return p
	}
	ofDeployment := owned("d-7f-x", "", "ReplicaSet", "d-7f")
	ofDeployment.Labels = map[string]string{"pod-template-hash": "7f"}
	member := pod("m-0", "", "1", 0)
	member.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "g"}
	ended := owned("j-3", "a", "Job", "j")
	ended.Status.Phase = v1.PodFailed
	elsewhere := owned("j-0", "", "Job", "far")
	elsewhere.Namespace = "other"
	objects := []runtime.Object{ended, owned("j-0", "a", "Job", "j"), owned("j-10", "", "Job", "j"), owned("j-2", "", "Job", "j"),
		owned("s-0", "a", "StatefulSet", "s"), ofDeployment, member, elsewhere}
	for _, tt := range []struct {
		target       Target
		want         string
		all, pending int
	}{
		{Target{KindJob, "j"}, "j-2", 4, 2},
		{Target{KindStatefulSet, "s"}, "s-0", 1, 0},
		{Target{KindDeployment, "d"}, "d-7f-x", 1, 1},
		{Target{KindReplicaSet, "d-7f"}, "d-7f-x", 1, 1},
		{Target{KindPodGroup, "g"}, "m-0", 1, 1},
	} {
		p, all, pending, err := tt.target.Find(objects, "default")
		if err != nil || p.Name != tt.want || all != tt.all || pending != tt.pending {
			t.Errorf("%v: got pod %v of %d, %d pending, and error %v; want %s of %d, %d pending", tt.target, p, all, pending, err, tt.want, tt.all, tt.pending)
		}
	}
	for target, want := range map[Target]string{
		{KindJob, "none"}: "there is no pod of job none in namespace default",
		{KindJob, "far"}:  "; there are some in other",
	} {
		if _, _, _, err := target.Find(objects, "default"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got error %v, want %q in it", target, err, want)
		}
	}
}
