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
	// pageSize is the number of objects of one response: it bounds the memory of server and client.
	pageSize = 500
	// expiredPages is how often a list is started again after the server has compacted the version of its first pages.
	expiredPages = 3
)

// one limits a list to one object.
var one = metav1.ListOptions{Limit: 1}

// Reader reads a live cluster: it lists kinds, or follows them. It changes nothing.
type Reader struct {
	// Progress, if set, is called after each page with the number of objects of a kind so far, and with done when all are
	// read.
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
		// With the default of 5 requests a second, reading would mostly wait for the client's own limit.
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

// Version asks for the version of the API server, which every user may do.
func (r *Reader) Version(ctx context.Context) (string, error) {
	info, err := r.discovery.ServerVersionWithContext(ctx)
	if err != nil {
		return "", fmt.Errorf("asking the API server for its version: %w", err)
	}
	return info.GitVersion, nil
}

// Collect calls add with each object as Keep returns it, kind by kind. It returns the kinds that were left out, with
// the reason: the server does not serve them, or the user may not list them. For nodes and pods that is an error.
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

// collect does so for one kind. The objects of a kind that is watched are not listed again.
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

// List calls each with every object of a kind in a namespace, "" for all namespaces.
func (r *Reader) List(ctx context.Context, kind Kind, namespace string, each func(runtime.Object) error) error {
	source, err := r.source(kind, namespace)
	if err != nil {
		return err
	}
	// A list that is started again returns objects for which each was called before.
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

// Follow calls the handler for the objects of a kind and for their changes, until ctx ends. A kind that cannot be
// listed and watched is an error: without the right to watch, a view would be out of date without saying so.
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

// Synced returns when the handlers have been called for all objects of the kinds that are watched.
func (r *Reader) Synced(ctx context.Context) error {
	for _, f := range r.followed {
		if !cache.WaitForCacheSync(ctx.Done(), f.informer.HasSynced) {
			return fmt.Errorf("reading %s: %w", f.kind.Resource, context.Cause(ctx))
		}
		r.report(f.kind.Resource, len(f.store.ListKeys()), true)
	}
	return nil
}

// Answers fails if the server does not answer a list of the first kind that is watched.
func (r *Reader) Answers(ctx context.Context) error {
	_, err := r.followed[0].source.ListWithContext(ctx, one)
	return err
}

// objects are copies of the current objects, in the order in which the server lists them.
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

// trim removes the fields of a watched object that are neither shown nor dumped. With 50,000 pods they would take most
// of the memory.
func (k Kind) trim(obj any) (any, error) {
	m, ok := obj.(metav1.Object)
	if !ok {
		return obj, nil
	}
	m.SetManagedFields(nil)
	version := m.GetResourceVersion()
	if k.Kind == "Pod" || k.Kind == "Node" {
		kept, err := k.keep(obj.(runtime.Object))
		if err != nil {
			return nil, err
		}
		m = kept.(metav1.Object)
	}
	m.SetResourceVersion(version)
	return m, nil
}

// Shown are the kinds of an overview that the server has.
func (r *Reader) Shown(ctx context.Context) ([]Kind, error) {
	kinds, err := r.kinds(ctx, func(k *Kind) bool { return k.Shown })
	return slices.DeleteFunc(kinds, func(k Kind) bool { return !k.served && !k.Required }), err
}

// kinds are the wanted ones, each in the first version that the server has.
func (r *Reader) kinds(ctx context.Context, wanted func(*Kind) bool) (found []Kind, err error) {
	_, lists, err := r.discovery.ServerGroupsAndResourcesWithContext(ctx)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("asking the API server what it serves: %w", err)
	}
	// An aggregated API that does not answer is no error.
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
