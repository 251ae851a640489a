package subject

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"

	"berth.dev/berth/pkg/cluster/inputs"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/yamldoc"
)

// Bounds of a manifest.
const (
	maxManifestBytes = 8 << 20
	maxGangPods      = 10_000
)

// Manifest has the objects that a file of manifests would add to a cluster.
type Manifest struct {
	// Pods of the file, and those of its Jobs, Deployments, StatefulSets and ReplicaSets: all pods of a gang, else one for
	// each object.
	Pods []*v1.Pod
	// Others are objects that the scheduling of the pods depends on, such as PodGroups, claims and priority classes.
	Others []runtime.Object
}

// ReadManifest reads YAML or JSON documents. Name is the file in errors, namespace that of objects without one.
func ReadManifest(r io.Reader, name, namespace string) (*Manifest, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxManifestBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(data) > maxManifestBytes {
		return nil, fmt.Errorf("%s: larger than %d MiB", name, maxManifestBytes>>20)
	}
	m := &Manifest{}
	for _, doc := range yamldoc.Split(data) {
		content, err := yamldoc.JSON(doc.Text)
		if err == nil {
			err = m.add(content, namespace)
		}
		if err != nil {
			line, text := yamldoc.Complaint(err)
			return nil, fmt.Errorf("%s:%d: %s", name, doc.First-1+max(line, 1), text)
		}
	}
	if len(m.Pods) == 0 {
		return nil, fmt.Errorf("%s: there is no pod in it, nor a Job, Deployment, StatefulSet or ReplicaSet", name)
	}
	return m, nil
}

// add adds the objects of a document.
func (m *Manifest) add(content []byte, namespace string) error {
	switch {
	case string(content) == "null":
		return nil
	case content[0] != '{':
		return errors.New("this is not an object with apiVersion and kind")
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(content); err != nil {
		return err
	}
	if obj.IsList() {
		return obj.EachListItem(func(item runtime.Object) error {
			return m.object(item.(*unstructured.Unstructured), namespace)
		})
	}
	return m.object(obj, namespace)
}

func (m *Manifest) object(obj *unstructured.Unstructured, namespace string) error {
	if obj.GetName() == "" && obj.GetGenerateName() == "" {
		return fmt.Errorf("%s without a name", obj.GetKind())
	}
	if obj.GetNamespace() == "" && obj.GetKind() != "PriorityClass" && !inputs.ClusterScoped(obj.GroupVersionKind()) {
		obj.SetNamespace(namespace)
	}
	typed, err := scheme.Scheme.New(obj.GroupVersionKind())
	if err != nil {
		// Only custom resources that a scheduler reads are needed.
		if inputs.Holds(obj.GroupVersionKind()) {
			m.Others = append(m.Others, obj)
		}
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, typed, true); err != nil {
		return fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	switch o := typed.(type) {
	case *v1.Pod:
		m.pod(o)
	case *batchv1.Job:
		return m.template(o, batchv1.SchemeGroupVersion.WithKind("Job"), &o.Spec.Template, o.Spec.Parallelism)
	case *appsv1.Deployment:
		return m.template(&appsv1.ReplicaSet{ObjectMeta: o.ObjectMeta,
			Spec: appsv1.ReplicaSetSpec{Replicas: o.Spec.Replicas, Selector: o.Spec.Selector}},
			appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), &o.Spec.Template, o.Spec.Replicas)
	case *appsv1.StatefulSet:
		return m.template(o, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), &o.Spec.Template, o.Spec.Replicas)
	case *appsv1.ReplicaSet:
		return m.template(o, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), &o.Spec.Template, o.Spec.Replicas)
	default:
		if inputs.Holds(obj.GroupVersionKind()) {
			typed.GetObjectKind().SetGroupVersionKind(obj.GroupVersionKind())
			m.Others = append(m.Others, typed)
		}
	}
	return nil
}

// controller is an object whose controller creates pods from a template.
type controller interface {
	runtime.Object
	metav1.Object
}

// template adds the object and the pods that its controller would create. The object says how many of them a gang
// needs. The pods of a Deployment belong to a ReplicaSet.
func (m *Manifest) template(owner controller, kind schema.GroupVersionKind, t *v1.PodTemplateSpec,
	replicas *int32) error {
	if owner.GetUID() == "" {
		owner.SetUID(types.UID(kind.Kind + "/" + owner.GetNamespace() + "/" + owner.GetName()))
	}
	owner.GetObjectKind().SetGroupVersionKind(kind)
	m.Others = append(m.Others, owner)
	pod := &v1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	pod.Namespace = owner.GetNamespace()
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
	n := 1
	if id, _, err := read.Of(pod); err == nil && id.Name != "" && replicas != nil {
		n = int(*replicas)
	}
	if n < 1 || n > maxGangPods {
		return fmt.Errorf("%s: %d pods, allowed are 1 to %d", owner.GetName(), n, maxGangPods)
	}
	for i := range n {
		one := pod.DeepCopy()
		one.Name = owner.GetName() + "-" + strconv.Itoa(i)
		m.pod(one)
	}
	return nil
}

func (m *Manifest) pod(pod *v1.Pod) {
	if pod.Name == "" {
		pod.Name = pod.GenerateName + "0"
	}
	m.Pods = append(m.Pods, gpuview.Unplaced(pod))
}

// Admit sets the defaults of a pod, and its priority from its class, as the API server does. Webhooks and limit ranges
// are unknown here.
func Admit(pod *v1.Pod, objects []runtime.Object) error {
	corev1defaults.SetObjectDefaults_Pod(pod)
	if pod.Spec.Priority != nil {
		return nil
	}
	var value int32
	var policy *v1.PreemptionPolicy
	switch pod.Spec.PriorityClassName {
	case "system-cluster-critical":
		value = 2_000_000_000
	case "system-node-critical":
		value = 2_000_001_000
	default:
		found := false
		for _, obj := range objects {
			class, ok := obj.(*schedulingv1.PriorityClass)
			if ok && (class.Name == pod.Spec.PriorityClassName || pod.Spec.PriorityClassName == "" && class.GlobalDefault) {
				value, policy, found = class.Value, class.PreemptionPolicy, true
			}
		}
		if !found && pod.Spec.PriorityClassName != "" {
			return fmt.Errorf("pod %s/%s: there is no PriorityClass %q", pod.Namespace, pod.Name, pod.Spec.PriorityClassName)
		}
	}
	pod.Spec.Priority = &value
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = policy
	}
	return nil
}

// onto returns the objects of a cluster with those of the manifest, which replace objects of the same name.
func (m *Manifest) onto(objects []runtime.Object) ([]runtime.Object, error) {
	added := slices.Clone(m.Others)
	for _, pod := range m.Pods {
		if err := Admit(pod, slices.Concat(objects, m.Others)); err != nil {
			return nil, err
		}
		added = append(added, pod)
	}
	replaced := map[string]bool{}
	for _, obj := range added {
		replaced[identity(obj)] = true
	}
	all := slices.DeleteFunc(slices.Clone(objects), func(obj runtime.Object) bool { return replaced[identity(obj)] })
	return append(all, added...), nil
}

func identity(obj runtime.Object) string {
	kind := obj.GetObjectKind().GroupVersionKind()
	if pod, ok := obj.(*v1.Pod); ok {
		kind = v1.SchemeGroupVersion.WithKind("Pod")
		return kind.String() + pod.Namespace + "/" + pod.Name
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return kind.String()
	}
	return kind.String() + m.GetNamespace() + "/" + m.GetName()
}

// Pod returns the pod of that name.
func (m *Manifest) Pod(name string) (*v1.Pod, error) {
	var names []string
	for _, pod := range m.Pods {
		if pod.Name == name {
			return pod, nil
		}
		names = append(names, pod.Name)
	}
	return nil, fmt.Errorf("the manifest has no pod %s; it has %s", name, strings.Join(names, ", "))
}
