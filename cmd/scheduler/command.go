package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/tools/cache"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/process/decisions"
)

// newCommand is the stock scheduler's command with two steps more between the set-up and the run: it wraps the
// profiles, and lets gangs hear why members fail. app.NewSchedulerCommand keeps the scheduler that it sets up to
// itself, and no option of it reaches the profiles or the handler of failures.
func newCommand() *cobra.Command {
	opts := options.NewOptions()
	var history int
	cmd := &cobra.Command{
		Use: "berth-scheduler",
		Long: "berth-scheduler is kube-scheduler with plugins for GPUs, gangs and costs. All flags but --decision-history " +
			"are those of kube-scheduler.",
		Args: cobra.NoArgs,
		// The feature gates are known only when all flags are read, and must be set before anything asks for them.
		PersistentPreRunE: func(*cobra.Command, []string) error { return opts.ComponentGlobalsRegistry.Set() },
		RunE:              func(cmd *cobra.Command, _ []string) error { return runScheduler(cmd, opts, history) },
	}
	sections := opts.Flags
	sections.FlagSet("configuration").IntVar(&history, "decision-history", decisions.Default, fmt.Sprintf(
		"How many decisions the scheduler remembers, with the points of the chosen node; it serves them at %s. 0 for none, "+
			"at most %d.", decisions.Path, decisions.Most))
	global := sections.FlagSet("global")
	verflag.AddFlags(global)
	globalflag.AddGlobalFlags(global, cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, section := range sections.FlagSets {
		cmd.Flags().AddFlagSet(section)
	}
	columns, _, err := term.TerminalSize(cmd.OutOrStdout())
	if err != nil {
		columns = 0 // not a terminal: lines are not wrapped
	}
	cliflag.SetUsageAndHelpFunc(cmd, *sections, columns)
	return cmd
}

// remember lets the scheduler keep and serve the last decisions, up to a number.
func remember(sched *scheduler.Scheduler, most int) error {
	if most == 0 {
		return nil
	}
	history, err := decisions.New(most)
	if err != nil {
		return fmt.Errorf("--decision-history: %w", err)
	}
	decisions.Wrap(sched.Profiles, history)
	return history.Serve()
}

// runScheduler sets the scheduler up and runs it until it is told to stop.
func runScheduler(cmd *cobra.Command, opts *options.Options, history int) error {
	verflag.PrintAndExitIfRequested()
	gates := opts.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(opts.Logs, gates); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) // the usual way out would log
	}
	cliflag.PrintFlags(cmd.Flags())
	if opts.InformerName == nil {
		// The name under which informers' metrics appear; dashboards know the stock one.
		name, err := cache.NewInformerName("kube-scheduler")
		if err != nil {
			return fmt.Errorf("naming the informers: %w", err)
		}
		opts.InformerName = name
	}
	ctx := withOneLine(server.SetupSignalContext())
	completed, sched, err := setup(ctx, opts)
	if err != nil {
		return err
	}
	candidates.Wrap(sched.Profiles)
	if err := remember(sched, history); err != nil {
		return err
	}
	sched.SchedulingQueue, sched.FailureHandler = coscheduling.Listen(sched.Profiles, sched.SchedulingQueue,
		sched.FailureHandler)
	sched.Cache = coscheduling.Follow(sched.Profiles, sched.Cache, sched.WaitForHandlersSync)
	if err := demandRights(ctx, completed, gates); err != nil {
		return err
	}
	watchResources(ctx, completed)
	if mutable, ok := gates.(featuregate.MutableFeatureGate); ok {
		mutable.AddMetrics()
	}
	opts.ComponentGlobalsRegistry.AddMetrics()
	return app.Run(ctx, completed, sched)
}
