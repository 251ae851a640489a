package read

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
)

func TestGangOf(t *testing.T) {
	t.Parallel()
	older := func(name, available string) map[string]string {
		return map[string]string{gangNameLabel: name, MinAvailableLabel: available}
	}
	for _, tc := range []struct {
		name      string
		labels    map[string]string
		id        gang.ID
		minMember int
		err       string
	}{
		{"a pod without labels is in no gang", nil, gang.ID{}, 0, ""},
		{"the label names the PodGroup", map[string]string{schedulingv1alpha1.PodGroupLabel: "a"},
			gang.ID{Namespace: "ns", Name: "a"}, 0, ""},
		{"an empty label names nothing", map[string]string{schedulingv1alpha1.PodGroupLabel: ""}, gang.ID{}, 0, ""},
		{"the older form carries the minimum", older("a", "3"), gang.ID{Namespace: "ns", Name: "a"}, 3, ""},
		{"a huge minimum", older("a", "99999999999999999999"), gang.ID{}, 0,
			`pod label pod-group.scheduling.sigs.k8s.io/min-available: "99999999999999999999" is not a whole number from 1 to 100000`},
		{"a minimum that is absent", map[string]string{gangNameLabel: "a"}, gang.ID{}, 0,
			`pod label pod-group.scheduling.sigs.k8s.io/min-available is missing: want a whole number from 1 to 100000`},
		{"a name that is empty", older("", "3"), gang.ID{}, 0, `pod label pod-group.scheduling.sigs.k8s.io/name: "" is not the name of a group`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			id, minMember, err := Of(st.MakePod().Namespace("ns").Labels(tc.labels).Obj())
			message := ""
			if err != nil {
				message = err.Error()
			}
			if id != tc.id || minMember != tc.minMember || message != tc.err {
				t.Errorf("got %v, minimum %d, error %q; want %v, %d, %q", id, minMember, message, tc.id, tc.minMember, tc.err)
			}
		})
	}
}

func TestPlacementClass(t *testing.T) {
	t.Parallel()
	pod := func(edit func(p *v1.Pod)) *v1.Pod {
		p := st.MakePod().Namespace("ns").Name("p").Label("app", "train").SchedulerName("s").Priority(3).
			Req(map[v1.ResourceName]string{"nvidia.com/gpu": "1", "cpu": "2"}).Toleration("spot").Obj()
		edit(p)
		return p
	}
	original := Member(pod(func(*v1.Pod) {}), Membership{}, nil, true).Class
	for _, tc := range []struct {
		name string
		same bool
		edit func(p *v1.Pod)
	}{
		{"another name", true, func(p *v1.Pod) { p.Name, p.UID = "q", "q" }},
		{"another index in its Job", true, func(p *v1.Pod) { p.Labels["batch.kubernetes.io/job-completion-index"] = "7" }},
		{"what kubectl applied", true, func(p *v1.Pod) {
			p.Annotations = map[string]string{v1.LastAppliedConfigAnnotation: `{"metadata":{"name":"p"}}`}
		}},
		{"a request written differently", true, func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests["cpu"] = *resource.NewMilliQuantity(2000, resource.DecimalSI)
		}},
		{"a volume of its node's", true, func(p *v1.Pod) {
			p.Spec.Volumes = []v1.Volume{{Name: "tmp", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
		}},
		{"another request", false, func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = *resource.NewQuantity(2, resource.DecimalSI)
		}},
		{"another label", false, func(p *v1.Pod) { p.Labels["app"] = "eval" }},
		{"a label that is moved to the annotations", false, func(p *v1.Pod) { p.Annotations, p.Labels = p.Labels, nil }},
		{"a toleration with an end", false, func(p *v1.Pod) { p.Spec.Tolerations[0].TolerationSeconds = ptr.To[int64](0) }},
		{"an affinity", false, func(p *v1.Pod) { p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{}} }},
	} {
		if same := Member(pod(tc.edit), Membership{}, nil, true).Class == original; same != tc.same {
			t.Errorf("%s: of the same class: %t, want %t", tc.name, same, tc.same)
		}
	}
}
