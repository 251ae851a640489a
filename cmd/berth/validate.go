package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"berth.dev/berth/pkg/validate"
)

func newValidateCommand() *cobra.Command {
	var strict bool
	var format outputFormat
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check scheduler configurations and manifests before they reach a cluster",
		Long: `Check files of YAML or JSON documents strictly, and name the line of each fault.

A KubeSchedulerConfiguration, alone or inside a ConfigMap, is decoded and validated as the scheduler does, its profiles are
built with the real plugins, and the weights that they come to are shown. Then it is searched for what is allowed but
defeats a purpose:

  batching         what keeps identical pods from sharing one pass over the nodes: a plugin without SignPod, an
                   extender, the built-in constraints of PodTopologySpread
  gang-order       Coscheduling without its queue sort; gang-preemption: after DefaultPreemption in postFilter
  low-weight       a plugin of ours with a weight that the stock scores outvote
  lease            the leader election lease of the cluster's own scheduler
  qps              the client's default rate, which is the scheduler's limit
  sampling         the best node chosen among a part of the nodes
  spreading        LeastAllocated against plugins that pack
  weight           negative ones, 0 (which is read as 1), and those that count nothing or less than the stock ones

Other objects are checked for unknown fields and for the keys that our plugins read: misspelt berth.dev/ keys and values that
cannot be used. A node that is labelled to share its GPUs, with no agent that enforces shares, is a warning
(unenforced-shares). So is an annotation that no plugin reads (no-effect): where configurations are among the files, one that
the pod's profile lacks the plugin for, such as berth.dev/ip-pool without IPReservation or berth.dev/near without
NetworkTopology; and one on a PodGroup that is read from pods alone. Kinds that are not known here are said to be not checked.

Exit status: 0 without errors, 2 when there are errors or a file cannot be read, 1 when there are only warnings and
--strict is given.`,
		Example: `  berth validate manifests/base/scheduler-config.yaml

  # In a pipeline, where a warning is a failure
  kubectl kustomize manifests/base | berth validate --strict -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runValidate(args, strict, format, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "fail on warnings too")
	addOutputFlag(cmd, &format)
	return cmd
}

func runValidate(files []string, strict bool, format outputFormat, out io.Writer) error {
	quietly()
	report := &validate.Report{}
	for _, path := range files {
		if err := validateFile(report, path); err != nil {
			return badInput(err)
		}
	}
	report.Finish()
	var err error
	if format == outputTable {
		err = report.WriteTable(out)
	} else {
		err = printValue(out, format, report)
	}
	switch {
	case err != nil:
		return err
	case report.Has(validate.Error):
		return badInput(errors.New("there are errors"))
	case strict && report.Has(validate.Warning):
		return errors.New("there are warnings")
	}
	return nil
}

func validateFile(report *validate.Report, path string) error {
	if path == "-" {
		return report.Read(os.Stdin, "standard input")
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	defer file.Close()
	return report.Read(file, path)
}
