package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/sandbox"
)

// The run: small jobs have all nodes, more of them come, and a gang waits for half of the nodes.
const (
	gangNodes, gangMembers = 8, 4
	gangName               = "gang"
	nodesOfTheRun          = "shapes: [{name: node, count: 8, labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}, " +
		"allocatable: {cpu: 96, memory: 1Ti, nvidia.com/gpu: 8}}]"
	// lastsKey is the annotation that says how long a pod of the sandbox runs.
	lastsKey = "pod-complete.stage.kwok.x-k8s.io/delay"
	// runWithin bounds the run, which takes 40 s.
	runWithin = 5 * time.Minute
)

// lasts is how long the first job on each node runs, in seconds, and how long those that come later do.
var lasts, lastsLater = [gangNodes]int{18, 22, 26, 31, 6, 10, 24, 28}, 60

// podRun is what was seen of a pod, in seconds since the gang was created; negative is not seen.
type podRun struct {
	Name         string
	Node         string
	Bound, Ended float64
}

func (p *podRun) member() bool {
	return strings.HasPrefix(p.Name, gangName+"-")
}

// note is what the scheduler said in a condition of the PodGroup or of a pod, or in an event.
type note struct {
	At       float64
	Of, Text string
}

// recording is what was seen of a run.
type recording struct {
	mu    sync.Mutex
	begin time.Time
	pods  map[string]*podRun
	notes []note
}

func (r *recording) since() float64 { return time.Since(r.begin).Seconds() }

func (r *recording) pod(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[pod.Name]
	if p == nil {
		p = &podRun{Name: pod.Name, Bound: -1, Ended: -1}
		r.pods[pod.Name] = p
	}
	if p.Node == "" && pod.Spec.NodeName != "" {
		p.Node, p.Bound = pod.Spec.NodeName, r.since()
	}
	if p.Ended < 0 && pod.Status.Phase == corev1.PodSucceeded {
		p.Ended = r.since()
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Message != "" {
			r.note(pod.Name, c.Message)
		}
	}
}

// podGroup notes the conditions, each sentence once.
func (r *recording) podGroup(object *unstructured.Unstructured) {
	var group schedulingv1alpha1.PodGroup
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &group); err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range group.Status.Conditions {
		r.note(group.Name, c.Message)
	}
}

func (r *recording) event(event *corev1.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(event.InvolvedObject.Name, event.Message)
}

func (r *recording) note(of, text string) {
	if !slices.ContainsFunc(r.notes, func(n note) bool { return n.Of == of && n.Text == text }) {
		r.notes = append(r.notes, note{r.since(), of, text})
	}
}

// bound counts the members that have a node, or the other pods.
func (r *recording) bound(members bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, p := range r.pods {
		if p.member() == members && p.Node != "" {
			n++
		}
	}
	return n
}

// gangPicture runs a gang on a sandbox and draws what became of it.
func gangPicture(ctx context.Context, scratch string) (_ map[string][]byte, err error) {
	nodes := filepath.Join(scratch, "gang-nodes.yaml")
	if err := os.WriteFile(nodes, []byte(nodesOfTheRun), 0o600); err != nil {
		return nil, fmt.Errorf("writing the nodes: %w", err)
	}
	options := sandbox.Options{Dir: filepath.Join(scratch, "gang"), NodesFile: nodes, StopWithParent: true}
	sb, err := sandbox.Start(ctx, options, nil)
	if err != nil {
		return nil, fmt.Errorf("bringing up the sandbox: %w", err)
	}
	defer func() { err = errors.Join(err, sb.Stop()) }()
	config, err := sb.RESTConfig()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, runWithin)
	defer cancel()
	r := &recording{begin: time.Now(), pods: map[string]*podRun{}}
	if err := r.follow(ctx, config); err != nil {
		return nil, err
	}
	if err := r.play(ctx, config); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return map[string][]byte{"gang.svg": []byte(drawGang(r))}, nil
}

// follow watches pods, PodGroups and events until ctx ends.
func (r *recording) follow(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	groups, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client of PodGroups: %w", err)
	}
	typed := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(corev1.NamespaceDefault))
	custom := dynamicinformer.NewFilteredDynamicSharedInformerFactory(groups, 0, corev1.NamespaceDefault, nil)
	podGroups := schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	for informer, note := range map[cache.SharedIndexInformer]func(any){
		typed.Core().V1().Pods().Informer():      func(o any) { r.pod(o.(*corev1.Pod)) },
		typed.Core().V1().Events().Informer():    func(o any) { r.event(o.(*corev1.Event)) },
		custom.ForResource(podGroups).Informer(): func(o any) { r.podGroup(o.(*unstructured.Unstructured)) },
	} {
		handler := cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, o any) { note(o) }}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	typed.Start(ctx.Done())
	custom.Start(ctx.Done())
	typed.WaitForCacheSync(ctx.Done())
	custom.WaitForCacheSync(ctx.Done())
	return nil
}

// play creates the jobs and the gang, and returns some seconds after the gang has started.
func (r *recording) play(ctx context.Context, config *rest.Config) error {
	for i, seconds := range lasts {
		job := smallJob(fmt.Sprintf("job-%d", i), seconds)
		node := map[string]any{corev1.LabelHostname: fmt.Sprintf("node-%d", i)}
		if err := unstructured.SetNestedMap(job.Object, node, "spec", "nodeSelector"); err != nil {
			return fmt.Errorf("choosing a node: %w", err)
		}
		if err := create(ctx, config, job); err != nil {
			return err
		}
	}
	if err := await(ctx, func() bool { return r.bound(false) == gangNodes }); err != nil {
		return fmt.Errorf("waiting for the jobs: %w", err)
	}
	r.mu.Lock()
	shift := time.Since(r.begin).Seconds()
	r.begin = time.Now()
	for _, p := range r.pods {
		p.Bound -= shift
	}
	r.notes = nil
	r.mu.Unlock()
	if err := create(ctx, config, gangObjects()...); err != nil {
		return err
	}
	for i := range gangNodes {
		if err := create(ctx, config, smallJob(fmt.Sprintf("later-%d", i), lastsLater)); err != nil {
			return err
		}
	}
	if err := await(ctx, func() bool { return r.bound(true) == gangMembers }); err != nil {
		return fmt.Errorf("waiting for the gang: %w", err)
	}
	started := r.since()
	return await(ctx, func() bool { return r.since() > started+3 })
}

func await(ctx context.Context, done func() bool) error {
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		return done(), nil
	})
}

func create(ctx context.Context, config *rest.Config, objects ...*unstructured.Unstructured) error {
	_, err := sandbox.CreateObjects(ctx, config, corev1.NamespaceDefault, objects...)
	return err
}

// smallJob takes a node for some seconds.
func smallJob(name string, seconds int) *unstructured.Unstructured {
	pod := podOfANode(name)
	pod.SetAnnotations(map[string]string{lastsKey: fmt.Sprintf("%ds", seconds)})
	return pod
}

func gangObjects() []*unstructured.Unstructured {
	group := object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"name": gangName}, "spec": map[string]any{"minMember": gangMembers}})
	objects := []*unstructured.Unstructured{group}
	for i := range gangMembers {
		pod := podOfANode(fmt.Sprintf("%s-%d", gangName, i))
		pod.SetLabels(map[string]string{"scheduling.x-k8s.io/pod-group": gangName})
		objects = append(objects, pod)
	}
	return objects
}

// podOfANode asks for all GPUs of a node.
func podOfANode(name string) *unstructured.Unstructured {
	return object(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"schedulerName": "gang-scheduler", "restartPolicy": "Never", "containers": []any{map[string]any{
				"name": "main", "image": "none", "resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "8"}},
			}},
		},
	})
}

// object takes numbers as JSON does.
func object(content map[string]any) *unstructured.Unstructured {
	data, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		panic(err)
	}
	o.SetCreationTimestamp(metav1.Time{})
	return o
}
