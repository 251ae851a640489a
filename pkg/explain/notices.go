package explain

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/workview"
)

// Notice is what a pod was told before its eviction.
type Notice struct {
	Pod string `json:"pod"`
	// For names the gang or the pod for which it is to go.
	For string `json:"for"`
	// Given is when it was told, and Until when it goes at the latest, both in RFC 3339. It goes before if its work is
	// saved.
	Given string `json:"given"`
	Until string `json:"until"`
}

// notices are those of the target, and those that were given for its sake.
func (w *world) notices(objects []runtime.Object, e *Explanation) []Notice {
	notices := []Notice{}
	gangs := w.gangs()
	if gangs == nil {
		return notices
	}
	loss := gangs.Loss()
	moment := loss.At(time.Now())
	for _, obj := range objects {
		pod, ok := obj.(*v1.Pod)
		if !ok {
			continue
		}
		told, has := workview.NoticeOf(pod)
		name := PodName{pod.Namespace, pod.Name}
		if !has || name != e.Pod && told.By != "pod "+e.Pod.String() && (e.Gang == nil || told.By != "gang "+e.Gang.Name) {
			continue
		}
		length := moment.Work(pod).NoticeOf(told.Given, time.Now(), loss.Limits).Length
		notices = append(notices, Notice{Pod: name.String(), For: told.By, Given: told.Given.UTC().Format(time.RFC3339),
			Until: told.Given.Add(length).UTC().Format(time.RFC3339)})
	}
	return notices
}

// notices prints who is told to save its work.
func (p *page) notices(e *Explanation) {
	for _, n := range e.Notices {
		if n.Pod == e.Pod.String() {
			p.line("it is to be evicted for %s, as soon as its work is saved, and at %s at the latest", n.For, n.Until)
		} else {
			p.line("%s is told to save its work and to go, at %s at the latest", n.Pod, n.Until)
		}
	}
}
