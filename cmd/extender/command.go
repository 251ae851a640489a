package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	componentconfig "k8s.io/component-base/config"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"berth.dev/berth/pkg/extender"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/screen/command"
)

// settings are the values of the flags.
type settings struct {
	config  string
	profile string
	serving extender.Serving
}

// answerWithin is how long an answer may take.
const answerWithin = 30 * time.Second

func newCommand() *cobra.Command {
	s := settings{serving: extender.Serving{Within: answerWithin}}
	logs := logsapi.NewLoggingConfiguration()
	globals := options.NewOptions().ComponentGlobalsRegistry
	cmd := &cobra.Command{
		Use:   "berth-extender",
		Short: "Serve GPUAware and CostOptimized to a scheduler that cannot be replaced",
		Long: `berth-extender answers kube-scheduler over HTTP (KubeSchedulerConfiguration, extenders): filter says which nodes can
serve a pod's GPUs, prioritize which of them waste the least GPU and cost the least. It decides as the plugins GPUAware and
CostOptimized do, with the args of a profile of --config. The profile's other plugins are ignored. The scheduler has to send
names of nodes (nodeCacheCapable: true).

What an extender cannot do: gangs, batches of identical pods, waking a pod when its place becomes free, and choosing pods to
evict. Shares of a GPU and all GPUs of shared nodes need devices that are assigned when the pod is bound: such nodes are
refused. Every replica answers.

Exit status: 0 after it was stopped, 2 for a file or flag that cannot be used, 1 for any other error.`,
		Example: `  # On the scheduler's machine, over loopback
  berth-extender --config extender-config.yaml
  curl http://127.0.0.1:8888/readyz

  # In a cluster, for a scheduler with a certificate of that authority
  berth-extender --config extender-config.yaml --listen :8888 --tls-cert-file tls.crt \
    --tls-private-key-file tls.key --client-ca-file ca.crt

  # With an API server of 1.36
  berth-extender --config extender-config.yaml --emulated-version 1.36`,
		Version:       version.Get().String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := globals.Set(); err != nil {
				return command.BadInput(fmt.Errorf("setting feature gates: %w", err))
			}
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
	s.addFlags(f)
	globals.AddFlags(f)
	f.Lookup("feature-gates").Usage = "feature gates of Kubernetes (Name=true); kube-scheduler --help lists them"
	logsapi.AddFlags(logs, f)
	command.EndInOrder(cmd)
	return cmd
}

func (s *settings) addFlags(f *pflag.FlagSet) {
	f.StringVar(&s.config, "config", "",
		"KubeSchedulerConfiguration with the args of GPUAware and CostOptimized (required); "+
			"clientConnection says how to reach the API server")
	f.StringVar(&s.profile, "profile", "",
		"schedulerName of the profile to serve; empty: berth-scheduler if there is one, else the first")
	f.StringVar(&s.serving.Address, "listen", "127.0.0.1:8888", "address to serve on; beyond loopback it needs TLS")
	f.StringVar(&s.serving.CertFile, "tls-cert-file", "",
		"certificate of the server, read again when it changes; empty: plain HTTP")
	f.StringVar(&s.serving.KeyFile, "tls-private-key-file", "", "key of the certificate")
	f.StringVar(&s.serving.ClientCAFile, "client-ca-file", "",
		"authorities of callers; with it, only callers with a certificate are answered")
	f.StringSliceVar(&s.serving.ClientNames, "client-name", nil,
		"common name of the callers that are answered, such as system:kube-scheduler; "+
			"empty: all with a certificate of --client-ca-file")
}

// check refuses flags that cannot be used.
func (s *settings) check() error {
	tls := s.serving.CertFile != ""
	switch {
	case s.config == "":
		return errors.New(
			"--config is not given: want a KubeSchedulerConfiguration whose profile enables GPUAware or CostOptimized")
	case tls != (s.serving.KeyFile != ""):
		return errors.New("--tls-cert-file and --tls-private-key-file: want both or neither")
	case s.serving.ClientCAFile != "" && !tls:
		return errors.New("--client-ca-file is given without --tls-cert-file: certificates of callers need TLS")
	case len(s.serving.ClientNames) > 0 && s.serving.ClientCAFile == "":
		return errors.New("--client-name is given without --client-ca-file: names of callers need certificates")
	}
	host, _, err := net.SplitHostPort(s.serving.Address)
	if err != nil {
		return fmt.Errorf("--listen is %q: want an address such as 127.0.0.1:8888: %w", s.serving.Address, err)
	}
	if ip := net.ParseIP(host); !tls && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf(
			"--listen is %q, which other machines reach: want --tls-cert-file and --tls-private-key-file, or an address on "+
				"loopback", s.serving.Address)
	}
	return nil
}

// run is the extender until the context ends.
func (s *settings) run(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	configuration, err := schedulerconfig.Load(s.config)
	if err != nil {
		return command.BadInput(err)
	}
	profile, err := configuration.Profile(s.profile)
	if err != nil {
		return command.BadInput(err)
	}
	api, err := apiConfig(&configuration.Component.ClientConnection)
	if err != nil {
		return command.BadInput(err)
	}
	// What the plugins do in the background lasts until the last request is answered.
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	e, err := extender.New(background, configuration.Component, profile, api)
	if err != nil {
		return command.BadInput(fmt.Errorf("%s: %w", s.config, err))
	}
	server, err := extender.NewServer(e, s.serving)
	if err != nil { // a file of certificates, or the address
		return command.BadInput(err)
	}
	logger.Info("Starting", "version", version.Get().String(), "profile", profile, "address", server.Addr().String())
	group, serving := errgroup.WithContext(ctx)
	group.Go(func() error { return e.Start(background) })
	group.Go(func() error {
		defer end()
		return server.Run(serving)
	})
	err = group.Wait()
	e.Close()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// apiConfig is how the API server is reached. Without a kubeconfig this is the configuration of a pod.
func apiConfig(connection *componentconfig.ClientConnectionConfiguration) (*rest.Config, error) {
	api, err := clientcmd.BuildConfigFromFlags("", connection.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading how to reach the API server: %w", err)
	}
	api.QPS, api.Burst = connection.QPS, int(connection.Burst)
	return rest.AddUserAgent(api, "berth-extender"), nil
}
