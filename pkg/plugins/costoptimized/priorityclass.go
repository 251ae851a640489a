package costoptimized

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/wellknown"
)

// priorityClasses is how the plugin reads PriorityClasses.
var priorityClasses = informers.CustomKind{
	Resource: schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"),
	List:     &schedulingv1.PriorityClassList{},
	Unread:   "PriorityClasses have no stance to spot",
}

// priorityClassInformer is the factory's informer of PriorityClasses. A scheduler without the right to read them starts
// all the same, which it does not with the factory's own informer.
func priorityClassInformer(factory kubeinformers.SharedInformerFactory) cache.SharedIndexInformer {
	return factory.InformerFor(&schedulingv1.PriorityClass{},
		func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			classes := client.SchedulingV1().PriorityClasses()
			source := informers.WhereReadable(priorityClasses,
				func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
					return classes.List(ctx, options)
				},
				classes.Watch)
			return cache.NewSharedIndexInformer(source, &schedulingv1.PriorityClass{}, resync, cache.Indexers{})
		})
}

// watchPriorityClasses wakes the pods of a PriorityClass when its stance to spot changes: the scheduling queue knows no
// event for it.
func (p *Plugin) watchPriorityClasses(classes cache.SharedIndexInformer, pods corelisters.PodLister,
	handle fwk.Handle) error {
	_, err := informers.Handle(handle.SharedInformerFactory(), classes, informers.Events[*schedulingv1.PriorityClass]{
		Set: func(before, class *schedulingv1.PriorityClass) {
			stance := ""
			if before != nil {
				stance = before.Annotations[wellknown.SpotKey]
			}
			if class.Annotations[wellknown.SpotKey] != stance {
				wake(handle, pods, class.Name)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching priority classes: %w", err)
	}
	return nil
}

// wake moves the profile's waiting pods of a PriorityClass to the active queue. It runs in an informer's goroutine and
// takes the queue's lock.
func wake(handle fwk.Handle, pods corelisters.PodLister, class string) {
	all, err := pods.List(labels.Everything())
	if err != nil {
		klog.Background().Error(err, "Listing pods of a changed PriorityClass", "priorityClass", class)
		return
	}
	waiting := map[string]*v1.Pod{}
	for _, pod := range all {
		if pod.Spec.NodeName == "" && pod.Spec.PriorityClassName == class && pod.Spec.SchedulerName == handle.ProfileName() {
			waiting[klog.KObj(pod).String()] = pod
		}
	}
	if len(waiting) > 0 {
		handle.Activate(klog.Background(), waiting)
	}
}
