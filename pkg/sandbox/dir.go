package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Layout is the folder of a sandbox, with the paths of the files in it.
type Layout string

// Kubeconfig is the administrator's kubeconfig.
func (d Layout) Kubeconfig() string { return filepath.Join(string(d), "kubeconfig") }

// Logs is the folder of the log files.
func (d Layout) Logs() string { return filepath.Join(string(d), "logs") }

// Keys is the folder of keys and certificates.
func (d Layout) Keys() Keys { return Keys(filepath.Join(string(d), "pki")) }

// Etcd is etcd's data folder.
func (d Layout) Etcd() string { return filepath.Join(string(d), "etcd") }

// Nodes is a copy of the nodes file.
func (d Layout) Nodes() string { return filepath.Join(string(d), "nodes.yaml") }

// SchedulerConfig is the configuration of the scheduler, with the path of its kubeconfig added.
func (d Layout) SchedulerConfig() string { return filepath.Join(string(d), "scheduler-config.yaml") }

// SchedulerKubeconfig is the kubeconfig of the scheduler, with the rights of its ServiceAccount only.
func (d Layout) SchedulerKubeconfig() string {
	return filepath.Join(string(d), "scheduler.kubeconfig")
}

func (d Layout) lock() string  { return filepath.Join(string(d), "berth.lock") }
func (d Layout) state() string { return filepath.Join(string(d), "state.json") }

// State is the content of state.json.
type State struct {
	// Options that the sandbox was started with.
	Options Options `json:"options"`
	// Server is the URL of the API server.
	Server string `json:"server"`
	// Etcd is the URL of etcd, for which clients need the API server's certificate.
	Etcd string `json:"etcd"`
	// Scheduler is the URL at which the scheduler serves its metrics and its health.
	Scheduler string `json:"scheduler,omitempty"`
	// PIDs by component: "control-plane", "scheduler", and with --split "etcd" and "kube-apiserver".
	PIDs map[string]int `json:"pids"`
}

// WriteState replaces state.json atomically.
func (d Layout) WriteState(s State) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the sandbox's state: %w", err)
	}
	tmp := d.state() + ".new"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return fmt.Errorf("writing the sandbox's state: %w", err)
	}
	if err := os.Rename(tmp, d.state()); err != nil {
		return fmt.Errorf("writing the sandbox's state: %w", err)
	}
	return nil
}

// ReadState reads state.json of a sandbox that is up.
func (d Layout) ReadState() (State, error) {
	var s State
	data, err := os.ReadFile(d.state())
	if err != nil {
		return s, fmt.Errorf("reading the sandbox's state: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("decoding %s: %w", d.state(), err)
	}
	return s, nil
}

// ErrUp says that a sandbox is already up in a folder.
var ErrUp = errors.New("a sandbox is already up here")

// acquire creates the folder if necessary and locks it until every process that has the returned file open has ended.
// The control plane inherits the file, so a crash ends the lock. A folder with other files is refused, because `berth
// down` removes its content.
func (d Layout) acquire() (*os.File, error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return nil, fmt.Errorf("creating the sandbox's folder: %w", err)
	}
	if _, err := os.Stat(d.lock()); errors.Is(err, os.ErrNotExist) {
		entries, err := os.ReadDir(string(d))
		if err != nil {
			return nil, fmt.Errorf("reading the sandbox's folder: %w", err)
		}
		if len(entries) > 0 {
			return nil, fmt.Errorf("%s is not empty and holds no sandbox (found %q): name another folder", d, entries[0].Name())
		}
	}
	lock, err := os.OpenFile(d.lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the sandbox's lock: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrUp
		}
		return nil, fmt.Errorf("locking %s: %w", d.lock(), err)
	}
	return lock, nil
}

// clean removes the files of a sandbox. The caller has the lock.
func (d Layout) clean() error {
	for _, path := range d.contents() {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing the sandbox's data: %w", err)
		}
	}
	return nil
}

// contents lists the files of a sandbox, except the lock file.
func (d Layout) contents() []string {
	return []string{
		d.Kubeconfig(), d.Logs(), string(d.Keys()), d.Etcd(), d.Nodes(), d.SchedulerConfig(),
		d.SchedulerKubeconfig(),
		d.state(), d.state() + ".new",
	}
}

// Remove removes the files of a sandbox, and its folder unless there are other files in it. The caller has the lock.
func (d Layout) Remove() error { return d.remove([]string{string(d)}) }

// remove cleans, removes the lock file and then those of the folders that are empty.
func (d Layout) remove(folders []string) error {
	if err := d.clean(); err != nil {
		return err
	}
	if err := os.Remove(d.lock()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the sandbox's lock: %w", err)
	}
	return removeEmpty(folders)
}

func removeEmpty(folders []string) error {
	for _, folder := range folders {
		if err := os.Remove(folder); err != nil && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing the sandbox's folder: %w", err)
		}
	}
	return nil
}

// missing returns the folder and those of its parents that do not exist, the deepest first.
func (d Layout) missing() []string {
	var folders []string
	for folder := string(d); ; folder = filepath.Dir(folder) {
		if _, err := os.Lstat(folder); !errors.Is(err, os.ErrNotExist) {
			return folders
		}
		folders = append(folders, folder)
	}
}
