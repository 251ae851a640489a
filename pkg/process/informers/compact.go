package informers

import (
	"fmt"
	"hash/maphash"
	"maps"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

const (
	// mostRecent bounds the values of a kind that are remembered. All are forgotten when there are more.
	mostRecent = 4096
	// longestText and mostEntries bound the texts and maps that are remembered after their objects are gone. Image names
	// with digests are shorter.
	longestText, mostEntries = 256, 16
)

// Compact makes the informers of pods and nodes share equal texts, resource lists and labels of objects. It also drops
// managed fields, which kube-scheduler does for pods only. Call it before the factory starts; a second call does
// nothing.
func Compact(factory informers.SharedInformerFactory) error {
	_, err := Shared(factory, func() (*compacted, error) {
		core := factory.Core().V1()
		if err := core.Pods().Informer().SetTransform(compacting((*sharing).pod)); err != nil {
			return nil, fmt.Errorf("compacting pods: %w", err)
		}
		if err := core.Nodes().Informer().SetTransform(compacting((*sharing).node)); err != nil {
			return nil, fmt.Errorf("compacting nodes: %w", err)
		}
		return &compacted{}, nil
	})
	return err
}

// compacted marks a factory whose informers are compacted.
type compacted struct{}

// compacting is a transformation of one informer, which calls it for one object at a time.
func compacting[T any](compact func(*sharing, T)) cache.TransformFunc {
	s := newSharing()
	return func(obj any) (any, error) {
		if object, ok := obj.(T); ok {
			compact(s, object)
		}
		return obj, nil
	}
}

// sharing has recent values, which replace equal ones. It belongs to one goroutine.
type sharing struct {
	seed      maphash.Seed
	texts     map[string]string
	labels    map[uint64]map[string]string
	resources map[uint64]v1.ResourceList
}

func newSharing() *sharing {
	return &sharing{seed: maphash.MakeSeed(), texts: map[string]string{}, labels: map[uint64]map[string]string{},
		resources: map[uint64]v1.ResourceList{}}
}

// remember adds a value to those that are remembered.
func remember[K comparable, V any](recent map[K]V, key K, value V) {
	if len(recent) >= mostRecent {
		clear(recent)
	}
	recent[key] = value
}

// reuse replaces texts by equal recent ones.
func reuse[T ~string](s *sharing, texts ...*T) {
	for _, t := range texts {
		*t = T(s.text(string(*t)))
	}
}

func (s *sharing) text(t string) string {
	if t == "" || len(t) > longestText {
		return t
	}
	if known, ok := s.texts[t]; ok {
		return known
	}
	remember(s.texts, t, t)
	return t
}

// sharedMap returns a recent map with the same content, or the map itself, which is then remembered.
func sharedMap[M ~map[K]V, K, V comparable](s *sharing, known map[uint64]M, m M, adopt func(M)) M {
	if len(m) == 0 || len(m) > mostEntries {
		return m
	}
	key := uint64(len(m))
	for k, v := range m {
		key ^= maphash.Comparable(s.seed, struct {
			k K
			v V
		}{k, v})
	}
	if other, ok := known[key]; ok && maps.Equal(other, m) {
		return other
	}
	adopt(m)
	remember(known, key, m)
	return m
}

// adoptTexts replaces keys and values by equal recent ones: an assignment replaces the key, too.
func (s *sharing) adoptTexts(m map[string]string) {
	for k, v := range m {
		m[s.text(k)] = s.text(v)
	}
}

func (s *sharing) shareLabels(m *map[string]string) { *m = sharedMap(s, s.labels, *m, s.adoptTexts) }

func (s *sharing) shareResources(lists ...*v1.ResourceList) {
	for _, list := range lists {
		*list = sharedMap(s, s.resources, *list, func(m v1.ResourceList) {
			for name, q := range m {
				m[v1.ResourceName(s.text(string(name)))] = q
			}
		})
	}
}

func (s *sharing) meta(m *metav1.ObjectMeta) {
	m.ManagedFields = nil
	reuse(s, &m.Namespace, &m.GenerateName)
	s.adoptTexts(m.Annotations)
	for i := range m.OwnerReferences {
		o := &m.OwnerReferences[i]
		reuse(s, &o.APIVersion, &o.Kind, &o.Name)
		reuse(s, &o.UID)
	}
}

func (s *sharing) pod(pod *v1.Pod) {
	s.meta(&pod.ObjectMeta)
	s.shareLabels(&pod.Labels)
	spec := &pod.Spec
	s.shareLabels(&spec.NodeSelector)
	reuse(s, &spec.NodeName, &spec.SchedulerName, &spec.ServiceAccountName, &spec.DeprecatedServiceAccount,
		&spec.PriorityClassName, &spec.Subdomain)
	reuse(s, &spec.RestartPolicy)
	reuse(s, &spec.DNSPolicy)
	for _, containers := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			s.container(&containers[i])
		}
	}
	for i := range spec.Tolerations {
		t := &spec.Tolerations[i]
		reuse(s, &t.Key, &t.Value)
		reuse(s, &t.Operator)
		reuse(s, &t.Effect)
	}
	if spec.Resources != nil {
		s.shareResources(&spec.Resources.Requests, &spec.Resources.Limits)
	}
	s.shareResources(&spec.Overhead)
	s.podStatus(&pod.Status)
}

func (s *sharing) container(c *v1.Container) {
	reuse(s, &c.Name, &c.Image, &c.WorkingDir, &c.TerminationMessagePath)
	reuse(s, &c.TerminationMessagePolicy)
	reuse(s, &c.ImagePullPolicy)
	s.shareResources(&c.Resources.Requests, &c.Resources.Limits)
	for _, list := range [][]string{c.Command, c.Args} {
		for i := range list {
			reuse(s, &list[i])
		}
	}
	for i := range c.Env {
		reuse(s, &c.Env[i].Name, &c.Env[i].Value)
	}
	for i := range c.VolumeMounts {
		reuse(s, &c.VolumeMounts[i].Name, &c.VolumeMounts[i].MountPath)
	}
}

func (s *sharing) podStatus(status *v1.PodStatus) {
	reuse(s, &status.Phase)
	reuse(s, &status.QOSClass)
	reuse(s, &status.HostIP)
	for i := range status.HostIPs {
		reuse(s, &status.HostIPs[i].IP)
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		reuse(s, &c.Type)
		reuse(s, &c.Status)
		reuse(s, &c.Reason, &c.Message)
	}
	for _, statuses := range [][]v1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range statuses {
			c := &statuses[i]
			reuse(s, &c.Name, &c.Image, &c.ImageID)
			s.shareResources(&c.AllocatedResources)
			if c.Resources != nil {
				s.shareResources(&c.Resources.Requests, &c.Resources.Limits)
			}
		}
	}
}

func (s *sharing) node(node *v1.Node) {
	s.meta(&node.ObjectMeta)
	s.adoptTexts(node.Labels)
	for i := range node.Spec.Taints {
		t := &node.Spec.Taints[i]
		reuse(s, &t.Key, &t.Value)
		reuse(s, &t.Effect)
	}
	status := &node.Status
	s.shareResources(&status.Capacity, &status.Allocatable)
	for i := range status.Conditions {
		c := &status.Conditions[i]
		reuse(s, &c.Type)
		reuse(s, &c.Status)
		reuse(s, &c.Reason, &c.Message)
	}
	for i := range status.Addresses {
		reuse(s, &status.Addresses[i].Type)
	}
	info := &status.NodeInfo
	reuse(s, &info.KernelVersion, &info.OSImage, &info.ContainerRuntimeVersion, &info.KubeletVersion,
		&info.OperatingSystem, &info.Architecture)
	for i := range status.Images {
		for j := range status.Images[i].Names {
			reuse(s, &status.Images[i].Names[j])
		}
	}
}
