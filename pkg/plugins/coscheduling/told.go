package coscheduling

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/status"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/wellknown"
)

// told is what is said of gangs, and by whom.
type told struct {
	// status is the controller of PodGroups.
	status *status.Controller
	owners *status.Owners
	// election says whether to tell.
	election informers.Election
	// recorder tells of what pods and PodGroups say wrongly.
	recorder events.EventRecorderLogger
}

// doubt says of an object that has told of another checkpoint what is wrong with it, if anything is.
func (t *told) doubt(old, obj metav1.Object, about runtime.Object) {
	key := wellknown.LastCheckpointKey
	if old.GetAnnotations()[key] == obj.GetAnnotations()[key] || !t.election.Leads() {
		return
	}
	if wrong := work.Doubtful(obj, time.Now()); wrong != nil {
		t.recorder.Eventf(about, nil, v1.EventTypeWarning, "CheckpointIgnored", "Reading", "%s: %s", wrong.Error(),
			wrong.Effect)
	}
}

// foreign records once about a pod that it is in a group of another scheduler, and so in none here.
func (t *told) foreign(ctx context.Context, recorder events.EventRecorderLogger, pod *v1.Pod) {
	f, says := read.ForeignOf(pod)
	if !says || pod.Spec.SchedulingGroup != nil || !t.status.Pods.IsNews(pod, "ForeignGroup", f.String()) {
		return
	}
	recorder.WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeWarning, "ForeignGroup", "Scheduling", "%s", f)
}
