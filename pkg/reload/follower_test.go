package reload

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What is tested replaces its process, so it runs in processes of their own: the test binary, which takes the part of
// the scheduler where this variable is set.
const followerVariable = "RELOAD_TEST_FOLLOWER"

// Words in a configuration of the tests that say what comes of it.
const (
	wrong       = "wrong"       // does not pass the check
	unstartable = "unstartable" // passes the check, and the scheduler does not start with it
	killed      = "killed"      // the check is killed: always, or once, as a file tells that it names
	panics      = "panics"      // the check ends by a panic, likewise
)

func TestMain(m *testing.M) {
	if role := os.Getenv(followerVariable); role != "" {
		os.Exit(followerMain(role == "leader"))
	}
	// The tests wait for looks at a file, a second each: more of them go on at a time than there are cores.
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// flagValue returns the last value of a flag of this process, as a scheduler reads its flags.
func flagValue(name string) (value string) {
	for _, arg := range os.Args[1:] {
		if v, found := strings.CutPrefix(arg, "--"+name+"="); found {
			value = v
		}
	}
	return value
}

// followerMain is a scheduler as far as its configuration is concerned. It says on its output what happens.
func followerMain(leads bool) int {
	checking := flagValue("write-config-to") != ""
	if checking {
		content, err := os.ReadFile(flagValue("config"))
		if err != nil || strings.Contains(string(content), wrong) {
			fmt.Fprintf(os.Stderr, "I0101 something before\nE0101 00:00:00.0 1 run.go:72] %s%s\n", commandFailed,
				strconv.Quote(fmt.Sprintf("cannot use %.40q: %v", content, err)))
			return 1
		}
		return disturbed(string(content))
	}
	config, err := Resume(flagValue("config"), flagValue("last-good-config"))
	if err != nil {
		fmt.Fprintln(os.Stdout, "cannot resume:", err)
		return 1
	}
	content, err := os.ReadFile(config.Path())
	if err == nil && (strings.Contains(string(content), wrong) || strings.Contains(string(content), unstartable)) {
		err = fmt.Errorf("not starting with %q", content)
	}
	ready := make(chan struct{})
	if err != nil {
		// The scheduler follows its file from before it starts.
		go config.Follow(context.Background(), saying{}, ready)
		fmt.Fprintln(os.Stdout, "ended:", config.Failed(context.Background(), err))
		return 1
	}
	fmt.Fprintf(os.Stdout, "in force: %q in process %d, which dies of %d\n", content, os.Getpid(), deathSignal)
	close(ready)
	scheduler := saying{}
	if leads {
		scheduler.file = flagValue("config")
	}
	config.Follow(context.Background(), scheduler, ready)
	return 0
}

// disturbed ends a check before it knows anything, if the configuration says so.
func disturbed(content string) int {
	if _, marker, once := strings.Cut(strings.TrimSpace(content), " once "); once {
		if _, err := os.Stat(marker); err == nil {
			return 0
		}
		if err := os.WriteFile(marker, nil, 0o600); err != nil {
			return 1
		}
	}
	switch {
	case strings.HasPrefix(content, killed):
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case strings.HasPrefix(content, panics):
		panic("no memory")
	}
	return 0
}

// saying is a scheduler that says what is asked of it. It leads if it has the name of its file, and then changes the
// file to what a second one beside it has as soon as a change has passed its check.
type saying struct{ file string }

func (s saying) Leads(context.Context) bool {
	if s.file == "" {
		return false
	}
	if err := os.Rename(s.file+laterSuffix, s.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(os.Stdout, "cannot change the file:", err)
	}
	return true
}

func (saying) Quiesce(context.Context) { fmt.Fprintln(os.Stdout, "quiesced") }
func (saying) Warn(_ context.Context, reason, note string) {
	fmt.Fprintf(os.Stdout, "warning %s: %s\n", reason, note)
}

// laterSuffix ends the name of the file beside the configuration whose content a leader takes.
const laterSuffix = ".later"

// awaitWithin bounds every wait: a change is looked at twice, a second apart, checked by a process and taken by
// another start.
const awaitWithin = 4 * time.Minute

// follower is such a process in a test.
type follower struct {
	cmd  *exec.Cmd
	file string
	copy string

	mu    sync.Mutex
	lines []string
	ended bool
	more  chan struct{}
}

// startFollower starts one whose file has the content.
func startFollower(t *testing.T, content, copied string, role string) *follower {
	t.Helper()
	dir := t.TempDir()
	f := &follower{file: filepath.Join(dir, "config.yaml"), copy: filepath.Join(dir, "copy.yaml")}
	f.write(t, content)
	if copied != "" {
		if err := os.WriteFile(f.copy, []byte(copied), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.start(t, role)
	return f
}

func (f *follower) start(t *testing.T, role string) {
	t.Helper()
	f.more = make(chan struct{}, 1)
	f.cmd = exec.Command(os.Args[0], "--config="+f.file, "--last-good-config="+f.copy)
	f.cmd.Env = append(os.Environ(), followerVariable+"="+role)
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := f.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.read(output)
	}()
	t.Cleanup(func() {
		_ = f.cmd.Process.Kill()
		<-done
		_ = f.cmd.Wait()
		if t.Failed() {
			t.Logf("the process said:\n%s", strings.Join(f.said(), "\n"))
		}
	})
}

func (f *follower) read(output io.Reader) {
	scanner := bufio.NewScanner(output)
	for open := true; open; {
		open = scanner.Scan()
		f.mu.Lock()
		if open {
			f.lines = append(f.lines, scanner.Text())
		}
		f.ended = !open
		f.mu.Unlock()
		select {
		case f.more <- struct{}{}:
		default:
		}
	}
}

func (f *follower) said() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.lines)
}

// count is how many of the lines so far have the text.
func (f *follower) count(text string) (n int) {
	for _, line := range f.said() {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// await waits until n lines have the text.
func (f *follower) await(t *testing.T, n int, text string) {
	t.Helper()
	deadline := time.NewTimer(awaitWithin)
	defer deadline.Stop()
	for f.count(text) < n {
		f.mu.Lock()
		ended := f.ended
		f.mu.Unlock()
		if ended && f.count(text) < n {
			t.Fatalf("the process ended with %d lines of %q, want %d", f.count(text), text, n)
		}
		select {
		case <-f.more:
		case <-deadline.C:
			t.Fatalf("%d lines of %q, want %d", f.count(text), text, n)
		}
	}
}

// write replaces the file, as documents tell people to.
func (f *follower) write(t *testing.T, content string) {
	t.Helper()
	next := f.file + ".next"
	if err := errors.Join(os.WriteFile(next, []byte(content), 0o600), os.Rename(next, f.file)); err != nil {
		t.Fatal(err)
	}
}

// awaitCopy waits until the copy has the content.
func (f *follower) awaitCopy(t *testing.T, want string) {
	t.Helper()
	ticker, deadline := time.NewTicker(20*time.Millisecond), time.NewTimer(awaitWithin)
	defer ticker.Stop()
	defer deadline.Stop()
	for {
		content, err := os.ReadFile(f.copy)
		if err == nil && string(content) == want {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("the copy has %q (error %v), want %q", content, err, want)
		}
	}
}

// inForce is the line of a process that works with the content.
func inForce(content string) string { return fmt.Sprintf("in force: %q", content) }
