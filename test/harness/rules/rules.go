// Package rules makes the API in memory do to objects what kube-apiserver does: it completes, validates and updates
// built-in kinds with kube-apiserver's own defaults and strategies, and Berth's kinds by the schemas of their
// CustomResourceDefinitions. Of admission it has the priority of pods. It lacks service accounts, quotas, webhooks,
// admission policies and default tolerations.
package rules

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"berth.dev/berth/pkg/lab/simulation/memapi"
)

// Rules are those of one server, which calls them while it is locked.
type Rules struct {
	kinds map[schema.GroupVersionResource]custom
	// definitions are the objects that define them.
	definitions []*unstructured.Unstructured
	// classes are the PriorityClasses that were created.
	classes map[string]*schedulingv1.PriorityClass
	// made counts events.
	made int
}

// New reads the CustomResourceDefinitions of a folder, or returns an error that names the file.
func New(definitions string) (*Rules, error) {
	kinds, objects, err := readDefinitions(definitions)
	if err != nil {
		return nil, err
	}
	return &Rules{kinds: kinds, definitions: objects, classes: map[string]*schedulingv1.PriorityClass{}}, nil
}

// Definitions are copies of the CustomResourceDefinitions.
func (r *Rules) Definitions() []*unstructured.Unstructured {
	copies := make([]*unstructured.Unstructured, len(r.definitions))
	for i, definition := range r.definitions {
		copies[i] = definition.DeepCopy()
	}
	return copies
}

// Create implements memapi.Rules.
func (r *Rules) Create(gvr schema.GroupVersionResource, obj runtime.Object) (runtime.Object, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is the answer
	}
	if m.GetName() == "" && m.GetGenerateName() != "" {
		m.SetName(names.SimpleNameGenerator.GenerateName(m.GetGenerateName()))
	}
	rest.FillObjectMetaSystemFields(m)
	// A real one has whole seconds.
	m.SetCreationTimestamp(metav1.NewTime(m.GetCreationTimestamp().Local()).Rfc3339Copy())
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetSelfLink("")
	m.SetResourceVersion("")
	if kind, ok := r.kinds[gvr]; ok {
		return kind.create(obj)
	}
	if _, ok := obj.(*unstructured.Unstructured); ok {
		m.SetGeneration(1)
		return obj, nil
	}
	if err := r.admit(obj); err != nil {
		return nil, err
	}
	s, ok := strategies[gvr]
	if !ok {
		legacyscheme.Scheme.Default(obj)
		return obj, nil
	}
	created, err := through(gvr, "", obj, nil,
		func(ctx context.Context, obj, _ runtime.Object) error { return rest.BeforeCreate(s.object, ctx, obj) })
	if pod, ok := created.(*v1.Pod); ok && err == nil {
		// The feature gate that drops it is that of the scheduler in this process, which may be off where the API server's
		// is on.
		pod.Spec.SchedulingGroup = obj.(*v1.Pod).Spec.SchedulingGroup
	}
	return created, err
}

// admit does for pods what the admission of priorities does.
func (r *Rules) admit(obj runtime.Object) error {
	switch obj := obj.(type) {
	case *schedulingv1.PriorityClass:
		r.classes[obj.Name] = obj.DeepCopy()
	case *v1.Pod:
		class, err := r.class(v1.Resource("pods"), obj.Name, obj.Spec.PriorityClassName)
		if err != nil {
			return err
		}
		obj.Spec.Priority, obj.Spec.PreemptionPolicy = &class.Value, class.PreemptionPolicy
	case *schedulingv1beta1.PodGroup:
		class, err := r.class(schedulingv1beta1.SchemeGroupVersion.WithResource("podgroups").GroupResource(), obj.Name,
			obj.Spec.PriorityClassName)
		if err != nil {
			return err
		}
		obj.Spec.Priority = &class.Value
	case *eventsv1.Event:
		// Recorders name events after the time, and virtual time does not advance while things happen.
		r.made++
		obj.Name = fmt.Sprintf("%s-%d", obj.Name, r.made)
	}
	return nil
}

// class is the PriorityClass of that name, or none without a name.
func (r *Rules) class(of schema.GroupResource, object, name string) (*schedulingv1.PriorityClass, error) {
	if name == "" {
		return &schedulingv1.PriorityClass{}, nil
	}
	class := r.classes[name]
	if class == nil {
		return nil, apierrors.NewForbidden(of, object, fmt.Errorf("no PriorityClass with name %s was found", name))
	}
	return class, nil
}

// Update implements memapi.Rules.
func (r *Rules) Update(gvr schema.GroupVersionResource, subresource string, obj, old runtime.Object) (runtime.Object,
	error) {
	if kind, ok := r.kinds[gvr]; ok {
		return kind.update(subresource, obj, old)
	}
	s, ok := strategies[gvr]
	if !ok {
		return obj, nil
	}
	strategy := rest.RESTUpdateStrategy(s.object)
	if subresource == "status" && s.status != nil {
		strategy = s.status
	}
	return through(gvr, subresource, obj, old, func(ctx context.Context, obj, old runtime.Object) error {
		return rest.BeforeUpdate(strategy, ctx, obj, old)
	})
}

// Delete implements memapi.Rules.
func (r *Rules) Delete(gvr schema.GroupVersionResource, obj runtime.Object, options *metav1.DeleteOptions) (memapi.Stay,
	error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return memapi.Goes, err //nolint:wrapcheck // it is the answer
	}
	strategy := rest.RESTDeleteStrategy(legacyscheme.Scheme)
	if s, ok := strategies[gvr]; ok {
		strategy = s.object
	}
	graceful, pending := false, false
	if _, custom := obj.(*unstructured.Unstructured); custom {
		err = preconditions(gvr, m, options)
	} else {
		graceful, pending, err = beforeDelete(strategy, gvr, obj, options)
	}
	switch {
	case err != nil:
		return memapi.Goes, err
	case pending:
		return memapi.AlreadyMarked, nil
	case graceful && (*options.GracePeriodSeconds > 0 || len(m.GetFinalizers()) > 0):
		return memapi.Marked, nil
	case graceful || len(m.GetFinalizers()) == 0:
		return memapi.Goes, nil
	case m.GetDeletionTimestamp() != nil && m.GetDeletionGracePeriodSeconds() != nil &&
		*m.GetDeletionGracePeriodSeconds() == 0:
		return memapi.AlreadyMarked, nil
	}
	now, none := metav1.Now(), int64(0)
	m.SetDeletionTimestamp(&now)
	m.SetDeletionGracePeriodSeconds(&none)
	return memapi.Marked, nil
}

// preconditions checks those of the deletion of an object that has no strategy.
func preconditions(gvr schema.GroupVersionResource, m metav1.Object, options *metav1.DeleteOptions) error {
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != m.GetUID() {
		return apierrors.NewConflict(gvr.GroupResource(), m.GetName(), fmt.Errorf("the UID is %s, not %s", m.GetUID(),
			*p.UID))
	}
	return nil
}

// beforeDelete marks an object of a built-in kind as its strategy says.
func beforeDelete(strategy rest.RESTDeleteStrategy, gvr schema.GroupVersionResource, obj runtime.Object,
	options *metav1.DeleteOptions) (graceful, pending bool, err error) {
	internal, err := legacyscheme.Scheme.ConvertToVersion(obj, internalVersion(gvr))
	if err != nil {
		return false, false, fmt.Errorf("converting a %T: %w", obj, err)
	}
	if graceful, pending, err = rest.BeforeDelete(strategy, contextOf(gvr, "", obj), internal, options); err != nil {
		return false, false, err //nolint:wrapcheck // it is the answer
	}
	from, err := meta.Accessor(internal)
	if err != nil {
		return false, false, err //nolint:wrapcheck // it is the answer
	}
	to, err := meta.Accessor(obj)
	if err != nil {
		return false, false, err //nolint:wrapcheck // it is the answer
	}
	to.SetDeletionTimestamp(from.GetDeletionTimestamp())
	to.SetDeletionGracePeriodSeconds(from.GetDeletionGracePeriodSeconds())
	return graceful, pending, nil
}

func internalVersion(gvr schema.GroupVersionResource) schema.GroupVersion {
	return schema.GroupVersion{Group: gvr.Group, Version: runtime.APIVersionInternal}
}

// contextOf is that of a request about an object.
func contextOf(gvr schema.GroupVersionResource, subresource string, obj runtime.Object) context.Context {
	namespace := ""
	if m, err := meta.Accessor(obj); err == nil {
		namespace = m.GetNamespace()
	}
	ctx := request.WithUser(request.WithNamespace(context.Background(), namespace), &user.DefaultInfo{Name: "anyone"})
	return request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, APIGroup: gvr.Group,
		APIVersion: gvr.Version,
		Resource:   gvr.Resource, Subresource: subresource, Namespace: namespace})
}

// through converts an object, and the one before it, to the form that strategies know, applies one, and converts it
// back.
func through(gvr schema.GroupVersionResource, subresource string, obj, old runtime.Object,
	apply func(ctx context.Context, obj, old runtime.Object) error) (runtime.Object, error) {
	ctx := contextOf(gvr, subresource, obj)
	obj = obj.DeepCopyObject()
	legacyscheme.Scheme.Default(obj)
	internal, err := legacyscheme.Scheme.ConvertToVersion(obj, internalVersion(gvr))
	if err != nil {
		return nil, fmt.Errorf("converting a %T: %w", obj, err)
	}
	var before runtime.Object
	if old != nil {
		if before, err = legacyscheme.Scheme.ConvertToVersion(old.DeepCopyObject(), internalVersion(gvr)); err != nil {
			return nil, fmt.Errorf("converting a %T: %w", old, err)
		}
	}
	if err := apply(ctx, internal, before); err != nil {
		return nil, err
	}
	stored, err := legacyscheme.Scheme.ConvertToVersion(internal, gvr.GroupVersion())
	if err != nil {
		return nil, fmt.Errorf("converting a %T: %w", internal, err)
	}
	return stored, nil
}
