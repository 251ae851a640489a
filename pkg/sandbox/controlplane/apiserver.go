package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"berth.dev/berth/pkg/sandbox"
)

// apiServerArgs are the flags of kube-apiserver. The oldest version that a sandbox can have knows all of them.
func apiServerArgs(opts sandbox.Options, keys sandbox.Keys, ports ports) []string {
	flags := []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", ports.api),
		"--tls-cert-file=" + keys.Cert(sandbox.KeyServer), "--tls-private-key-file=" + keys.Key(sandbox.KeyServer),
		"--client-ca-file=" + keys.Cert(sandbox.KeyCA),
		"--etcd-servers=https://" + loopbackAddress(ports.etcd),
		"--etcd-cafile=" + keys.Cert(sandbox.KeyCA),
		"--etcd-certfile=" + keys.Cert(sandbox.KeyEtcdClient), "--etcd-keyfile=" + keys.Key(sandbox.KeyEtcdClient),
		// No certificate has this name. Clients that delegate authentication expect that a front proxy is configured.
		"--requestheader-client-ca-file=" + keys.Cert(sandbox.KeyFrontProxyCA),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--authorization-mode=RBAC",
		"--anonymous-auth=false",
		// As kubeadm sets it: DaemonSets that open device files need it.
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + keys.Key(sandbox.KeyServiceAccount),
		"--service-account-signing-key-file=" + keys.Key(sandbox.KeyServiceAccount),
		"--service-cluster-ip-range=10.96.0.0/16",
		// A sandbox has few clients, so fairness among them is not worth its cost.
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=0", "--max-mutating-requests-inflight=0",
		// The process should stop without delay.
		"--shutdown-delay-duration=0s",
		"--endpoint-reconciler-type=none",
		"--profiling=false",
	}
	if opts.NoKubelet {
		// The controller manager would create the default ServiceAccounts, and remove the not-ready taint of nodes.
		flags = append(flags, "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition")
	}
	if len(opts.FeatureGates) > 0 {
		flags = append(flags, "--feature-gates="+strings.Join(opts.FeatureGates, ","))
	}
	if len(opts.RuntimeConfig) > 0 {
		flags = append(flags, "--runtime-config="+strings.Join(opts.RuntimeConfig, ","))
	}
	return flags
}

// runAPIServer runs the built-in kube-apiserver until ctx ends.
func runAPIServer(ctx context.Context, opts sandbox.Options, keys sandbox.Keys, ports ports) error {
	server := options.NewServerRunOptions()
	if err := parseFlags("kube-apiserver", server.Flags(), apiServerArgs(opts, keys, ports)); err != nil {
		return err
	}
	if err := server.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("setting feature gates: %w", err)
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	completed, err := server.Complete(ctx)
	if err != nil {
		return fmt.Errorf("completing the API server's options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return fmt.Errorf("checking the API server's options: %w", utilerrors.NewAggregate(errs))
	}
	if err := app.Run(ctx, completed); err != nil {
		return fmt.Errorf("running the API server: %w", err)
	}
	if ctx.Err() == nil {
		return errors.New("running the API server: it stopped")
	}
	return nil
}

// parseFlags sets the options of a component from flags, as its command line does. Other options keep their defaults.
func parseFlags(component string, sets cliflag.NamedFlagSets, flags []string) error {
	all := pflag.NewFlagSet(component, pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		all.AddFlagSet(set)
	}
	if err := all.Parse(flags); err != nil {
		return fmt.Errorf("setting the options of %s: %w", component, err)
	}
	return nil
}
