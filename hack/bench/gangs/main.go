// Command gangs measures what gangs cost: pods per second, CPU time of the scheduler per pod, and API requests per pod,
// for the same pods with and without gangs, in the same run, on the local control plane.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/sandbox"
)

var (
	nodes = flag.Int("nodes", 200, "number of nodes, of 8 GPUs each")
	gangs = flag.Int("gangs", 100, "number of gangs")
	size  = flag.Int("size", 8, "members of a gang, of one GPU each")
)

// config is a KubeSchedulerConfiguration; the profile's name and plugins are filled in.
const config = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 5000, burst: 5000}
profiles:
  - schedulerName: bench-scheduler
    %s
    pluginConfig:
      - {name: PodTopologySpread, args: {defaultingType: List}}
`

const coscheduling = `plugins:
      queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
      postFilter: {enabled: [{name: Coscheduling}]}
      multiPoint: {enabled: [{name: Coscheduling}]}`

// run is one way of scheduling the same pods.
type run struct {
	name    string
	plugins string
	gang    bool
	gates   string
}

var runs = []run{
	{"no gangs, stock plugins", "", false, ""},
	{"gangs", coscheduling, true, ""},
	{"gangs, no nominated node", coscheduling, true, "NominatedNodeNameForExpectation=false"},
}

func main() {
	flag.Parse()
	if err := bench(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func bench() error {
	dir, err := os.MkdirTemp("", "berth-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	nodesFile := filepath.Join(dir, "nodes.yaml")
	shape := fmt.Sprintf("shapes:\n- name: n\n  count: %d\n  allocatable: {cpu: \"64\", memory: 256Gi, pods: \"110\", nvidia.com/gpu: \"8\"}\n", *nodes)
	if err := os.WriteFile(nodesFile, []byte(shape), 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	box, err := sandbox.Start(ctx, sandbox.Options{Dir: filepath.Join(dir, "sandbox"), NodesFile: nodesFile, NoScheduler: true, NoKubelet: true, StopWithParent: true}, nil)
	if err != nil {
		return err
	}
	defer func() { _ = box.Stop() }()
	out := os.Stdout
	_, _ = fmt.Fprintf(out, "%d nodes, %d × %d pods\n%-28s %10s %12s %14s\n", *nodes, *gangs, *size, "", "pods/s", "CPU ms/pod", "requests/pod")
	for i := range runs {
		r, err := measure(ctx, box, dir, &runs[i], i)
		if err != nil {
			return fmt.Errorf("%s: %w", runs[i].name, err)
		}
		_, _ = fmt.Fprintf(out, "%-28s %10.0f %12.2f %14.2f\n", runs[i].name, r.podsPerSecond, r.cpuMillisPerPod, r.requestsPerPod)
	}
	return nil
}

type result struct{ podsPerSecond, cpuMillisPerPod, requestsPerPod float64 }

func measure(ctx context.Context, box *sandbox.Sandbox, dir string, r *run, index int) (result, error) {
	rest, err := box.RESTConfig()
	if err != nil {
		return result{}, err
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return result{}, err
	}
	dyn, err := dynamic.NewForConfig(rest)
	if err != nil {
		return result{}, err
	}
	scheduler, err := start(box, dir, r, index)
	if err != nil {
		return result{}, err
	}
	defer func() {
		_ = scheduler.Process.Kill()
		_ = scheduler.Wait()
	}()
	namespace := fmt.Sprintf("bench-%d", index)
	if _, err := client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return result{}, err
	}
	// One pod through the whole way: informers are filled and the scheduler schedules.
	if err := create(ctx, client, namespace, "warm", ""); err != nil {
		return result{}, err
	}
	if err := bound(ctx, client, namespace, 1); err != nil {
		return result{}, err
	}
	requestsBefore, err := requests(ctx, client)
	if err != nil {
		return result{}, err
	}
	cpuBefore, err := cpu(scheduler.Process.Pid)
	if err != nil {
		return result{}, err
	}
	began := time.Now()
	if err := createAll(ctx, client, dyn, namespace, r.gang); err != nil {
		return result{}, err
	}
	total := *gangs * *size
	if err := bound(ctx, client, namespace, total+1); err != nil {
		return result{}, err
	}
	took := time.Since(began)
	settle := time.NewTimer(3 * time.Second)
	<-settle.C
	cpuAfter, err := cpu(scheduler.Process.Pid)
	if err != nil {
		return result{}, err
	}
	requestsAfter, err := requests(ctx, client)
	if err != nil {
		return result{}, err
	}
	now := int64(0)
	if err := client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}); err != nil {
		return result{}, err
	}
	return result{
		podsPerSecond:   float64(total) / took.Seconds(),
		cpuMillisPerPod: float64((cpuAfter - cpuBefore).Microseconds()) / 1000 / float64(total),
		requestsPerPod:  (requestsAfter - requestsBefore) / float64(total),
	}, nil
}

func start(box *sandbox.Sandbox, dir string, r *run, index int) (*exec.Cmd, error) {
	path := filepath.Join(dir, fmt.Sprintf("config-%d.yaml", index))
	if err := os.WriteFile(path, fmt.Appendf(nil, config, box.Kubeconfig(), r.plugins), 0o600); err != nil {
		return nil, err
	}
	binary, err := sandbox.FindBinary()
	if err != nil {
		return nil, err
	}
	args := []string{"--config=" + path, "--secure-port=0"}
	if r.gates != "" {
		args = append(args, "--feature-gates="+r.gates)
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(binary), "berth-scheduler"), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(dir, fmt.Sprintf("scheduler-%d.log", index)))
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, cmd.Start()
}

func create(ctx context.Context, client kubernetes.Interface, namespace, name, group string) error {
	one := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse("1")}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1.PodSpec{SchedulerName: "bench-scheduler", AutomountServiceAccountToken: ptr.To(false),
			Containers: []v1.Container{{Name: "c", Image: "c", Resources: v1.ResourceRequirements{Requests: one, Limits: v1.ResourceList{"nvidia.com/gpu": one["nvidia.com/gpu"]}}}}},
	}
	if group != "" {
		pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": group}
	}
	_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// createAll creates the pods from eight goroutines while the scheduler runs.
func createAll(ctx context.Context, client kubernetes.Interface, dyn dynamic.Interface, namespace string, gang bool) error {
	groups := schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	work := make(chan int)
	errs := make(chan error, 8)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for g := range work {
				name := fmt.Sprintf("g%d", g)
				group := ""
				if gang {
					group = name
					pg := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
						"metadata": map[string]any{"name": name}, "spec": map[string]any{"minMember": int64(*size)}}}
					if _, err := dyn.Resource(groups).Namespace(namespace).Create(ctx, pg, metav1.CreateOptions{}); err != nil {
						errs <- err
						return
					}
				}
				for m := range *size {
					if err := create(ctx, client, namespace, fmt.Sprintf("%s-%d", name, m), group); err != nil {
						errs <- err
						return
					}
				}
			}
		})
	}
	for g := range *gangs {
		select {
		case work <- g:
		case err := <-errs:
			close(work)
			return err
		}
	}
	close(work)
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// bound waits until n pods of the namespace have a node.
func bound(ctx context.Context, client kubernetes.Interface, namespace string, n int) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=", ResourceVersion: "0"})
		if err != nil {
			return err
		}
		all, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!=", ResourceVersion: "0", Limit: 0})
		if err != nil {
			return err
		}
		if len(list.Items) == 0 && len(all.Items) >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// requests reads how many writes the API server has served for pods, events and PodGroups.
func requests(ctx context.Context, client kubernetes.Interface) (float64, error) {
	text, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for _, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "apiserver_request_total{") {
			continue
		}
		written := strings.Contains(line, `verb="POST"`) || strings.Contains(line, `verb="PATCH"`) || strings.Contains(line, `verb="PUT"`)
		counted := strings.Contains(line, `resource="pods"`) || strings.Contains(line, `resource="events"`) || strings.Contains(line, `resource="podgroups"`)
		if written && counted {
			value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
			if err != nil {
				return 0, err
			}
			total += value
		}
	}
	return total, nil
}

// cpu reads the CPU time that the process has used.
func cpu(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	ticks := int64(0)
	for _, i := range []int{11, 12} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	const ticksPerSecond = 100
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}
