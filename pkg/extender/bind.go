package extender

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/binding"
)

// Bind checks the node once more, promises devices to the pod where it needs some, writes them to the pod and binds it.
// A request that is repeated because its answer was lost succeeds.
func (e *Extender) Bind(ctx context.Context, args *extenderv1.ExtenderBindingArgs) error {
	pod, err := e.pod(ctx, args)
	if err != nil {
		return err
	}
	switch pod.Spec.NodeName {
	case "":
	case args.Node:
		return nil
	default:
		return fmt.Errorf("binding pod %s/%s to node %s: it is bound to node %s", pod.Namespace, pod.Name, args.Node,
			pod.Spec.NodeName)
	}
	assumed, state, err := e.reserve(ctx, pod, args.Node)
	if err != nil {
		return fmt.Errorf("binding pod %s/%s to node %s: %w", pod.Namespace, pod.Name, args.Node, err)
	}
	if err := e.finish(ctx, state, assumed); err != nil {
		return fmt.Errorf("binding pod %s/%s to node %s: %w", pod.Namespace, pod.Name, args.Node, err)
	}
	return nil
}

// pod finds the pod with its UID, which the extender may see later than the scheduler.
func (e *Extender) pod(ctx context.Context, args *extenderv1.ExtenderBindingArgs) (*v1.Pod, error) {
	pod, err := e.pods.Pods(args.PodNamespace).Get(args.PodName)
	if apierrors.IsNotFound(err) || err == nil && pod.UID != args.PodUID {
		pod, err = e.client.CoreV1().Pods(args.PodNamespace).Get(ctx, args.PodName, metav1.GetOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("reading pod %s/%s: %w", args.PodNamespace, args.PodName, err)
	}
	if pod.UID != args.PodUID {
		return nil, fmt.Errorf("reading pod %s/%s: its UID is %q, and the one to bind has %q: it was replaced",
			args.PodNamespace, args.PodName, pod.UID, args.PodUID)
	}
	return pod, nil
}

// reserve is the scheduling cycle of a pod whose node is chosen. What was true when the node passed Filter may not be
// true any more, so the node is looked at again in the step that promises its devices.
func (e *Extender) reserve(ctx context.Context, pod *v1.Pod, node string) (*v1.Pod, fwk.CycleState, error) {
	c, err := e.begin(ctx, pod)
	if err != nil {
		return nil, nil, err
	}
	defer c.end()
	if c.refused != nil {
		return nil, nil, c.refused.AsError()
	}
	info, err := c.snapshot.NodeInfos().Get(node)
	if err != nil {
		return nil, nil, fmt.Errorf("finding the node: %w", err)
	}
	if status := c.filter(ctx, c.state, pod, info); !status.IsSuccess() && (!status.IsRejected() || !e.hasDevices(pod)) {
		return nil, nil, status.AsError()
	}
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = node
	if err := e.sched.Cache.AssumePod(klog.FromContext(ctx), assumed); err != nil {
		return nil, nil, fmt.Errorf("counting the pod on the node: %w", err)
	}
	if status := e.framework.RunReservePluginsReserve(ctx, c.state, assumed, node); !status.IsSuccess() {
		e.forget(ctx, c.state, assumed)
		return nil, nil, status.AsError()
	}
	return assumed, c.state, nil
}

// hasDevices reports that the scheduler has allocated devices for extended resources of the pod. It does so before it
// asks for the binding, and the claim that records them is none of the pod's spec: to the plugins the devices are in
// use.
func (e *Extender) hasDevices(pod *v1.Pod) bool {
	dra := e.framework.SharedDRAManager()
	if dra == nil {
		return false
	}
	claims, err := dra.ResourceClaims().List()
	return err == nil && slices.ContainsFunc(claims, func(c *resourcev1.ResourceClaim) bool {
		return c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" && c.Status.Allocation != nil &&
			metav1.IsControlledBy(c, pod)
	})
}

// finish binds the pod, or takes back what it was promised. Another replica may have bound it already: that it is on
// the node is what the caller asks for.
func (e *Extender) finish(ctx context.Context, state fwk.CycleState, assumed *v1.Pod) error {
	err := e.write(ctx, state, assumed)
	if err == nil {
		return nil
	}
	// The request's deadline may be the reason, and the promise must be taken back all the same.
	e.forget(context.WithoutCancel(ctx), state, assumed)
	if boundTo(err) == assumed.Spec.NodeName {
		return nil
	}
	return err
}

// write is the binding cycle. It needs no turn: pods that wait for the lock of a node must not keep others from being
// scheduled.
func (e *Extender) write(ctx context.Context, state fwk.CycleState, assumed *v1.Pod) error {
	node := assumed.Spec.NodeName
	status := e.framework.RunPreBindPreFlights(ctx, state, assumed, node)
	if status.IsSuccess() {
		status = e.framework.RunPreBindPlugins(ctx, state, assumed, node)
	}
	if !status.IsSuccess() && !status.IsSkip() {
		return status.AsError()
	}
	return e.client.CoreV1().Pods(assumed.Namespace).Bind(ctx, &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: assumed.Namespace, Name: assumed.Name, UID: assumed.UID},
		Target:     v1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
}

// boundTo is the node of a pod that turned out to be bound before it was told its devices, empty for any other error.
func boundTo(err error) string {
	bound := (*binding.BoundError)(nil)
	if !errors.As(err, &bound) {
		return ""
	}
	return bound.Pod.Spec.NodeName
}

func (e *Extender) forget(ctx context.Context, state fwk.CycleState, assumed *v1.Pod) {
	e.framework.RunReservePluginsUnreserve(ctx, state, assumed, assumed.Spec.NodeName)
	if err := e.sched.Cache.ForgetPod(klog.FromContext(ctx), assumed); err != nil {
		klog.FromContext(ctx).Error(err, "Taking a pod off its node failed", "pod", klog.KObj(assumed), "node",
			assumed.Spec.NodeName)
	}
}
