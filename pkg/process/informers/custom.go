package informers

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	kubeinformers "k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// customRetry is how long a kind that cannot be read is left alone before the next attempt.
	customRetry = 10 * time.Second
	// customPatience is how long a server that answers with errors of its own may keep the scheduler from starting.
	customPatience = 30 * time.Second
)

// Unread is the last resource version of the informer of a kind that cannot be read.
const Unread = "0"

// CustomKind is a kind that a plugin reads where it can: a custom resource, or one for which the scheduler may lack a
// right.
type CustomKind struct {
	// Resource names the kind to the API server.
	Resource schema.GroupVersionResource
	// Object and List are empty objects of the two types.
	Object, List runtime.Object
	// Reader is the plugin that reads the kind; it is added to the user agent.
	Reader string
	// Unread says what happens while the kind cannot be read. The log says it, too.
	Unread string
}

// Custom returns the factory's informer for the kind, which starts with all others, and the client that writes it.
// Handlers and indexers are added by the caller, who is to call it once for each factory, that is, inside the build of
// Shared.
//
// The informer never keeps the scheduler from starting, which a CRD that is not installed does with a plain informer. A
// kind that the cluster does not serve or that the scheduler may not read is an empty one; the log says so once, and
// the informer tries again until it can read the kind. Once objects have been read, only their deletion, or that of the
// CRD, removes them: a right that was withdrawn does not.
func Custom(factory kubeinformers.SharedInformerFactory, config *restclient.Config,
	kind CustomKind) (cache.SharedIndexInformer, *restclient.RESTClient, error) {
	client, err := NewCustomClient(config, kind)
	if err != nil {
		return nil, nil, err
	}
	informer := factory.InformerFor(kind.Object,
		func(_ clientset.Interface, resync time.Duration) cache.SharedIndexInformer {
			// Like those of the factory itself it says in the metrics how far it has come, if the factory has a name.
			return cache.NewSharedIndexInformerWithOptions(&customListWatch{kind: kind, client: client}, kind.Object,
				cache.SharedIndexInformerOptions{ResyncPeriod: resync, Indexers: cache.Indexers{},
					Identifier: factory.InformerName().WithResource(kind.Resource)})
		})
	return informer, client, nil
}

// NewCustomClient returns a client for the objects of the kind.
func NewCustomClient(config *restclient.Config, kind CustomKind) (*restclient.RESTClient, error) {
	scheme, version := runtime.NewScheme(), kind.Resource.GroupVersion()
	scheme.AddKnownTypes(version, kind.Object, kind.List)
	metav1.AddToGroupVersion(scheme, version)
	c := restclient.CopyConfig(config)
	// The scheduler's own configuration speaks protobuf, which custom resources do not.
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c.APIPath, c.GroupVersion = "/apis", &version
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.UserAgent = restclient.DefaultKubernetesUserAgent() + "/" + kind.Reader
	client, err := restclient.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", kind.Resource.GroupResource(), err)
	}
	return client, nil
}

// customListWatch lists and watches the objects of a kind. Its state is the reflector's, which lists and watches in
// turns.
type customListWatch struct {
	kind   CustomKind
	client restclient.Interface

	// listed is set once the objects have been read, and away while the list that was given last is not the server's.
	listed, away bool
	// failing is when the first of the errors came that were returned since; zero without one.
	failing time.Time
	// said is the reason that the log has last given for a kind that cannot be read.
	said metav1.StatusReason
}

// ListWithContext lists all objects.
func (l *customListWatch) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := l.kind.List.DeepCopyObject()
	err := l.request(&options).Do(ctx).Into(list)
	if err == nil {
		if l.said != "" {
			klog.FromContext(ctx).Info("Resource can be read", "resource", l.kind.Resource.GroupResource())
		}
		l.listed, l.away, l.failing, l.said = true, false, time.Time{}, ""
		return list, nil
	}
	if !l.standsIn(ctx, err) {
		return nil, err
	}
	l.away = true
	l.say(ctx, err)
	return l.nothing()
}

func (l *customListWatch) request(options *metav1.ListOptions) *restclient.Request {
	return l.client.Get().Resource(l.kind.Resource.Resource).VersionedParams(options, metav1.ParameterCodec)
}

// standsIn reports whether an empty list takes the place of the one that failed with err.
func (l *customListWatch) standsIn(ctx context.Context, err error) bool {
	switch {
	case apierrors.IsNotFound(err):
		// The objects of a CRD that was deleted are gone, too.
		return true
	case l.listed || ctx.Err() != nil:
		return false
	case apierrors.IsForbidden(err):
		return true
	case unanswered(err):
		// The scheduler waits for the server in any case.
		l.failing = time.Time{}
		return false
	case l.failing.IsZero():
		l.failing = time.Now()
	}
	return time.Since(l.failing) >= customPatience
}

// nothing is an empty list.
func (l *customListWatch) nothing() (runtime.Object, error) {
	list := l.kind.List.DeepCopyObject()
	meta, ok := list.(metav1.ListInterface)
	if !ok {
		return nil, fmt.Errorf("listing %s: %T has no list metadata", l.kind.Resource.GroupResource(), list)
	}
	meta.SetResourceVersion(Unread)
	return list, nil
}

// WatchWithContext watches all objects.
func (l *customListWatch) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if l.away {
		// The list that it would go on from is not the server's.
		return pause(ctx, customRetry), nil
	}
	options.Watch = true
	w, err := l.request(&options).Watch(ctx)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		l.say(ctx, err)
		return pause(ctx, customRetry), nil
	}
	return w, err
}

// say logs that the kind cannot be read, once for each reason.
func (l *customListWatch) say(ctx context.Context, err error) {
	reason := apierrors.ReasonForError(err)
	if reason == "" {
		reason = metav1.StatusReasonUnknown
	}
	if l.said == reason {
		return
	}
	l.said = reason
	logger := klog.FromContext(ctx).WithValues("resource", l.kind.Resource.GroupResource(), "effect", l.kind.Unread)
	if apierrors.IsNotFound(err) {
		logger.Info("Resource is not installed")
		return
	}
	logger.Error(err, "Resource cannot be read, trying again")
}

// List lists all objects.
func (l *customListWatch) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

// Watch watches all objects.
func (l *customListWatch) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// IsWatchListSemanticsUnSupported keeps the reflector to plain lists, which can be answered for an absent resource.
func (*customListWatch) IsWatchListSemanticsUnSupported() bool { return true }

// unanswered reports whether err came from the connection and not from a server.
func unanswered(err error) bool {
	var connection interface{ Timeout() bool }
	return errors.As(err, &connection)
}

// pause returns a watch without events that ends after d, so that the reflector lists again.
func pause(ctx context.Context, d time.Duration) watch.Interface {
	ctx, cancel := context.WithTimeout(ctx, d)
	p := &pausing{cancel: cancel, events: make(chan watch.Event, 1)}
	context.AfterFunc(ctx, func() {
		// Expired makes the reflector list again instead of resuming a watch that never was.
		p.events <- watch.Event{Type: watch.Error,
			Object: &apierrors.NewResourceExpired("the resource was not served").ErrStatus}
		close(p.events)
	})
	return p
}

// pausing is a watch without events that ends after a time.
type pausing struct {
	cancel context.CancelFunc
	events chan watch.Event
}

// Stop ends the watch.
func (p *pausing) Stop() { p.cancel() }

// ResultChan returns the channel of the watch.
func (p *pausing) ResultChan() <-chan watch.Event { return p.events }
