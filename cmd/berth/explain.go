package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/cluster/access"
	"berth.dev/berth/pkg/explain"
	"berth.dev/berth/pkg/explain/subject"
	"berth.dev/berth/pkg/output"
	"berth.dev/berth/pkg/process/decisions"
	"berth.dev/berth/pkg/screen/tables"
)

// explainFlags are the flags of explain.
type explainFlags struct {
	source
	manifest    string
	profile     string
	atDecision  bool
	scheduler   string
	schedulerCA string
	top         int
	allNodes    bool
	format      output.Format
}

func newExplainCommand() *cobra.Command {
	flags := &explainFlags{source: newSource()}
	cmd := &cobra.Command{
		Use:   "explain {KIND NAME | KIND/NAME | -f FILE}",
		Short: "Say which node a pod goes to and why, or what keeps it from each",
		Long: `Say in one sentence why a pod is where it is, would go where it would, or stays pending, and show below it what the
sentence rests on: for each node the points by plugin, or the first plugin that rejects it and why; for a gang its
plan, or what is missing. KIND is pod, podgroup, job, deployment, statefulset or replicaset; of several pods the first
that is pending is explained, else the first that runs. With -f, the pod need not exist.

The scheduler's plugins run over a copy of the cluster, or of a dump, in memory, as of now. --at-decision says instead
what the scheduler has kept of the moment when it chose the node. Without --scheduler-config the configuration is that
of the scheduler that runs, else the shipped one, with a warning.

Exit status: 0 when there is an explanation, 2 when a file, the pod or the profile cannot be used, 1 for any other
error.`,
		Example: `  berth explain pod trainer-0 -n research
  berth explain job/trainer
  berth explain podgroup train

  # Why the scheduler chose the node when it did
  berth explain pod trainer-0 --at-decision

  # As another configuration would have it
  berth explain pod trainer-0 -n research --scheduler-config new.yaml

  # What would happen to a pod that does not exist yet
  berth explain pod -f pod.yaml

  # Every node and every score of a pod in a dump
  berth explain pod trainer-0 --dump cluster.dump -o json`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: flags.cluster.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			defer collectSeldom()()
			target, err := subject.ParseTarget(args)
			if err != nil {
				return badInput(err)
			}
			return flags.run(cmd.Context(), target, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags.addTo(cmd)
	f := cmd.Flags()
	f.StringVarP(&flags.manifest, "filename", "f", "", "manifest of the pod; - is standard input")
	f.StringVar(&flags.profile, "profile", "",
		"explain as if the pod named this profile (default: the pod's schedulerName)")
	f.BoolVar(&flags.atDecision, "at-decision", false,
		"say why the scheduler chose the node when it did, and not what it would choose now")
	f.StringVar(&flags.scheduler, "scheduler", "",
		"with --at-decision: address of the scheduler that leads (default: that of the sandbox)")
	f.StringVar(&flags.schedulerCA, "scheduler-ca", "",
		"with --scheduler: file with the certificate of the scheduler, or of the authority that signed it (default: the "+
			"authority of the kubeconfig)")
	f.IntVar(&flags.top, "top", 10, "how many of the nodes that fit the table shows")
	f.BoolVar(&flags.allNodes, "all-nodes", false, "show every node in the table")
	flags.format.AddTo(cmd)
	return cmd
}

// check refuses invalid flags and combinations of flags.
func (f *explainFlags) check(target subject.Target) error {
	switch {
	case target.Name == "" && f.manifest == "":
		return fmt.Errorf("name a %s, or give a manifest with -f", target.Kind)
	case target.Kind != subject.KindPod && f.manifest != "":
		return fmt.Errorf("with -f, a pod is named and not a %s", target.Kind)
	case f.top < 1:
		return fmt.Errorf("--top: %d is not 1 or more", f.top)
	case f.atDecision && (f.manifest != "" || f.dump != "" || f.schedulerConfig != "" || f.profile != ""):
		return errors.New(
			"--at-decision explains a past decision: it cannot be combined with -f, --dump, --scheduler-config or --profile")
	case f.schedulerCA != "" && f.scheduler == "":
		return errors.New("--scheduler-ca needs --scheduler, the address of that scheduler")
	case f.scheduler != "" && !f.atDecision:
		return errors.New("--scheduler needs --at-decision")
	}
	return nil
}

func (f *explainFlags) run(ctx context.Context, target subject.Target, out, progress io.Writer) error {
	if err := f.check(target); err != nil {
		return badInput(err)
	}
	silenceLogs()
	if f.atDecision {
		return f.explainPast(ctx, target, out, progress)
	}
	configuration, err := f.configuration(ctx, progress)
	if err != nil {
		return err
	}
	var manifest *subject.Manifest
	if f.manifest != "" {
		if manifest, err = readManifest(f.manifest, f.namespace()); err != nil {
			return badInput(err)
		}
	}
	cluster, err := f.read(ctx, progress)
	if err != nil {
		return err
	}
	objects, pods, err := target.Pods(cluster.Objects, manifest, f.namespace())
	if err != nil {
		return badInput(err)
	}
	var about string
	if manifest == nil {
		about = target.About(pods, pods[0].Name)
	} else {
		foreign := 0
		if f.profile == "" {
			pods, foreign = subject.ServedFirst(pods, configuration)
		}
		about = subject.AboutFile(len(pods), foreign, pods[0].Name)
	}
	explanation, err := explain.Pod(explain.Question{Configuration: configuration, Objects: objects, Pod: pods[0],
		Unread: forbidden(cluster), Profile: f.profile, Now: cluster.Taken})
	if err != nil {
		return badInput(err)
	}
	return f.print(out, about, explanation)
}

// print prints the explanation. A table begins with which of several pods it is about.
func (f *explainFlags) print(out io.Writer, about string, explanation *explain.Explanation) error {
	return f.format.Print(out, explanation, func(out io.Writer) error {
		if about != "" {
			fmt.Fprintln(out, tables.ScreenOf(out).Wrap(about))
		}
		top := f.top
		if f.allNodes {
			top = 0
		}
		return explanation.WriteTable(out, top)
	})
}

func readManifest(path, namespace string) (*subject.Manifest, error) {
	if path == "-" {
		return subject.ReadManifest(os.Stdin, "standard input", namespace)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	defer file.Close()
	return subject.ReadManifest(file, path, namespace)
}

// explainPast explains a decision that the scheduler has recorded.
func (f *explainFlags) explainPast(ctx context.Context, target subject.Target, out, progress io.Writer) error {
	config, err := f.schedulerAt()
	if err != nil {
		return err
	}
	// The decision about a pod may still be known when the pod is gone.
	pods := []decisions.Subject{{NamespacedName: types.NamespacedName{Namespace: f.namespace(), Name: target.Name}}}
	var found []*v1.Pod
	if target.Kind != subject.KindPod {
		cluster, err := f.read(ctx, progress)
		if err != nil {
			return err
		}
		if found, err = target.Find(cluster.Objects, f.namespace()); err != nil {
			return badInput(err)
		}
		pods = nil
		for _, pod := range found {
			pods = append(pods, decisions.Subject{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name},
				UID: pod.UID})
		}
	}
	list, err := decisions.Ask(ctx, config)
	if err != nil {
		return err
	}
	explanation, err := explain.Past(list, pods...)
	if err != nil {
		return badInput(err)
	}
	return f.print(out, target.About(found, explanation.Pod.Name), explanation)
}

// schedulerAt is the address of the scheduler with the credentials of the kubeconfig.
func (f *explainFlags) schedulerAt() (*rest.Config, error) {
	config, err := f.cluster.RESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	if f.scheduler == "" {
		layout, up := access.SandboxAt(config.Host, f.cluster.SandboxFolders())
		if !up {
			return nil, badInput(errors.New("--at-decision asks the scheduler itself: give its address with --scheduler, " +
				"for example https://127.0.0.1:10259 after kubectl port-forward to the replica that leads"))
		}
		state, err := layout.ReadState()
		if err != nil {
			return nil, err
		}
		config.Host = state.Scheduler
		return config, nil
	}
	address, err := url.Parse(f.scheduler)
	if err != nil || address.Scheme != "https" || address.Host == "" {
		return nil, badInput(fmt.Errorf("--scheduler: %q is not an address such as https://127.0.0.1:10259", f.scheduler))
	}
	return decisions.Reach(config, address.Host, f.schedulerCA), nil
}
