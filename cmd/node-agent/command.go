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

	"berth.dev/berth/pkg/nodeagent"
	"berth.dev/berth/pkg/screen/command"
)

// settings are the values of the flags.
type settings struct {
	node       string
	kubeconfig string
	nvidiaSMI  string
	timeout    time.Duration
	interval   time.Duration
	listen     string
}

func newCommand() *cobra.Command {
	var s settings
	logs := logsapi.NewLoggingConfiguration()
	cmd := &cobra.Command{
		Use:   "berth-node-agent",
		Short: "Tell the scheduler how the GPUs of a node are connected",
		Long: `berth-node-agent reads from nvidia-smi how the GPUs of its node are connected, and writes that into the annotation
berth.dev/gpu-links of the Node object, only when it has changed. While nvidia-smi fails, and when the agent stops, the
annotation stays.

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
	f.StringVar(&s.nvidiaSMI, "nvidia-smi", "nvidia-smi", "path of nvidia-smi, or its name in the PATH")
	f.DurationVar(&s.timeout, "nvidia-smi-timeout", 20*time.Second,
		"how long nvidia-smi may take")
	f.StringVar(&s.listen, "listen", "127.0.0.1:9410",
		"where to serve /healthz, and /metrics to those who may get it, over HTTPS with a certificate made at the start; "+
			"port 0 takes a free one, which the log names; empty: nowhere")
	f.DurationVar(&s.interval, "interval", 10*time.Minute, "time between two readings of nvidia-smi and of the node")
	logsapi.AddFlags(logs, f)
	command.EndInOrder(cmd)
	return cmd
}

// check refuses flags that cannot be used.
func (s *settings) check() error {
	if s.node == "" {
		return errors.New("--node-name is not given, and the environment has no NODE_NAME: want the name of this node")
	}
	if _, _, err := net.SplitHostPort(s.listen); err != nil && s.listen != "" {
		return fmt.Errorf("--listen is %q: want an address such as 127.0.0.1:9410: %w", s.listen, err)
	}
	// A mistyped interval must not keep a node busy.
	if s.interval < time.Second || s.timeout < time.Second {
		return fmt.Errorf("--interval is %s and --nvidia-smi-timeout %s: want at least 1s", s.interval, s.timeout)
	}
	return nil
}

// run is the agent until the context ends.
func (s *settings) run(ctx context.Context) error {
	// Without a path this is the configuration of a pod.
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return command.BadInput(fmt.Errorf("reading how to reach the API server: %w", err))
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("preparing the connection to the API server: %w", err)
	}
	agent := nodeagent.New(client, s.node, s.nvidiaSMI, s.timeout, s.interval)
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
	klog.FromContext(ctx).Info("Starting", "version", version.Get().String(), "node", s.node, "listening", address)
	agent.Run(ctx)
	return nil
}

// serve answers HTTPS requests in the background until stop is called. It returns the address, which names the port if
// the one given is 0. The certificate is self-signed, as that of the scheduler: it protects tokens from passive
// listeners only.
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
