package inputs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

const (
	// pageSize is how many objects are asked for at a time: it bounds what server and client hold at once.
	pageSize = 500
	// expiredPages is how often the list of one kind is begun again when the server has forgotten the version that its
	// first pages came from.
	expiredPages = 3
)

// one is how to ask for one object.
var one = metav1.ListOptions{Limit: 1}

// Reader reads a live cluster: it lists kinds, or follows them. It changes nothing.
type Reader struct {
	// Progress, when set, is told after each page how many objects of a kind there are so far and, once done is set,
	// in all.
	Progress func(resource string, objects int, done bool)

	config    *rest.Config
	http      *http.Client
	discovery discovery.DiscoveryInterfaceWithContext
	dynamic   dynamic.Interface
	followed  []followed
}

// followed is a kind that is watched, with its objects as they are now.
type followed struct {
	kind     Kind
	source   *cache.ListWatch
	store    cache.Store
	informer cache.Controller
}

// NewReader makes a reader of the cluster of a client configuration.
func NewReader(config *rest.Config) (*Reader, error) {
	config = rest.CopyConfig(config)
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent())
	if config.QPS == 0 {
		// Pages follow each other; the default of 5 requests a second would be all the time that reading takes.
		config.QPS, config.Burst = 50, 100
	}
	client, httpErr := rest.HTTPClientFor(config)
	if httpErr != nil {
		return nil, fmt.Errorf("making the API client: %w", httpErr)
	}
	disco, discoveryErr := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	dyn, dynamicErr := dynamic.NewForConfigAndClient(config, client)
	if err := errors.Join(discoveryErr, dynamicErr); err != nil {
		return nil, fmt.Errorf("making the API client: %w", err)
	}
	return &Reader{config: config, http: client, discovery: disco, dynamic: dyn}, nil
}

// Version is that of the API server. It is a request that every user may make.
func (r *Reader) Version(ctx context.Context) (string, error) {
	info, err := r.discovery.ServerVersionWithContext(ctx)
	if err != nil {
		return "", fmt.Errorf("asking the API server for its version: %w", err)
	}
	return info.GitVersion, nil
}

// Collect calls add with what a dump keeps of every object, kind by kind, and returns which kinds were left out, a
// line each: those that the server does not serve and those that the user may not list. Without nodes and pods there is
// no dump, so there that is an error.
func (r *Reader) Collect(ctx context.Context, add func(runtime.Object) error) (leftOut []string, err error) {
	kinds, err := r.kinds(ctx, func(k *Kind) bool { return k.Dumped })
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		listErr := fmt.Errorf("the server does not serve it in %s", kind.GroupVersion())
		if kind.served {
			listErr = r.collect(ctx, kind, add)
		}
		name := kind.GroupResource().String()
		switch {
		case listErr == nil:
		case ctx.Err() != nil:
			return leftOut, ctx.Err()
		case kind.Required || kind.served && !apierrors.IsForbidden(listErr) && !apierrors.IsNotFound(listErr):
			return leftOut, fmt.Errorf("listing %s: %w", name, listErr)
		default:
			leftOut = append(leftOut, name+": "+strings.Join(strings.Fields(listErr.Error()), " "))
		}
	}
	return leftOut, nil
}

// collect calls add with what a dump keeps of the objects of a kind. One that is followed is not listed again.
func (r *Reader) collect(ctx context.Context, kind Kind, add func(runtime.Object) error) error {
	name, objects := kind.GroupResource().String(), 0
	keep := func(obj runtime.Object) error {
		kept, err := Keep(obj)
		if err != nil {
			return err
		}
		if objects++; objects%pageSize == 0 {
			r.report(name, objects, false)
		}
		return add(kept)
	}
	for _, f := range r.followed {
		if f.kind.GroupVersionResource != kind.GroupVersionResource {
			continue
		}
		for _, obj := range f.objects() {
			if err := keep(obj); err != nil {
				return err
			}
		}
		return nil
	}
	err := r.List(ctx, kind, metav1.NamespaceAll, keep)
	if err == nil {
		r.report(name, objects, true)
	}
	return err
}

func (r *Reader) report(resource string, objects int, done bool) {
	if r.Progress != nil {
		r.Progress(resource, objects, done)
	}
}

// List calls each with every object of a kind, of one namespace if the kind has them, or of all with "".
func (r *Reader) List(ctx context.Context, kind Kind, namespace string, each func(runtime.Object) error) error {
	source, err := r.source(kind, namespace)
	if err != nil {
		return err
	}
	// A list that is begun again meets objects that were there before.
	seen := map[string]bool{}
	first := func(obj runtime.Object) error {
		m, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		id := m.GetNamespace() + "/" + m.GetName()
		if seen[id] {
			return nil
		}
		seen[id] = true
		if err := each(obj); err != nil {
			return fmt.Errorf("reading %s %s: %w", kind.Kind, id, err)
		}
		return nil
	}
	pages := pager.New(source.ListWithContext)
	pages.PageSize = pageSize
	for restarts := 0; ; restarts++ {
		err := pages.EachListItem(ctx, metav1.ListOptions{}, first)
		if !apierrors.IsResourceExpired(err) || restarts == expiredPages {
			return err
		}
	}
}

// Follow tells the handler of the objects of a kind as they are and as they change, until ctx ends. A kind that cannot
// be listed and watched is an error: without the right to watch, what is shown would be behind and not say so.
func (r *Reader) Follow(ctx context.Context, kind Kind, handler cache.ResourceEventHandler) error {
	source, err := r.source(kind, metav1.NamespaceAll)
	if err != nil {
		return err
	}
	listed, err := source.ListWithContext(ctx, one)
	if err != nil {
		return err
	}
	at, err := meta.ListAccessor(listed)
	if err != nil {
		return fmt.Errorf("reading a list of %s: %w", kind.Kind, err)
	}
	tried, err := source.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: at.GetResourceVersion()})
	if err != nil {
		return err
	}
	tried.Stop()
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: source, Handler: handler,
		Transform: kind.trim})
	go informer.RunWithContext(ctx)
	r.followed = append(r.followed, followed{kind, source, store, informer})
	return nil
}

// Synced returns when the handlers were told of all objects of the kinds that are followed.
func (r *Reader) Synced(ctx context.Context) error {
	for _, f := range r.followed {
		if !cache.WaitForCacheSync(ctx.Done(), f.informer.HasSynced) {
			return fmt.Errorf("reading %s: %w", f.kind.Resource, context.Cause(ctx))
		}
		r.report(f.kind.Resource, len(f.store.ListKeys()), true)
	}
	return nil
}

// Answers says whether the server still answers, by the first kind that is followed.
func (r *Reader) Answers(ctx context.Context) error {
	_, err := r.followed[0].source.ListWithContext(ctx, one)
	return err
}

// objects are copies of those that there are now, in the order in which the server lists them.
func (f *followed) objects() []runtime.Object {
	keys := f.store.ListKeys()
	slices.Sort(keys)
	var list []runtime.Object
	for _, key := range keys {
		if obj, exists, err := f.store.GetByKey(key); err == nil && exists {
			list = append(list, obj.(runtime.Object).DeepCopyObject())
		}
	}
	return list
}

// trim leaves out of a followed object what is neither shown nor dumped: with 50,000 pods it would be most of the
// memory.
func (k Kind) trim(obj any) (any, error) {
	m, ok := obj.(metav1.Object)
	if !ok {
		return obj, nil
	}
	m.SetManagedFields(nil)
	version := m.GetResourceVersion()
	switch o := obj.(type) {
	case *v1.Pod:
		m = KeepPod(o)
	case *v1.Node:
		m = KeepNode(o)
	}
	m.SetResourceVersion(version)
	return m, nil
}

// Shown are the kinds of an overview that the server has.
func (r *Reader) Shown(ctx context.Context) ([]Kind, error) {
	kinds, err := r.kinds(ctx, func(k *Kind) bool { return k.Shown })
	return slices.DeleteFunc(kinds, func(k Kind) bool { return !k.served && !k.Required }), err
}

// kinds are those that are wanted; of several versions of a kind that the server has, the first.
func (r *Reader) kinds(ctx context.Context, wanted func(*Kind) bool) (found []Kind, err error) {
	_, lists, err := r.discovery.ServerGroupsAndResourcesWithContext(ctx)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("asking the API server what it serves: %w", err)
	}
	// An API of another project that does not answer does not matter.
	served := map[string]metav1.APIResource{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			served[list.GroupVersion+"/"+resource.Name] = resource
		}
	}
	listed := map[schema.GroupResource]bool{}
	for _, k := range kinds {
		resource, serves := served[k.GroupVersion().String()+"/"+k.Resource]
		if !wanted(&k) || k.Foreign && (!serves || listed[k.GroupResource()]) {
			continue
		}
		listed[k.GroupResource()] = true
		k.served, k.Namespaced = serves, resource.Namespaced
		found = append(found, k)
	}
	return found, nil
}

// source lists and watches a kind, in one namespace if it has them. Of events only the warnings are read.
func (r *Reader) source(kind Kind, namespace string) (*cache.ListWatch, error) {
	if !kind.Namespaced {
		namespace = metav1.NamespaceAll
	}
	if kind.untyped || !types.Recognizes(kind.gvk()) {
		client := r.dynamic.Resource(kind.GroupVersionResource).Namespace(namespace)
		return &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return client.List(ctx, options)
			},
			WatchFuncWithContext: client.Watch,
		}, nil
	}
	config, version := rest.CopyConfig(r.config), kind.GroupVersion()
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/apis", &version, codecs
	if version.Group == "" {
		config.APIPath = "/api"
	}
	client, err := rest.RESTClientForConfigAndClient(config, r.http)
	if err != nil {
		return nil, fmt.Errorf("making the API client: %w", err)
	}
	selector := fields.Everything()
	if kind.Kind == "Event" {
		selector = fields.OneTermEqualSelector("type", v1.EventTypeWarning)
	}
	return cache.NewListWatchFromClient(client, kind.Resource, namespace, selector), nil
}
