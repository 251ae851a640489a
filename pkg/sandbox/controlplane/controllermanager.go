package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"

	"berth.dev/berth/pkg/sandbox"
)

// controllersToRun lists the controllers to run, in the form of the flag of that name.
func controllersToRun(opts sandbox.Options) []string {
	if len(opts.Controllers) > 0 {
		return opts.Controllers
	}
	// A sandbox does not need kubelet certificates, bootstrap tokens and pod CIDRs.
	return []string{"*", "-bootstrap-signer-controller", "-token-cleaner-controller",
		"-certificatesigningrequest-signing-controller",
		"-certificatesigningrequest-approving-controller", "-certificatesigningrequest-cleaner-controller",
		"-node-ipam-controller"}
}

// runControllerManager runs kube-controller-manager until ctx ends, so that Jobs, Deployments, namespaces and garbage
// collection work as in a cluster.
func runControllerManager(ctx context.Context, opts sandbox.Options, keys sandbox.Keys, emulation string) error {
	layout := sandbox.Layout(opts.Dir)
	flags := []string{
		"--kubeconfig=" + layout.Kubeconfig(),
		"--leader-elect=false",
		"--secure-port=0",
		"--service-account-private-key-file=" + keys.Key(sandbox.KeyServiceAccount),
		"--root-ca-file=" + keys.Cert(sandbox.KeyCA),
		"--controllers=" + strings.Join(controllersToRun(opts), ","),
		"--kube-api-qps=500", "--kube-api-burst=1000",
		"--concurrent-job-syncs=10", "--concurrent-gc-syncs=10",
	}
	if len(opts.FeatureGates) > 0 {
		flags = append(flags, "--feature-gates="+strings.Join(opts.FeatureGates, ","))
	}
	if emulation != "" {
		flags = append(flags, emulationFlag+emulation)
	}
	manager, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("making the controller manager's options: %w", err)
	}
	known, disabled, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	sets := manager.Flags(known, disabled, aliases)
	if err := parseFlags("kube-controller-manager", sets, flags); err != nil {
		return err
	}
	manager.ParsedFlags = &sets
	if opts.Split {
		// Otherwise the API server in the same process sets the gates and the version.
		if err := manager.ComponentGlobalsRegistry.Set(); err != nil {
			return fmt.Errorf("setting feature gates: %w", err)
		}
	}
	config, err := manager.Config(ctx, known, disabled, aliases)
	if err != nil {
		return fmt.Errorf("configuring the controller manager: %w", err)
	}
	if err := app.Run(ctx, config.Complete()); err != nil {
		return fmt.Errorf("running the controller manager: %w", err)
	}
	if ctx.Err() == nil {
		return errors.New("running the controller manager: it stopped")
	}
	return nil
}
