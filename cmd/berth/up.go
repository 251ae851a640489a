package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/pkg/sandbox/controlplane"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/screen/command"
	"berth.dev/berth/pkg/screen/progress"
	"berth.dev/berth/pkg/screen/tables"
)

func newUpCommand() *cobra.Command {
	var opts sandbox.Options
	var foreground bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring up a local control plane",
		Long: `Bring up a local control plane on loopback and return when its API server is ready and its scheduler leads. The last
line on standard output is KUBECONFIG=<path>. Several can be up side by side, each with its own --dir.

Nothing is executed: a pod runs as soon as it is bound. Pods that name no profile stay pending, unless you add
--replace-default. docs/tool.md says when pods end, and describes the file of --nodes.

Also known, for tests: --foreground, --fsync, --kube-apiserver, --no-kubelet, --port, --runtime-config,
--scheduler-feature-gates and --split.

Exit status: 0 when everything asked for is up, 2 for a file or flag that cannot be used, 130 after Ctrl-C, 1 for
any other error. What is not up leaves nothing behind: no process, no file.`,
		Example: `  # Forty GPU nodes of five shapes with the shipped profiles
  berth up --nodes manifests/nodes/demo.yaml

  # The nodes of a real cluster with a configuration of your own
  kubectl get nodes -o yaml > nodes.yaml
  berth up --nodes nodes.yaml --scheduler-config my-config.yaml

  # An empty cluster, to try an installation
  berth up --dir /tmp/bare --bare`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.StopWithParent = foreground
			if cmd.Flags().Changed("scale") && opts.Scale < 1 {
				return badInput(fmt.Errorf("--scale %d: must be at least the number of nodes in --nodes, at most 20000",
					opts.Scale))
			}
			return up(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), opts, foreground)
		},
	}
	command.EndInOrder(cmd)
	addDirFlag(cmd, &opts.Dir)
	addUpFlags(cmd.Flags(), &opts)
	cmd.Flags().BoolVar(&foreground, "foreground", false, "stay until Ctrl-C, then stop everything and remove the data")
	if err := cmd.MarkFlagFilename("nodes", "yaml", "yml", "json"); err != nil {
		panic(err)
	}
	for _, rare := range []string{"foreground", "fsync", "kube-apiserver", "no-kubelet", "port", "runtime-config",
		"scheduler-feature-gates", "split"} {
		if err := cmd.Flags().MarkHidden(rare); err != nil {
			panic(err)
		}
	}
	return cmd
}

func addUpFlags(flags *pflag.FlagSet, opts *sandbox.Options) {
	flags.StringVar(&opts.NodesFile, "nodes", "",
		"file with the nodes to create (kubectl's YAML or JSON, or the short form)")
	flags.IntVar(&opts.Scale, "scale", 0,
		"copy the nodes of --nodes until there are this many, at most 20000 (default: no copies)")
	flags.BoolVar(&opts.NoScheduler, "no-scheduler", false, "leave the scheduler out, to run any other one")
	flags.BoolVar(&opts.Bare, "bare", false,
		"install neither CRDs nor rights and leave the scheduler out, to try an installation")
	flags.StringVar(&opts.SchedulerConfig, "scheduler-config", "",
		"KubeSchedulerConfiguration file (default: the shipped profiles); the kubeconfig in it is replaced")
	flags.BoolVar(&opts.ReplaceDefault, "replace-default", false,
		"run the shipped configuration that replaces the default scheduler, so that every pod is scheduled")
	flags.BoolVar(&opts.NoKubelet, "no-kubelet", false,
		"leave out kwok and the controller manager: bound pods stay as they are")
	flags.StringSliceVar(&opts.FeatureGates, "feature-gates", nil, "feature gates of all components, as Name=true,…")
	flags.StringSliceVar(&opts.SchedulerFeatureGates, "scheduler-feature-gates", nil,
		"feature gates of the scheduler that differ from those of all components")
	flags.StringSliceVar(&opts.RuntimeConfig, "runtime-config", nil, "APIs to switch on or off, as group/version=true,…")
	flags.BoolVar(&opts.Fsync, "fsync", false, "let etcd wait for the disk")
	flags.BoolVar(&opts.Split, "split", false,
		"run etcd and the API server as processes of their own, so that one can be killed")
	flags.StringVar(&opts.APIServer, "kube-apiserver", "",
		"kube-apiserver executable to run instead of the built-in one; with one up to three minors older, the scheduler "+
			"and the controllers emulate its version")
	flags.IntVar(&opts.Port, "port", 0, "port of the API server on 127.0.0.1 (default: a free one)")
}

func addDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", sandbox.DefaultDir, "folder of the sandbox")
}

func up(ctx context.Context, out, messages io.Writer, opts sandbox.Options, foreground bool) error {
	profiles, err := profilesOf(opts)
	if err != nil {
		return badInput(err)
	}
	say := progress.Steps(messages)
	sb, err := sandbox.Start(ctx, opts, say)
	var input sandbox.InputError
	if errors.As(err, &input) {
		return badInput(err)
	}
	if err != nil {
		return fmt.Errorf("bringing up the sandbox: %w", err)
	}
	say("up; logs in " + sb.LogDir())
	fmt.Fprintln(messages, tables.NewOutput(messages, false).Screen.Wrap(sandbox.WhoSchedules(profiles)))
	fmt.Fprintf(out, "KUBECONFIG=%s\n", sb.Kubeconfig())
	if !foreground {
		return nil
	}
	<-ctx.Done()
	fmt.Fprintln(messages, "stopping")
	return errors.Join(context.Cause(ctx), sb.Stop())
}

// profilesOf are the values of spec.schedulerName for which the sandbox schedules pods.
func profilesOf(opts sandbox.Options) (names []string, err error) {
	if (opts.NoScheduler || opts.Bare) && opts.SchedulerConfig == "" {
		return nil, nil
	}
	silenceLogs()
	var configuration *schedulerconfig.Configuration
	if opts.SchedulerConfig != "" {
		// A file that is named stock is meant, not the configuration of that name.
		path, err := filepath.Abs(opts.SchedulerConfig)
		if err != nil {
			return nil, fmt.Errorf("resolving %s: %w", opts.SchedulerConfig, err)
		}
		if configuration, err = loadConfiguration(path); err != nil {
			return nil, err
		}
	} else {
		data, err := manifests.Files.ReadFile(opts.ShippedConfig())
		if err != nil {
			return nil, fmt.Errorf("reading the shipped configuration: %w", err)
		}
		if configuration, err = schedulerconfig.Parse(opts.ShippedConfig(), data); err != nil {
			return nil, err
		}
	}
	return profileNames(configuration), nil
}

func newDownCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop a local control plane and remove its data",
		Long: `Stop every process of a local control plane and remove its folder, whether it is up or has crashed.

Exit status: 0 when nothing of it is left, 2 when there is no local control plane in the folder, 1 for any other
error.`,
		Example: "  berth down --dir .berth",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sb, err := sandbox.Open(dir)
			if err != nil {
				return badInput(err)
			}
			if err := sb.Stop(); err != nil {
				return fmt.Errorf("stopping the sandbox: %w", err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "stopped; %s is gone\n", sb.Dir())
			return nil
		},
	}
	addDirFlag(cmd, &dir)
	return cmd
}

// newControlPlaneCommand is what `berth up` starts in the background.
func newControlPlaneCommand() *cobra.Command {
	var component string
	var etcdPort, apiPort int
	cmd := &cobra.Command{
		Use:    sandbox.ControlPlaneCommand + " OPTIONS",
		Short:  "Run the process of a local control plane (started by `berth up`)",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var opts sandbox.Options
			if err := json.Unmarshal([]byte(args[0]), &opts); err != nil {
				return fmt.Errorf("decoding the options: %w", err)
			}
			ctx := cmd.Context()
			if component != "" {
				return controlplane.RunComponent(ctx, opts, component, etcdPort, apiPort)
			}
			return controlplane.Run(ctx, opts)
		},
	}
	command.EndInOrder(cmd)
	cmd.Flags().StringVar(&component, "component", "", "run only this one")
	cmd.Flags().IntVar(&etcdPort, "etcd-port", 0, "etcd's port")
	cmd.Flags().IntVar(&apiPort, "api-port", 0, "the API server's port")
	return cmd
}
