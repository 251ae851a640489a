package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/command"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/nodeagent"
	"berth.dev/berth/pkg/nodeagent/nvidiasmi"
	"berth.dev/berth/pkg/nodeagent/podresources"
)

// settings are what the flags say.
type settings struct {
	node       string
	kubeconfig string
	socket     string
	resources  []string
	nvidiaSMI  string
	timeout    time.Duration
	listen     string
	intervals  nodeagent.Intervals
}

// shortestInterval keeps a mistyped interval from keeping a node busy.
const shortestInterval = time.Second

func newCommand() *cobra.Command {
	var s settings
	logs := logsapi.NewLoggingConfiguration()
	cmd := &cobra.Command{
		Use:   "berth-node-agent",
		Short: "Tell the scheduler what only a node knows of its GPUs",
		Long: `berth-node-agent reads from the kubelet which pod holds which GPU, and from nvidia-smi which GPUs there are and how they
are connected. It writes four annotations on its own Node object, in one patch and only when something has changed:

  berth.dev/gpus-in-use     indices of the GPUs that pods hold; not on nodes of HAMi
  berth.dev/gpus-in-use-at  when that was read, rewritten every 5 minutes
  berth.dev/gpu-links       how each two GPUs are connected
  berth.dev/gpu-devices     index, UUID, model, memory and health of each GPU

While a source fails, what was read last stays for --stale-after, and then goes. On a machine without nvidia-smi nothing is
written. The annotations stay when the agent stops.

Exit status: 0 after it was stopped, 2 for a file or flag that cannot be used, 1 for any other error.`,
		Example: `  # In a pod, with the name of its node in the environment
  NODE_NAME=gpu-1 berth-node-agent

  # On a machine, with an administrator's kubeconfig and readable metrics
  berth-node-agent --node-name gpu-1 --kubeconfig ~/.kube/config --v=2
  curl -k -H "Authorization: Bearer $(kubectl create token ACCOUNT)" https://127.0.0.1:9410/metrics`,
		Version:       version.Get().String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(logs, nil); err != nil {
				return command.BadInput(fmt.Errorf("setting up logs: %w", err))
			}
			if err := s.check(); err != nil {
				return command.BadInput(err)
			}
			return s.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.node, "node-name", os.Getenv("NODE_NAME"),
		"the node this runs on; the environment variable NODE_NAME is its default")
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "how to reach the API server; empty: as a pod, by its service account")
	f.StringVar(&s.socket, "pod-resources-socket", podresources.DefaultSocket,
		"the kubelet's socket of the PodResources API")
	f.StringSliceVar(&s.resources, "resource", gpuview.NVIDIAResources(),
		"resources whose devices are GPUs or parts of GPUs; one that ends in * stands for all that begin alike")
	f.StringVar(&s.nvidiaSMI, "nvidia-smi", "nvidia-smi", "path of nvidia-smi, or its name in the PATH")
	f.DurationVar(&s.timeout, "nvidia-smi-timeout", 20*time.Second,
		"how long one command of nvidia-smi may take; a reading is up to 6 commands")
	f.StringVar(&s.listen, "listen", "127.0.0.1:9410",
		"where to serve /healthz, and /metrics to those who may get it, over HTTPS with a certificate made at the start; "+
			"port 0 takes a free one, which the log names; empty: nowhere")
	f.DurationVar(&s.intervals.Kubelet, "kubelet-interval", 5*time.Second, "time between two readings of the kubelet")
	f.DurationVar(&s.intervals.Machine, "gpu-interval", time.Minute, "time between two readings of nvidia-smi")
	f.DurationVar(&s.intervals.Resync, "resync", 10*time.Minute, "after what time the node's annotations are read again")
	f.DurationVar(&s.intervals.Stale, "stale-after", 5*time.Minute,
		"for how long what was read last stays published while its source fails")
	logsapi.AddFlags(logs, f)
	command.EndInOrder(cmd)
	return cmd
}

// check refuses flags that cannot be used.
func (s *settings) check() error {
	if s.node == "" {
		return errors.New("--node-name is not given, and the environment has no NODE_NAME: want the name of this node")
	}
	if len(s.resources) == 0 {
		return errors.New("--resource is empty: want at least one name such as nvidia.com/gpu")
	}
	if _, _, err := net.SplitHostPort(s.listen); err != nil && s.listen != "" {
		return fmt.Errorf("--listen is %q: want an address such as 127.0.0.1:9410: %w", s.listen, err)
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"--kubelet-interval", s.intervals.Kubelet},
		{"--gpu-interval", s.intervals.Machine},
		{"--resync", s.intervals.Resync},
		{"--stale-after", s.intervals.Stale},
		{"--nvidia-smi-timeout", s.timeout},
	} {
		if d.value < shortestInterval {
			return fmt.Errorf("%s is %s: want at least %s", d.flag, d.value, shortestInterval)
		}
	}
	longest := max(gap(s.intervals.Kubelet, podresources.Timeout),
		gap(s.intervals.Machine, nodeagent.SurveyCommands*s.timeout))
	if s.intervals.Stale < longest {
		return fmt.Errorf("--stale-after is %s: want at least %s, which may lie between two readings if one fails",
			s.intervals.Stale, longest)
	}
	return nil
}

// gap is the longest time between the ends of two readings that succeed with one between them that fails. The next
// begins at the interval after the one before, or at its end if that is later.
func gap(interval, reading time.Duration) time.Duration {
	return interval + max(interval, reading) + reading
}

// run is the agent until the context ends.
func (s *settings) run(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	// Without a path this is the configuration of a pod.
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return command.BadInput(fmt.Errorf("reading how to reach the API server: %w", err))
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("preparing the connection to the API server: %w", err)
	}
	kubelet, err := podresources.New(s.socket, s.resources)
	if err != nil {
		return err
	}
	defer func() {
		if err := kubelet.Close(); err != nil {
			logger.Error(err, "Closing the connection to the kubelet failed")
		}
	}()
	machine, node := nvidiasmi.New(s.nvidiaSMI, s.timeout), &nodeagent.APINode{Client: client, Name: s.node}
	agent := nodeagent.New(kubelet, machine, node, s.intervals)
	address := ""
	if s.listen != "" {
		var stop func()
		handler, err := agent.Handler(config)
		if err != nil {
			return err
		}
		if address, stop, err = serve(ctx, s.listen, s.node, handler); err != nil {
			return command.BadInput(err)
		}
		defer stop()
	}
	logger.Info("Starting", "version", version.Get().String(), "node", s.node, "socket", s.socket,
		"resources", s.resources, "listening", address)
	agent.Run(ctx)
	return nil
}

// serve answers HTTPS requests in the background until stop is called. It returns the address, which names the port
// where the one given leaves it open. The certificate is of the agent's own making, as that of the scheduler is: it
// keeps tokens from those who only listen.
func serve(ctx context.Context, listen, node string, handler http.Handler) (address string, stop func(), err error) {
	own, key, err := cert.GenerateSelfSignedCertKey(node, nil, nil)
	if err != nil {
		return "", nil, fmt.Errorf("making the certificate of the server: %w", err)
	}
	pair, err := tls.X509KeyPair(own, key)
	if err != nil {
		return "", nil, fmt.Errorf("using the certificate of the server: %w", err)
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return "", nil, fmt.Errorf("listening for requests to /healthz and /metrics: %w", err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}},
	}
	logger := klog.FromContext(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			logger.Error(err, "Serving /healthz and /metrics failed")
		}
	}()
	return listener.Addr().String(), func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := server.Shutdown(stopping); err != nil {
			logger.Error(err, "Closing connections failed")
		}
		<-done
	}, nil
}
