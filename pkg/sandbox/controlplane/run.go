// Package controlplane runs the processes of a sandbox: etcd, kube-apiserver, the controller manager, kwok and the
// scheduler.
//
// Only the berth executable links it, because these components are about 100 MB of code. Package sandbox starts it in a
// process of its own.
package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/pkg/screen/command"
)

// startTimeout bounds each step of the start. A loaded machine takes ten times the usual 3 s.
const startTimeout = 90 * time.Second

// Names of the components, as in state.json and in the log files.
const (
	componentControlPlane = "control-plane"
	componentEtcd         = "etcd"
	componentAPIServer    = "kube-apiserver"
	componentScheduler    = "scheduler"
)

// emulationFlag is the flag of every component that makes it behave like an older minor version.
const emulationFlag = "--emulated-version="

// controlPlane starts the components of a sandbox, restarts separate processes that end, and stops everything at its
// end.
type controlPlane struct {
	opts   sandbox.Options
	layout sandbox.Layout
	ports  ports
	// reserved are the ports until every component has ended.
	reserved []*sandbox.Port
	// emulation is the minor version, such as 1.34, that the components behave like; empty for their own.
	emulation string
	// admin and client have all rights.
	admin  *rest.Config
	client kubernetes.Interface
	report *json.Encoder
	// reportErr is set if reporting fails, because the process that started this one has ended.
	reportErr error
	// fatal receives the error of a component that runs in this process, which ends the sandbox.
	fatal chan error
	// processes are the components with separate processes, in the order in which they were started.
	processes []*process

	mu    sync.Mutex
	state sandbox.State
}

// Run starts a sandbox, reports progress to the process that started this one, and runs until ctx ends.
func Run(ctx context.Context, opts sandbox.Options) error {
	restrictFileModes()
	logs.InitLogs()
	defer logs.FlushLogs()
	// The API server and the controller manager both set up logging, which would fail the second time.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged

	reports := os.NewFile(sandbox.ReportFD, "report")
	cp := &controlPlane{
		opts: opts, layout: sandbox.Layout(opts.Dir), report: json.NewEncoder(reports), fatal: make(chan error, 4),
		state: sandbox.State{Options: opts, PIDs: map[string]int{componentControlPlane: os.Getpid()}},
	}
	defer func() {
		cp.stopProcesses()
		if err := cp.freePorts(); err != nil {
			klog.FromContext(ctx).Error(err, "Freeing the ports of the sandbox failed")
		}
	}()
	err := cp.start(ctx)
	last := sandbox.Report{Ready: true}
	if err != nil {
		last = sandbox.Report{Error: command.OneLine(err)}
	}
	if cp.report.Encode(last) != nil {
		// The process that would remove the files has ended.
		cp.stopProcesses()
		return errors.Join(err, cp.layout.Remove())
	}
	if err != nil {
		return err
	}
	if err := reports.Close(); err != nil {
		return fmt.Errorf("closing the report: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-cp.fatal:
		klog.FromContext(ctx).Error(err, "The sandbox stops")
		return err
	}
}

// restrictFileModes makes the files of this process and its children inaccessible for other users. etcd sets wider
// modes for some files.
func restrictFileModes() { syscall.Umask(0o077) }

// RunComponent runs one component of a split control plane until ctx ends.
func RunComponent(ctx context.Context, opts sandbox.Options, component string, etcdPort, apiPort int) error {
	restrictFileModes()
	logs.InitLogs()
	defer logs.FlushLogs()
	keys := sandbox.Layout(opts.Dir).Keys()
	switch component {
	case componentEtcd:
		return runEtcd(ctx, opts, keys, etcdPort, func() {})
	case componentAPIServer:
		return runAPIServer(ctx, opts, keys, ports{etcd: etcdPort, api: apiPort})
	default:
		return fmt.Errorf("component %q: must be %s or %s", component, componentEtcd, componentAPIServer)
	}
}

// start runs the steps of the start.
func (cp *controlPlane) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		cp.prepare, cp.startAPI, cp.connect, cp.install, cp.startControllers, cp.startNodes, cp.startScheduler,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if cp.reportErr != nil {
			return cp.reportErr
		}
	}
	return cp.writeState()
}

// prepare determines the emulated version, and makes keys and ports.
func (cp *controlPlane) prepare(ctx context.Context) (err error) {
	if cp.emulation, err = sandbox.EmulationFor(ctx, cp.opts.APIServer); err != nil {
		return err
	}
	cp.say("making keys and certificates")
	if err := cp.layout.Keys().Make(); err != nil {
		return err
	}
	return cp.reservePorts()
}

// connect makes the clients of the API server, and returns when it serves.
func (cp *controlPlane) connect(ctx context.Context) (err error) {
	if cp.admin, err = clientcmd.BuildConfigFromFlags("", cp.layout.Kubeconfig()); err != nil {
		return fmt.Errorf("loading the kubeconfig: %w", err)
	}
	cp.admin.QPS = -1
	if cp.client, err = kubernetes.NewForConfig(cp.admin); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	cp.say("waiting for the API server")
	log := componentControlPlane
	if cp.opts.Split {
		log = componentAPIServer
	}
	return cp.waitFor(ctx, "the API server", log, nil, func(ctx context.Context) (bool, error) {
		return serves(ctx, cp.client), nil
	})
}

// startControllers starts the controller manager and kwok, or with NoKubelet only the controllers that were named.
func (cp *controlPlane) startControllers(ctx context.Context) error {
	if cp.opts.NoKubelet && len(cp.opts.Controllers) == 0 {
		return nil
	}
	cp.say("starting the controllers")
	go func() { cp.fatal <- runControllerManager(ctx, cp.opts, cp.layout.Keys(), cp.emulation) }()
	if cp.opts.NoKubelet {
		return nil
	}
	if err := startKubelets(ctx, cp.layout.Kubeconfig()); err != nil {
		return err
	}
	// The API server refuses pods until the controller manager has created this ServiceAccount.
	return cp.waitFor(ctx, "the controller manager", componentControlPlane, nil, func(ctx context.Context) (bool, error) {
		_, err := cp.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
}

// startAPI starts etcd and the API server, in this process or in two others, and writes the kubeconfig.
func (cp *controlPlane) startAPI(ctx context.Context) error {
	cp.state.Server, cp.state.Etcd = "https://"+loopbackAddress(cp.ports.api), "https://"+loopbackAddress(cp.ports.etcd)
	if err := cp.layout.Keys().WriteKubeconfig(cp.layout.Kubeconfig(), cp.state.Server, sandbox.KeyAdmin); err != nil {
		return err
	}
	cp.say("starting etcd and the API server")
	if cp.opts.Split {
		encoded, err := json.Marshal(cp.opts)
		if err != nil {
			return fmt.Errorf("encoding the sandbox's options: %w", err)
		}
		cp.startProcess(ctx, cp.child(componentEtcd, string(encoded)))
		server := cp.child(componentAPIServer, string(encoded))
		if cp.opts.APIServer != "" {
			server.path, server.args = cp.opts.APIServer, apiServerArgs(cp.opts, cp.layout.Keys(), cp.ports)
		}
		cp.startProcess(ctx, server)
		return nil
	}
	// These two outlive ctx: the scheduler releases its lease after ctx has ended.
	life := context.WithoutCancel(ctx)
	serving := make(chan struct{})
	go func() { cp.fatal <- runEtcd(life, cp.opts, cp.layout.Keys(), cp.ports.etcd, func() { close(serving) }) }()
	select {
	case <-serving:
	case err := <-cp.fatal:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	go func() { cp.fatal <- runAPIServer(life, cp.opts, cp.layout.Keys(), cp.ports) }()
	return nil
}

func (cp *controlPlane) startNodes(ctx context.Context) error {
	if cp.opts.NodesFile == "" {
		return nil
	}
	nodes, err := sandbox.LoadNodes(cp.layout.Nodes())
	if err != nil {
		return err
	}
	if nodes, err = sandbox.ScaleNodes(nodes, cp.opts.Scale); err != nil {
		return err
	}
	cp.say("creating " + plural.Of(len(nodes), "node"))
	return createNodes(ctx, cp.client, nodes)
}

func (cp *controlPlane) startScheduler(ctx context.Context) error {
	if cp.opts.NoScheduler {
		return nil
	}
	cp.say("starting the scheduler")
	keys, path := cp.layout.Keys(), cp.layout.SchedulerKubeconfig()
	if err := keys.WriteKubeconfig(path, cp.state.Server, sandbox.KeyScheduler); err != nil {
		return err
	}
	data, err := readSchedulerConfig(cp.opts)
	if err != nil {
		return err
	}
	content, lease, err := schedulerConfig(data, cp.opts)
	if err != nil {
		return err
	}
	if err := os.WriteFile(cp.layout.SchedulerConfig(), content, 0o600); err != nil {
		return fmt.Errorf("writing the scheduler configuration: %w", err)
	}
	if err := lease.grant(ctx, cp.client); err != nil {
		return err
	}
	cp.state.Scheduler = "https://" + loopbackAddress(cp.ports.scheduler)
	endpoint := rest.CopyConfig(cp.admin)
	endpoint.Host = cp.state.Scheduler
	served, err := kubernetes.NewForConfig(endpoint)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	since := time.Now().Add(-time.Second)
	scheduler := &process{name: componentScheduler, path: cp.opts.SchedulerBinary(), controlPlane: cp, lease: lease,
		admin: cp.client, args: schedulerArgs(cp.opts, cp.layout.Keys(), cp.ports.scheduler, cp.emulation)}
	cp.startProcess(ctx, scheduler)
	leads := func(ctx context.Context) (bool, error) {
		if !serves(ctx, served) {
			return false, nil
		}
		return lease.acquiredSince(ctx, cp.client, since)
	}
	return cp.waitFor(ctx, "the scheduler to lead", componentScheduler, scheduler, leads)
}

func (cp *controlPlane) startProcess(ctx context.Context, p *process) {
	p.start(ctx)
	cp.processes = append(cp.processes, p)
}

// started records the process ID of a component.
func (cp *controlPlane) started(ctx context.Context, name string, pid int) {
	cp.mu.Lock()
	cp.state.PIDs[name] = pid
	cp.mu.Unlock()
	if err := cp.writeState(); err != nil {
		klog.FromContext(ctx).Error(err, "Recording the process ID of a component failed", "component", name, "pid", pid)
	}
}

// stopProcesses stops them in reverse order: a client that outlives its server waits for responses that never come.
func (cp *controlPlane) stopProcesses() {
	for _, p := range slices.Backward(cp.processes) {
		p.stop()
	}
	cp.processes = nil
}

// say reports a step to the process that started this one.
func (cp *controlPlane) say(what string) {
	if err := cp.report.Encode(sandbox.Report{Step: what}); err != nil {
		cp.reportErr = fmt.Errorf("reporting progress: %w", err)
	}
}

func (cp *controlPlane) writeState() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	return cp.layout.WriteState(cp.state)
}

// waitFor waits until ready returns true, a component of this process fails, or p, if given, has stopped once. Log is
// the component whose log is quoted after a timeout.
func (cp *controlPlane) waitFor(ctx context.Context, what, log string, p *process,
	ready func(context.Context) (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true,
		func(ctx context.Context) (bool, error) {
			select {
			case err := <-cp.fatal:
				return false, err
			default:
			}
			if p != nil && p.failure() != nil {
				return false, p.failure()
			}
			return ready(ctx)
		})
	if wait.Interrupted(err) && ctx.Err() == nil {
		line := sandbox.LastLogLine(filepath.Join(cp.layout.Logs(), log+".log"))
		return fmt.Errorf("waiting for %s: not within %v; the log of %s ends with: %s", what, startTimeout, log, line)
	}
	return err
}

// serves reports whether the server of a client is ready.
func serves(ctx context.Context, client kubernetes.Interface) bool {
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil
}

// child is a component of a split control plane.
func (cp *controlPlane) child(name, options string) *process {
	return &process{name: name, path: cp.opts.Binary, controlPlane: cp, args: []string{sandbox.ControlPlaneCommand,
		options, "--component=" + name, fmt.Sprintf("--etcd-port=%d", cp.ports.etcd),
		fmt.Sprintf("--api-port=%d", cp.ports.api)}}
}
