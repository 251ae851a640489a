package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// DefaultDir is where a sandbox lives unless the user says otherwise, relative to the current folder.
const DefaultDir = ".berth"

// Options of a sandbox. The zero value of every field but Dir is the default. Start passes the options as JSON to the
// process of the control plane, so it makes every path absolute first.
type Options struct {
	// Dir holds everything the sandbox writes: kubeconfig, keys, data, logs. It is created with mode 0700.
	Dir string `json:"dir"`
	// NodesFile describes the nodes to create, see LoadNodes. Empty: no nodes.
	NodesFile string `json:"nodesFile,omitempty"`
	// Scale is the number of nodes to create from those in NodesFile, see ScaleNodes; 0 adds no copies.
	Scale int `json:"scale,omitempty"`
	// NoScheduler leaves the scheduler out, so that any other can be run in its place.
	NoScheduler bool `json:"noScheduler,omitempty"`
	// Bare leaves out the shipped CRDs, rights and policies, and with them the scheduler, so that an installation can
	// be tried.
	Bare bool `json:"bare,omitempty"`
	// SchedulerConfig is a KubeSchedulerConfiguration file. Empty: a shipped one, see ShippedConfig.
	SchedulerConfig string `json:"schedulerConfig,omitempty"`
	// ReplaceDefault uses the shipped configuration that also schedules pods without a schedulerName.
	ReplaceDefault bool `json:"replaceDefault,omitempty"`
	// NoKubelet leaves out kwok and the controller manager: nodes and pods stay as the API server stores them.
	NoKubelet bool `json:"noKubelet,omitempty"`
	// Controllers names controllers ("job-controller") that run although NoKubelet is set. Without NoKubelet all run.
	Controllers []string `json:"controllers,omitempty"`
	// FeatureGates ("Name=true") go to the API server, the controller manager and the scheduler.
	FeatureGates []string `json:"featureGates,omitempty"`
	// SchedulerFeatureGates take precedence over FeatureGates for the scheduler, which may not know a gate of the API.
	SchedulerFeatureGates []string `json:"schedulerFeatureGates,omitempty"`
	// RuntimeConfig ("group/version=true") goes to the API server.
	RuntimeConfig []string `json:"runtimeConfig,omitempty"`
	// Fsync makes etcd wait for the disk, which is unnecessary for temporary data.
	Fsync bool `json:"fsync,omitempty"`
	// Split runs etcd and the API server as separate processes, so that a test can kill one.
	Split bool `json:"split,omitempty"`
	// EtcdQuotaBytes is how much etcd may store before it refuses writes, as on a full disk; 0 is enough for 20,000 nodes.
	EtcdQuotaBytes int64 `json:"etcdQuotaBytes,omitempty"`
	// APIServer is a kube-apiserver executable to run in place of the built-in one, of this version or up to three minors
	// older. It runs as with Split. Empty: the built-in one.
	APIServer string `json:"apiServer,omitempty"`
	// Port of the API server on 127.0.0.1; 0 takes a free one.
	Port int `json:"port,omitempty"`
	// Binary is the berth executable that runs the control plane; empty: see FindBinary. The scheduler's executable,
	// berth-scheduler, is looked for beside it.
	Binary string `json:"binary,omitempty"`
	// StopWithParent ends the sandbox when the process that started it dies, for tests and for --foreground.
	StopWithParent bool `json:"stopWithParent,omitempty"`
}

// APIServerEnv is the environment variable that sets an empty Options.APIServer, for tests with other versions of the
// API server.
const APIServerEnv = "BERTH_KUBE_APISERVER"

// BinaryEnv names the environment variable that tells tests where the berth executable is.
const BinaryEnv = "BERTH_BIN"

// FindBinary returns the path of the berth executable: $BERTH_BIN, this process's own executable if it is berth, or
// bin/berth of the module that the current folder belongs to.
func FindBinary() (string, error) {
	if path := os.Getenv(BinaryEnv); path != "" {
		return filepath.Abs(path)
	}
	if self, err := os.Executable(); err == nil && isBerth(self) {
		return self, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the berth executable: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		candidate := filepath.Join(dir, "bin", "berth")
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			if _, err := os.Stat(candidate); err != nil {
				return "", fmt.Errorf("finding the berth executable: %s is not there; run `make build`, or set %s", candidate,
					BinaryEnv)
			}
			return candidate, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding the berth executable: set %s to its path", BinaryEnv)
		}
	}
}

// isBerth reports whether an executable is berth, possibly under its name as a kubectl plugin.
func isBerth(path string) bool {
	base := filepath.Base(path)
	return base == "berth" || strings.HasPrefix(base, "kubectl-berth")
}

// InputError says that a file, a folder or an option cannot be used. Nothing has been started.
type InputError struct{ error }

// Unwrap returns the cause.
func (e InputError) Unwrap() error { return e.error }

// complete sets defaults and checks the options, before anything is started.
func (o *Options) complete() error {
	if o.Dir == "" {
		o.Dir = DefaultDir
	}
	if o.APIServer == "" {
		o.APIServer = os.Getenv(APIServerEnv)
	}
	o.NoScheduler = o.NoScheduler || o.Bare
	o.Split = o.Split || o.APIServer != ""
	if err := o.checkValues(); err != nil {
		return err
	}
	if o.Binary == "" {
		binary, err := FindBinary()
		if err != nil {
			return err
		}
		o.Binary = binary
	}
	for _, path := range []*string{&o.Dir, &o.NodesFile, &o.SchedulerConfig, &o.APIServer, &o.Binary} {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("resolving %s: %w", *path, err)
		}
		*path = abs
	}
	return o.checkFiles()
}

// checkValues refuses values that are out of range or contradict each other.
func (o *Options) checkValues() error {
	if o.Port < 0 || o.Port > 65535 {
		return fmt.Errorf("port %d: must be 0 (any free port) to 65535", o.Port)
	}
	if o.EtcdQuotaBytes < 0 {
		return fmt.Errorf("etcd's quota of %d bytes: must be 0 (the default) or more", o.EtcdQuotaBytes)
	}
	if o.Scale != 0 && o.NodesFile == "" {
		return fmt.Errorf("scale %d: makes no sense without a file of nodes to copy", o.Scale)
	}
	if o.NoScheduler && o.SchedulerConfig != "" {
		return fmt.Errorf("a scheduler configuration (%s) makes no sense without the scheduler", o.SchedulerConfig)
	}
	if o.NoScheduler && o.ReplaceDefault {
		return errors.New("replacing the default scheduler makes no sense without the scheduler")
	}
	if o.ReplaceDefault && o.SchedulerConfig != "" {
		return fmt.Errorf("the scheduler has one configuration: that of the replacement for the default scheduler, or %s",
			o.SchedulerConfig)
	}
	if len(o.Controllers) > 0 && !o.NoKubelet {
		return fmt.Errorf("naming controllers (%s) makes no sense without NoKubelet: all of them run",
			strings.Join(o.Controllers, ","))
	}
	return nil
}

// checkFiles checks the files that the components need.
func (o *Options) checkFiles() error {
	if o.SchedulerConfig != "" {
		info, err := os.Stat(o.SchedulerConfig)
		if err != nil {
			return fmt.Errorf("reading the scheduler configuration: %w", err)
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("scheduler configuration %s: must be a regular file", o.SchedulerConfig)
		}
	}
	if o.APIServer != "" {
		if _, err := os.Stat(o.APIServer); err != nil {
			return fmt.Errorf("finding the executable of the API server: %w", err)
		}
	}
	if !o.NoScheduler {
		if _, err := os.Stat(o.SchedulerBinary()); err != nil {
			return fmt.Errorf("finding the scheduler's executable beside berth: %w", err)
		}
	}
	return nil
}

// ShippedConfig is the path of the default scheduler configuration in the shipped manifests.
func (o *Options) ShippedConfig() string {
	if o.ReplaceDefault {
		return "replace-default/scheduler-config.yaml"
	}
	return "base/scheduler-config.yaml"
}

// SchedulerBinary is the path of the scheduler's executable.
func (o *Options) SchedulerBinary() string {
	return filepath.Join(filepath.Dir(o.Binary), "berth-scheduler")
}
