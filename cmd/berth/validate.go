package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/output"
	"berth.dev/berth/pkg/process/rights"
	"berth.dev/berth/pkg/screen/command"
	"berth.dev/berth/pkg/validate"
)

func newValidateCommand() *cobra.Command {
	flags := validateFlags{clusterFlags: newClusterFlags()}
	cmd := &cobra.Command{
		Use:   "validate [FILE|FOLDER...]",
		Short: "Check scheduler configurations and manifests before they reach a cluster",
		Long: `Check files of YAML or JSON documents strictly, and print one line for each fault:

  FILE:LINE: SEVERITY: OBJECT: FIELD: what is wrong and what is allowed (RULE)

A folder stands for the files in it that end in .yaml, .yml or .json, and - for standard input. docs/tool.md describes
all rules. With --cluster the API server is asked besides which rights the configurations lack (without a FILE, the
shipped one), which fields of custom resources it drops, and which nodes and PodGroups there are.

Exit status: 0 without errors, 2 when there are errors or a file cannot be read, 3 when vital or feature rights are
missing or fields are dropped, 1 when there are only warnings or conditional rights are missing and --strict is
given, and for any other error, such as an API server that does not answer.`,
		Example: `  berth validate manifests/base/scheduler-config.yaml

  # What does the scheduler's account lack for this configuration?
  berth validate --cluster --account kube-system/berth-scheduler scheduler-config.yaml

  # Does the cluster have what an application asks for?
  berth validate --cluster job.yaml

  # In a pipeline, where a warning is a failure
  kubectl kustomize manifests/base | berth validate --strict -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if flags.cluster {
				return nil
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		},
		ValidArgsFunction: completeManifests,
		RunE: func(cmd *cobra.Command, args []string) error {
			// With kubectl's --as and no --account, the rights are those of the impersonated user.
			if cmd.Flags().Changed("as") && !cmd.Flags().Changed("account") {
				flags.account = rights.OwnAccount
			}
			return runValidate(cmd.Context(), args, flags, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&flags.strict, "strict", false, "fail on warnings too")
	cmd.Flags().BoolVar(&flags.cluster, "cluster", false,
		"ask the API server for the rights that the configurations need, and for fields of custom resources that it drops")
	cmd.Flags().StringVar(&flags.account, "account", "kube-system/berth-scheduler",
		"whose rights: a service account as namespace/name, a user name, or self for that of the kubeconfig")
	flags.AddTo(cmd, false)
	flags.format.AddTo(cmd)
	return cmd
}

// validateFlags are the flags of validate.
type validateFlags struct {
	clusterFlags
	strict, cluster bool
	account         string
	format          output.Format
}

// rightsMissing is the exit status when rights are missing or the API server drops fields of custom resources.
const rightsMissing = 3

func runValidate(ctx context.Context, files []string, flags validateFlags, out io.Writer) error {
	silenceLogs()
	report := &validate.Report{}
	for _, path := range files {
		if err := validateFile(report, path); err != nil {
			return badInput(err)
		}
	}
	if len(files) == 0 {
		if err := validateShipped(report); err != nil {
			return err
		}
	}
	if flags.cluster {
		if err := flags.askCluster(ctx, report); err != nil {
			return err
		}
	}
	report.Finish()
	if err := flags.format.Print(out, report, report.WriteTable); err != nil {
		return err
	}
	switch {
	case report.Has(validate.Error):
		return badInput(errors.New("there are errors"))
	case report.Rights != nil && report.Rights.Lacks():
		return command.WithStatus(errors.New("rights are missing"), rightsMissing)
	case len(report.Pruned) > 0:
		return command.WithStatus(errors.New("the API server drops fields of custom resources"), rightsMissing)
	case flags.strict && report.Has(validate.Warning):
		return errors.New("there are warnings")
	case flags.strict && report.Rights != nil && len(report.Rights.Missing) > 0:
		return errors.New("conditional rights are missing")
	}
	return nil
}

func validateFile(report *validate.Report, path string) error {
	if path == "-" {
		return report.Read(os.Stdin, "standard input")
	}
	return report.ReadFile(path)
}

// validateShipped reads the shipped configuration.
func validateShipped(report *validate.Report) error {
	const path = "base/scheduler-config.yaml"
	data, err := manifests.Files.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the shipped configuration: %w", err)
	}
	return report.Read(bytes.NewReader(data), "manifests/"+path)
}

// askCluster adds to the report what the API server answers.
func (f validateFlags) askCluster(ctx context.Context, report *validate.Report) error {
	if len(report.Configurations()) == 0 && report.Has(validate.Error) && report.Objects == 0 {
		return nil // the errors are in the report already
	}
	account, err := rights.ParseAccount(f.account)
	if err != nil {
		return badInput(fmt.Errorf("--account %w", err))
	}
	config, err := f.RESTConfig()
	if err != nil {
		return badInput(err)
	}
	return report.AskCluster(ctx, config, account)
}
