package notices

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/workview"
)

// Requester is how EvictionRequests name the scheduler.
const Requester = "berth.dev/scheduler"

// requestName begins the names of the scheduler's EvictionRequests, and the UID of the pod ends them: a scheduler that
// takes over finds those of an earlier one.
const requestName = "berth-scheduler-"

// requestKind is the kind of EvictionRequests, which few clusters serve.
var requestKind = informers.CustomKind{
	Resource: lifecyclev1alpha1.SchemeGroupVersion.WithResource("evictionrequests"),
	Object:   &lifecyclev1alpha1.EvictionRequest{},
	List:     &lifecyclev1alpha1.EvictionRequestList{},
	Unread:   "the responders that pods name do not hear of a notice",
}

// requests keep the EvictionRequests of pods that have notice. What there is to be is read from the pods, what there is
// from the API, so nothing is lost with the process.
type requests struct {
	client clientset.Interface
	// watch watches EvictionRequests; it is called once, when the first pod is seen that may have one.
	watch func() cache.SharedIndexInformer

	mu       sync.Mutex
	informer cache.SharedIndexInformer
	// written is when each pod's request was last made or withdrawn, which the informer may not show yet.
	written map[requestWrite]time.Time
}

// requestWrite is one of the two things that are done for the pod.
type requestWrite struct {
	uid      types.UID
	withdraw bool
}

// WatchRequests has EvictionRequests watched until ctx ends, once a pod has notice whose responders are to hear of it.
// Without such a pod the API server is not asked for the kind.
func (n *Notifier) WatchRequests(ctx context.Context, client clientset.Interface,
	factory kubeinformers.SharedInformerFactory) {
	n.client = client
	n.watch = func() cache.SharedIndexInformer {
		informer := informers.NewCustomInformer(factory, client.LifecycleV1alpha1().RESTClient(), requestKind, 0, nil)
		go informer.RunWithContext(ctx)
		return informer
	}
}

// hears reports whether responders of the pod are to hear of its notice. The default responder of a pod without any
// would evict it before the notice ends, and the API takes no requests for pods of native groups.
func hears(pod *v1.Pod) bool {
	return len(pod.Spec.EvictionResponders) > 0 && pod.Spec.SchedulingGroup == nil
}

// see takes a pod as it is now. A notice that was withdrawn may have left a request, too.
func (r *requests) see(pod *v1.Pod) {
	if !hears(pod) {
		return
	}
	if _, c := podutil.GetPodCondition(&pod.Status, workview.EvictionNotice); c == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.informer == nil && r.watch != nil {
		r.informer = r.watch()
	}
}

// known returns the scheduler's own requests, and false while they cannot be read: one that is made then would not be
// withdrawn.
func (r *requests) known() ([]*lifecyclev1alpha1.EvictionRequest, bool) {
	r.mu.Lock()
	informer := r.informer
	r.mu.Unlock()
	if informer == nil || !informer.HasSynced() || informer.LastSyncResourceVersion() == informers.Unread {
		return nil, false
	}
	var own []*lifecyclev1alpha1.EvictionRequest
	for _, obj := range informer.GetStore().List() {
		if request, ok := obj.(*lifecyclev1alpha1.EvictionRequest); ok && isOwn(request) {
			own = append(own, request)
		}
	}
	return own, true
}

func isOwn(request *lifecyclev1alpha1.EvictionRequest) bool {
	pod := request.Spec.Target.Pod
	return request.Spec.Requester == Requester && pod != nil && request.Name == requestName+string(pod.UID)
}

// dueRequests says which of the pods with notice have yet to get a request, and whose requests are withdrawn: those of
// pods that are gone, or have no notice any more. That of a pod that terminates stays until it is gone. Find returns a
// pod that there is, or nil.
func dueRequests(told []*v1.Pod, known []*lifecyclev1alpha1.EvictionRequest,
	find func(gang.Ref) *v1.Pod) (missing, needless []gang.Ref) {
	asked, needed := map[types.UID]bool{}, map[types.UID]bool{}
	for _, request := range known {
		asked[request.Spec.Target.Pod.UID] = true
	}
	for _, pod := range told {
		needed[pod.UID] = true
		if hears(pod) && !asked[pod.UID] {
			missing = append(missing, gangview.RefOf(pod))
		}
	}
	for _, request := range known {
		target := request.Spec.Target.Pod
		ref := gang.Ref{Namespace: request.Namespace, Name: target.Name, UID: gang.UID(target.UID)}
		pod := find(ref)
		if pod == nil || pod.DeletionTimestamp == nil && !needed[pod.UID] {
			needless = append(needless, ref)
		}
	}
	return missing, needless
}

// claim returns those of the pods for which that was not done a moment ago, and notes that it is done now.
func (r *requests) claim(refs []gang.Ref, withdraw bool, now time.Time) []*v1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, at := range r.written {
		if now.Sub(at) >= RewriteEvery {
			delete(r.written, key)
		}
	}
	if r.written == nil {
		r.written = map[requestWrite]time.Time{}
	}
	var pods []*v1.Pod
	for _, ref := range refs {
		key := requestWrite{types.UID(ref.UID), withdraw}
		if _, done := r.written[key]; done {
			continue
		}
		r.written[key] = now
		pods = append(pods, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: key.uid}})
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int { return cmp.Compare(a.UID, b.UID) })
	return pods
}

// KeepRequests makes an EvictionRequest for each pod that has notice and names responders, and withdraws those of other
// pods.
func (n *Notifier) KeepRequests(now time.Time) {
	if !n.Leads() {
		return
	}
	known, read := n.known()
	if !read {
		return
	}
	var told []*v1.Pod
	for _, ref := range n.refs() {
		if pod := n.Members.Pod(ref); pod != nil {
			told = append(told, pod)
		}
	}
	missing, needless := dueRequests(told, known, n.Members.Pod)
	n.Write(n.claim(missing, false, now), "Making the EvictionRequest of a pod failed", n.request)
	n.Write(n.claim(needless, true, now), "Withdrawing the EvictionRequest of a pod failed", n.withdraw)
}

// request makes the pod's EvictionRequest.
func (r *requests) request(ctx context.Context, pod *v1.Pod) error {
	request := &lifecyclev1alpha1.EvictionRequest{
		// The pod owns it, so that it goes with the pod where no scheduler runs.
		ObjectMeta: metav1.ObjectMeta{Name: requestName + string(pod.UID), OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{Requester: Requester,
			Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
			Target: lifecyclev1alpha1.EvictionRequestTarget{
				Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod.Name, UID: pod.UID}}},
	}
	_, err := r.client.LifecycleV1alpha1().EvictionRequests(pod.Namespace).Create(ctx, request, metav1.CreateOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating EvictionRequest %s/%s: %w", pod.Namespace, request.Name, err)
	}
	return nil
}

// withdraw deletes the pod's EvictionRequest: that withdraws it, and takes one right less than to change its intent.
func (r *requests) withdraw(ctx context.Context, pod *v1.Pod) error {
	name := requestName + string(pod.UID)
	err := r.client.LifecycleV1alpha1().EvictionRequests(pod.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting EvictionRequest %s/%s: %w", pod.Namespace, name, err)
	}
	return nil
}
