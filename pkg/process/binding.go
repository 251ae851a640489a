package process

import (
	"context"
	"errors"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientset "k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
)

const (
	// readTimeout bounds one read of the pod.
	readTimeout = 5 * time.Second
	// longest bounds all reads of the pod. A scheduler that cannot reach the API server loses its lease before that, which
	// ends the process.
	longest = time.Minute
)

// pauses are the pauses between two reads while the API server does not answer.
var pauses = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 7, Cap: 5 * time.Second}

// SureBindings returns the client with another Bind: it succeeds if the pod has the node in the end, even if the answer
// was lost. After an error it reads the pod until the API server answers, for a minute at most.
func SureBindings(client clientset.Interface) clientset.Interface {
	return sure{client, &core{client.CoreV1()}}
}

type sure struct {
	clientset.Interface
	core *core
}

// CoreV1 implements clientset.Interface.
func (c sure) CoreV1() corev1client.CoreV1Interface { return c.core }

type core struct{ corev1client.CoreV1Interface }

// Pods implements corev1client.PodsGetter.
func (c *core) Pods(namespace string) corev1client.PodInterface {
	return pods{c.CoreV1Interface.Pods(namespace), namespace}
}

type pods struct {
	corev1client.PodInterface
	namespace string
}

// Bind implements corev1client.PodExpansion.
func (p pods) Bind(ctx context.Context, binding *v1.Binding, options metav1.CreateOptions) error {
	err := p.PodInterface.Bind(ctx, binding, options)
	if err == nil || refused(err) {
		return err
	}
	pod := p.read(ctx, binding.Name)
	if pod == nil || pod.UID != binding.UID || pod.Spec.NodeName == "" || pod.Spec.NodeName != binding.Target.Name {
		return err
	}
	klog.FromContext(ctx).Info("A binding that seemed to fail was done", "pod", klog.KRef(p.namespace, binding.Name),
		"node", binding.Target.Name, "err", err)
	return nil
}

// refused reports whether an API server has answered that it did not do what was asked. A conflict is such an answer:
// another scheduler has bound the pod, perhaps with other devices.
func refused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}

// read returns the pod from the API server, nil if it is gone or cannot be read. It reads once even if the context has
// ended: that may be why the binding has no answer.
func (p pods) read(ctx context.Context, name string) *v1.Pod {
	var pod *v1.Pod
	look := func(context.Context) (bool, error) {
		once, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		got, err := p.Get(once, name, metav1.GetOptions{})
		if err == nil {
			pod = got
		}
		return err == nil || refused(err), nil
	}
	if done, _ := look(ctx); done {
		return pod
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if err := pauses.DelayFunc().Until(ctx, false, true, look); err != nil {
		klog.FromContext(ctx).Error(err, "It is not known whether a binding was done", "pod", klog.KRef(p.namespace, name))
	}
	return pod
}
