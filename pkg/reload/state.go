// Package reload lets a scheduler follow its configuration file without a restart of its pod.
//
// A scheduler cannot change its configuration while it runs: metrics, feature gates and informers belong to the
// process. So a new configuration is tried out by a second process of the same program, which builds all profiles and
// ends. If that succeeds, the scheduler stops taking pods, lets the bindings under way end, gives back its lease and
// replaces itself by a fresh start of the same program with the same arguments (execve): same process id, same
// container. If it does not, or if the fresh start fails, the last configuration that worked stays in force.
package reload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stateVariable is the environment variable by which a process tells the one that replaces it what it knows.
const stateVariable = "BERTH_CONFIG_STATE"

// Results of a reload, as in the metric berth_config_reload_total.
const (
	resultSuccess = "success"
	// resultRejected: the configuration did not pass its check, or there was none.
	resultRejected = "rejected"
	// resultFailed: the scheduler did not start with a configuration that had passed.
	resultFailed = "failed"
)

// handedOver is what one process tells the next.
type handedOver struct {
	// InForce and LastGood are descriptors of memory files with configurations; LastGood is -1 without one.
	InForce  int `json:"inForce"`
	LastGood int `json:"lastGood"`
	// Rejected is the hash of the content of the file that is not to be tried again.
	Rejected string `json:"rejected,omitempty"`
	// Noticed is when the change was seen.
	Noticed time.Time      `json:"noticed"`
	Counts  map[string]int `json:"counts"`
}

// Config is the configuration of this process and of those before it.
type Config struct {
	file, copyFile string
	// inForce is the configuration that this process runs with, lastGood the one to go back to if it does not start.
	inForce, lastGood []byte
	rejected          string
	postponed         postponed
	noticed           time.Time
	counts            map[string]int
	// path is where the configuration in force is read from.
	path string
	// resumed is set in a process that has replaced another.
	resumed bool

	// mu lets a start either work or fail: the one is found by Follow and the other by the goroutine that runs the
	// scheduler. It guards counts until the outcome is known; Follow alone has them after that.
	mu      sync.Mutex
	outcome outcome
}

// outcome is what came of the start of the scheduler in this process.
type outcome int

const (
	startGoesOn outcome = iota
	startWorked
	startFailed
)

// Resume returns the configuration to start with: the one that the process before this one handed over, or what is in
// the file. In copyFile, if it is not empty, is kept what worked last, for the next start of the container.
func Resume(file, copyFile string) (*Config, error) {
	c := &Config{file: file, copyFile: copyFile, path: file, counts: map[string]int{}}
	if encoded, found := os.LookupEnv(stateVariable); found {
		if err := os.Unsetenv(stateVariable); err != nil {
			return nil, fmt.Errorf("reading the state of the process before: %w", err)
		}
		return c, c.resume(encoded)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		// The scheduler says so when it reads the file.
		data = nil
	}
	c.inForce = data
	if c.copyFile != "" {
		// Without a copy there is nothing to go back to.
		c.lastGood, _ = os.ReadFile(c.copyFile)
	}
	return c, nil
}

func (c *Config) resume(encoded string) error {
	var before handedOver
	if err := json.Unmarshal([]byte(encoded), &before); err != nil {
		return fmt.Errorf("reading the state of the process before: %w", err)
	}
	c.resumed, c.rejected, c.noticed = true, before.Rejected, before.Noticed
	if before.Counts != nil {
		c.counts = before.Counts
	}
	c.path = descriptorPath(before.InForce)
	var err error
	if c.inForce, err = os.ReadFile(c.path); err != nil {
		return fmt.Errorf("reading the configuration that was handed over: %w", err)
	}
	unix.CloseOnExec(before.InForce)
	if before.LastGood >= 0 {
		if c.lastGood, err = os.ReadFile(descriptorPath(before.LastGood)); err != nil {
			return fmt.Errorf("reading the last configuration that worked: %w", err)
		}
		if err := unix.Close(before.LastGood); err != nil {
			return fmt.Errorf("closing the last configuration that worked: %w", err)
		}
	}
	return nil
}

// Path is the file that the scheduler is to load.
func (c *Config) Path() string { return c.path }

// replace replaces this process by a fresh start of itself, with the state and the configurations; lastGood is nil
// without one. It returns only if that fails.
func replace(inForce, lastGood []byte, state handedOver) error {
	state.LastGood = -1
	var err error
	if state.InForce, err = memoryFile(inForce); err != nil {
		return err
	}
	if lastGood != nil {
		if state.LastGood, err = memoryFile(lastGood); err != nil {
			return err
		}
	}
	encoded, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encoding the state: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	if strings.HasSuffix(self, " (deleted)") {
		self = "/proc/self/exe"
	}
	// The thread that calls exec becomes the main thread of what it starts, with its own death signal.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, deathSignal, 0, 0, 0); err != nil {
		return fmt.Errorf("keeping the death signal: %w", err)
	}
	if err := unix.Exec(self, os.Args, append(os.Environ(), stateVariable+"="+string(encoded))); err != nil {
		return fmt.Errorf("starting %s: %w", self, err)
	}
	return nil
}

// deathSignal is the signal that the kernel sends when the parent of this process dies, 0 for none. It belongs to the
// main thread, on which packages are initialized.
var deathSignal = func() uintptr {
	var signal int32
	if err := unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&signal)), 0, 0,
		0); err != nil { //nolint:gosec // as prctl(2) has it
		return 0
	}
	return uintptr(signal)
}()

// memoryFile makes a file in memory that a process started by exec inherits. The image has no file system to write to.
func memoryFile(content []byte) (int, error) {
	descriptor, err := unix.MemfdCreate("scheduler-config", 0)
	if err != nil {
		return 0, fmt.Errorf("making a file in memory: %w", err)
	}
	for rest := content; len(rest) > 0; {
		n, err := unix.Write(descriptor, rest)
		if err != nil {
			return 0, fmt.Errorf("writing a file in memory: %w", err)
		}
		rest = rest[n:]
	}
	return descriptor, nil
}

func descriptorPath(descriptor int) string { return fmt.Sprintf("/proc/self/fd/%d", descriptor) }

// keepCopy writes what works now where the next start of the container finds it.
func (c *Config) keepCopy() error {
	if c.copyFile == "" {
		return nil
	}
	// Renamed into place, so that no half of it is ever read.
	temporary := filepath.Join(filepath.Dir(c.copyFile), "."+filepath.Base(c.copyFile)+".new")
	err := os.WriteFile(temporary, c.inForce, 0o600)
	if err == nil {
		err = os.Rename(temporary, c.copyFile)
	}
	if err != nil {
		return fmt.Errorf("keeping a copy of the configuration: %w", err)
	}
	return nil
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}
