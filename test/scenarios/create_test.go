package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// The labels of the older form, by which pods are a gang without a PodGroup of anybody's.
const (
	oldNameLabel    = "pod-group.scheduling.sigs.k8s.io/name"
	oldMinimumLabel = "pod-group.scheduling.sigs.k8s.io/min-available"
)

// doRefused does what the rest of the line says and wants the API server to refuse it with a text.
func (w *world) doRefused(ctx context.Context, l *line) error {
	if len(l.args) < 2 {
		return fmt.Errorf("refused what, and why?")
	}
	refused := *l
	refused.args = l.args[2:]
	step := map[string]func(*world, context.Context, *line) error{"group": (*world).doGroup,
		"edit": (*world).doEdit}[l.args[1]]
	if step == nil {
		return fmt.Errorf("only group and edit can be refused")
	}
	if err := step(w, ctx, &refused); err == nil || !strings.Contains(err.Error(), l.args[0]) {
		return fmt.Errorf("got error %q, want one that says %q", fmt.Sprint(err), l.args[0])
	}
	return nil
}

const (
	// creators is how many requests a crowd is created with at a time, many how many pods are one.
	creators = 8
	many     = 100
)

func (w *world) doGroup(ctx context.Context, l *line) error {
	namespace, name := w.locate(l.arg(0))
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	// Groups come in the order of their lines. Creation is told in seconds, and within one of them the UIDs decide.
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(w.nextGroup)):
	}
	made, err := w.createGroup(ctx, namespace, name, l)
	if err != nil {
		return err
	}
	w.nextGroup = made.GetCreationTimestamp().Add(time.Second)
	return nil
}

func (w *world) createGroup(ctx context.Context, namespace, name string, l *line) (*unstructured.Unstructured, error) {
	minMember, err := strconv.Atoi(l.option("min", "1"))
	if err != nil {
		return nil, err
	}
	spec := map[string]any{"minMember": int64(minMember)}
	if timeout, err := strconv.Atoi(l.option("timeout", "")); err == nil {
		spec["scheduleTimeoutSeconds"] = int64(timeout)
	}
	needs := map[string]any{}
	for resource, amount := range l.with("needs:") {
		needs[resource] = amount
	}
	if len(needs) > 0 {
		spec["minResources"] = needs
	}
	pg := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1",
		"kind": "PodGroup", "spec": spec}}
	pg.SetName(name)
	pg.SetAnnotations(l.with("annotation:"))
	w.expectMinimum(namespace+"/"+name, minMember)
	return w.dynamic.Resource(podGroups).Namespace(namespace).Create(ctx, pg, metav1.CreateOptions{})
}

func (w *world) expectMinimum(group string, minimum int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.minimum[group] = minimum
}

// expectLabelled is expectMinimum for a minimum by labels; the largest holds where there is no PodGroup.
func (w *world) expectLabelled(group string, minimum int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, exists := w.minimum[group]; !exists || (w.labelled[group] && known < minimum) {
		w.minimum[group], w.labelled[group] = minimum, true
	}
}

// doPods creates pods; sets of the same name grow.
func (w *world) doPods(ctx context.Context, l *line) error {
	ident := l.arg(0)
	namespace, group := w.locate(ident)
	n, err := l.int(1)
	if err != nil {
		return err
	}
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	create := func(int) error { return w.createPod(ctx, namespace, group, setOf(l.option("set", ident)), l) }
	if n >= many {
		return inParallel(n, create)
	}
	for i := range n {
		if err := create(i); err != nil {
			return err
		}
	}
	return nil
}

// doLater waits until what is created has a later creation time, which objects have in seconds.
func (w *world) doLater(ctx context.Context, _ *line) error {
	w.mu.Lock()
	youngest := w.youngest
	w.mu.Unlock()
	return w.eventually(ctx, 2*time.Second, func() error {
		if time.Now().Before(youngest.Add(time.Second)) {
			return fmt.Errorf("it is still %s", youngest)
		}
		return nil
	})
}

// doCrowd creates many groups with their pods, group by group or with turns one pod of each group after the other.
func (w *world) doCrowd(ctx context.Context, l *line) error {
	namespace, prefix := w.locate(l.arg(0))
	n, err := l.int(1)
	if err != nil {
		return err
	}
	members, err := strconv.Atoi(l.option("pods", ""))
	if err != nil {
		return err
	}
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	group := func(i int) string { return fmt.Sprintf("%s%d", prefix, i) }
	create := func(i int) error {
		_, err := w.createGroup(ctx, namespace, group(i), l)
		return err
	}
	pod := func(i int) error { return w.createPod(ctx, namespace, group(i), setOf(l.arg(0)), l) }
	if l.option("turns", "") == "" {
		return inParallel(n, func(i int) error {
			err := create(i)
			for range members {
				err = errors.Join(err, pod(i))
			}
			return err
		})
	}
	if err := inParallel(n, create); err != nil {
		return err
	}
	for range members {
		if err := inParallel(n, pod); err != nil {
			return err
		}
	}
	return nil
}

// inParallel does n things, a few at a time.
func inParallel(n int, do func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	slots := make(chan struct{}, creators)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = do(i)
			<-slots
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (w *world) createPod(ctx context.Context, namespace, group, set string, l *line) error {
	w.mu.Lock()
	index := w.made[set]
	name := fmt.Sprintf("%s-%d", set, index)
	w.made[set]++
	w.mu.Unlock()
	if fixed := l.option("name", ""); fixed != "" {
		name = fixed
	}
	template, err := w.template(ctx, namespace, group, set, index, l)
	if err != nil {
		return err
	}
	pod := &v1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.Namespace = name, namespace
	if owner := l.option("owner", ""); owner != "" {
		owned, err := w.owner(ctx, namespace, owner)
		if err != nil {
			return err
		}
		pod.OwnerReferences = []metav1.OwnerReference{owned}
	}
	if err := w.mountOwnVolumes(ctx, pod, l); err != nil {
		return err
	}
	made, err := w.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.created[made.UID] = w.cluster.now()
	w.youngest = made.CreationTimestamp.Time
	w.mu.Unlock()
	if l.option("nominated", "") == "" {
		return nil
	}
	// The scheduler may have written the status meanwhile.
	nominated := fmt.Appendf(nil, `{"status":{"nominatedNodeName":%q}}`, w.name+"-"+numbered(l.option("nominated", ""), index))
	_, err = w.client.CoreV1().Pods(namespace).Patch(ctx, made.Name, types.MergePatchType, nominated,
		metav1.PatchOptions{}, "status")
	return err
}

// owner returns a reference to the controller of pods: an object of another kind, or a ConfigMap by that name that is
// made when it is first spoken of.
func (w *world) owner(ctx context.Context, namespace, name string) (metav1.OwnerReference, error) {
	if resource, name, other := strings.Cut(name, "/"); other {
		return w.controllerRef(ctx, namespace, resource, name)
	}
	maps := w.client.CoreV1().ConfigMaps(namespace)
	made, err := maps.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		made, err = maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	}
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	return *metav1.NewControllerRef(made, v1.SchemeGroupVersion.WithKind("ConfigMap")), nil
}
