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
	// customRetry is the pause before the next attempt to read a kind that cannot be read.
	customRetry = 10 * time.Second
	// customPatience is for how long an API server that answers with errors may keep the scheduler from starting.
	customPatience = 30 * time.Second
)

// Unread is the last resource version of the informer of a kind that cannot be read.
const Unread = "0"

// CustomKind is a kind that may not be readable: a custom resource, or one for which the scheduler may lack a right.
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

// Custom returns the factory's informer for the kind, which starts with the factory, and a client that writes the kind.
// The caller adds handlers and indexers, and calls Custom once for each factory: inside the build of Shared.
//
// Unlike a plain informer, this one does not keep the scheduler from starting if the CRD is not installed. A kind that
// the cluster does not serve, or that the scheduler may not read, has no objects; the log says so once, and the
// informer tries again until it can read the kind. Objects that have been read are removed only if they or the CRD are
// deleted, and not if the right to read them is withdrawn.
func Custom(factory kubeinformers.SharedInformerFactory, config *restclient.Config,
	kind CustomKind) (cache.SharedIndexInformer, *restclient.RESTClient, error) {
	client, err := NewCustomClient(config, kind)
	if err != nil {
		return nil, nil, err
	}
	informer := factory.InformerFor(kind.Object,
		func(_ clientset.Interface, resync time.Duration) cache.SharedIndexInformer {
			// The identifier is for the metrics of informers.
			l := &customListWatch{kind: kind, client: client}
			return cache.NewSharedIndexInformerWithOptions(NewPlainLists(l.list, l.watch), kind.Object,
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

// customListWatch lists and watches the objects of a kind. Only the reflector uses it, which never lists and watches at
// the same time.
type customListWatch struct {
	kind   CustomKind
	client restclient.Interface

	// listed is set once the objects have been read, and away while the last list stands for one that cannot be read.
	listed, away bool
	// failing is the time of the first error since the last success, zero without one.
	failing time.Time
	// logged is the reason in the last message about a kind that cannot be read.
	logged metav1.StatusReason
}

// list lists all objects.
func (l *customListWatch) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := l.kind.List.DeepCopyObject()
	err := l.request(&options).Do(ctx).Into(list)
	if err == nil {
		if l.logged != "" {
			klog.FromContext(ctx).Info("Resource can be read", "resource", l.kind.Resource.GroupResource())
		}
		l.listed, l.away, l.failing, l.logged = true, false, time.Time{}, ""
		return list, nil
	}
	if !l.absent(ctx, err) {
		return nil, err
	}
	l.away = true
	l.log(ctx, err)
	return l.emptyList()
}

func (l *customListWatch) request(options *metav1.ListOptions) *restclient.Request {
	return l.client.Get().Resource(l.kind.Resource.Resource).VersionedParams(options, metav1.ParameterCodec)
}

// absent reports whether an empty list replaces the one that failed with err.
func (l *customListWatch) absent(ctx context.Context, err error) bool {
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

func (l *customListWatch) emptyList() (runtime.Object, error) {
	list := l.kind.List.DeepCopyObject()
	meta, ok := list.(metav1.ListInterface)
	if !ok {
		return nil, fmt.Errorf("listing %s: %T has no list metadata", l.kind.Resource.GroupResource(), list)
	}
	meta.SetResourceVersion(Unread)
	return list, nil
}

// watch watches all objects.
func (l *customListWatch) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if l.away {
		// The API server knows no resource version to watch from.
		return pause(ctx, customRetry), nil
	}
	options.Watch = true
	w, err := l.request(&options).Watch(ctx)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		l.log(ctx, err)
		return pause(ctx, customRetry), nil
	}
	return w, err
}

// log logs that the kind cannot be read, once for each reason.
func (l *customListWatch) log(ctx context.Context, err error) {
	reason := apierrors.ReasonForError(err)
	if reason == "" {
		reason = metav1.StatusReasonUnknown
	}
	if l.logged == reason {
		return
	}
	l.logged = reason
	logger := klog.FromContext(ctx).WithValues("resource", l.kind.Resource.GroupResource(), "effect", l.kind.Unread)
	if apierrors.IsNotFound(err) {
		logger.Info("Resource is not installed")
		return
	}
	logger.Error(err, "Resource cannot be read, trying again")
}

// plainLists keeps an informer to plain lists, which can be answered for a resource that is not served.
type plainLists struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported implements the reflector's question.
func (plainLists) IsWatchListSemanticsUnSupported() bool { return true }

// NewPlainLists returns what an informer of a resource lists and watches by, without the streaming of lists.
func NewPlainLists(lists cache.ListWithContextFunc, watches cache.WatchFuncWithContext) cache.ListerWatcher {
	return plainLists{&cache.ListWatch{ListWithContextFunc: lists, WatchFuncWithContext: watches}}
}

// unanswered reports whether err is one of the connection, and not an answer of the API server.
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
