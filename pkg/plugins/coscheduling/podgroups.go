package coscheduling

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
)

// absentRelist is how long the PodGroups of a cluster that does not serve them are left alone before asking again.
const absentRelist = 10 * time.Second

// podGroupClient reads and writes PodGroups.
type podGroupClient struct{ rest *restclient.RESTClient }

func newPodGroupClient(config *restclient.Config) (*podGroupClient, error) {
	scheme := runtime.NewScheme()
	if err := schedulingv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering PodGroup: %w", err)
	}
	c := restclient.CopyConfig(config)
	// The scheduler's own configuration speaks protobuf, which custom resources do not.
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c.APIPath, c.GroupVersion = "/apis", &schedulingv1alpha1.SchemeGroupVersion
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.UserAgent = restclient.DefaultKubernetesUserAgent() + "/" + Name
	rest, err := restclient.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("making a client for PodGroups: %w", err)
	}
	return &podGroupClient{rest: rest}, nil
}

// podGroupLister lists and watches PodGroups, and stands in for an empty list where the cluster does not serve them: the
// scheduler waits for all its informers before it schedules anything, and gangs that label their pods need no PodGroup.
type podGroupLister struct{ client *podGroupClient }

var podGroupParameters = metav1.ParameterCodec

// ListWithContext lists all PodGroups.
func (l podGroupLister) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := &schedulingv1alpha1.PodGroupList{}
	err := l.client.rest.Get().Resource("podgroups").VersionedParams(&options, podGroupParameters).Do(ctx).Into(list)
	if unserved(ctx, err) {
		return &schedulingv1alpha1.PodGroupList{ListMeta: metav1.ListMeta{ResourceVersion: "0"}}, nil
	}
	return list, err
}

// WatchWithContext watches all PodGroups.
func (l podGroupLister) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	w, err := l.client.rest.Get().Resource("podgroups").VersionedParams(&options, podGroupParameters).Watch(ctx)
	if unserved(ctx, err) {
		return newPause(ctx, absentRelist), nil
	}
	return w, err
}

// List lists all PodGroups.
func (l podGroupLister) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

// Watch watches all PodGroups.
func (l podGroupLister) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// IsWatchListSemanticsUnSupported keeps the reflector to plain lists, which can be answered for an absent resource.
func (podGroupLister) IsWatchListSemanticsUnSupported() bool { return true }

func unserved(ctx context.Context, err error) bool {
	switch {
	case apierrors.IsNotFound(err):
		return true
	case apierrors.IsForbidden(err):
		klog.FromContext(ctx).Error(err, "PodGroups cannot be read; gangs that name one stay pending", "resource", "podgroups."+schedulingv1alpha1.GroupName)
		return true
	}
	return false
}

// pause is a watch without events that ends by itself.
type pause struct {
	cancel context.CancelFunc
	events chan watch.Event
}

func newPause(ctx context.Context, d time.Duration) watch.Interface {
	ctx, cancel := context.WithTimeout(ctx, d)
	p := &pause{cancel: cancel, events: make(chan watch.Event, 1)}
	context.AfterFunc(ctx, func() {
		// Expired makes the reflector list anew instead of resuming a watch that never was.
		p.events <- watch.Event{Type: watch.Error, Object: &apierrors.NewResourceExpired("PodGroups were not served").ErrStatus}
		close(p.events)
	})
	return p
}

// Stop ends the watch.
func (p *pause) Stop() { p.cancel() }

// ResultChan returns the channel of the watch.
func (p *pause) ResultChan() <-chan watch.Event { return p.events }
