package reload

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const rejected = "warning ConfigurationRejected"

// letLook gives a process the time to read its file some times more. Nothing tells that it has, because nothing is to
// happen.
func letLook() { <-time.After(3 * look) }

func TestAWrongFileIsRejectedOnceAndARightOneIsTaken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ content, says string }{
		"a mistake":           {"a: wrong\n", `cannot use "a: wrong\n"`},
		"an empty file":       {"", "the file is empty"},
		"a file of blanks":    {" \n\t\n", "the file is empty"},
		"half a file":         {"profiles: [wro", ""},
		"bytes of a program":  {"\x00\x7fwrong\xff", "cannot use"},
		"a very large file":   {strings.Repeat("# wrong\n", 1<<17), "cannot use"},
		"a reason over lines": {"a:\n\n- wrong", "cannot use"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFollower(t, "a: 1\n", "", "standby")
			f.await(t, 1, inForce("a: 1\n"))
			if name == "half a file" {
				// The rest is written when the half has been rejected.
				tc.content, tc.says = "profiles: [wrong", "cannot use"
			}
			f.write(t, tc.content)
			f.await(t, 1, rejected)
			// The same content in a new file is not tried again.
			f.write(t, tc.content)
			letLook()
			f.write(t, "a: 2\n")
			f.await(t, 1, inForce("a: 2\n"))
			if n := f.count(rejected); n != 1 || f.count(tc.says) != 1 {
				t.Errorf("%d warnings, want one that says %q", n, tc.says)
			}
			f.awaitCopy(t, "a: 2\n")
		})
	}
}

func TestAChangeKeepsTheProcessAndStopsTheSchedulerBefore(t *testing.T) {
	t.Parallel()
	f := startFollower(t, "a: 1\n", "", "standby")
	f.await(t, 1, inForce("a: 1\n"))
	for i := 2; i <= 3; i++ {
		f.write(t, fmt.Sprintf("a: %d\n", i))
		f.await(t, 1, inForce(fmt.Sprintf("a: %d\n", i)))
	}
	// A scheduler that dies with its parent still does so.
	process := fmt.Sprintf(" in process %d, which dies of %d", f.cmd.Process.Pid, f.cmd.SysProcAttr.Pdeathsig)
	want := []string{inForce("a: 1\n") + process, "quiesced", inForce("a: 2\n") + process, "quiesced", inForce("a: 3\n") +
		process}
	if diff := cmp.Diff(want, f.said()); diff != "" {
		t.Errorf("the process said (-want +got):\n%s", diff)
	}
}

func TestTheSameContentAgainChangesNothing(t *testing.T) {
	t.Parallel()
	f := startFollower(t, "a: 1\n", "", "standby")
	f.await(t, 1, inForce("a: 1\n"))
	f.awaitCopy(t, "a: 1\n")
	f.write(t, "a: 1\n")
	letLook()
	f.write(t, "wrong\n")
	f.await(t, 1, rejected)
	f.write(t, "a: 1\n")
	letLook()
	f.write(t, "wrong, too\n")
	f.await(t, 2, rejected)
	if n := f.count("in force: "); n != 1 {
		t.Errorf("%d starts, want 1", n)
	}
}

func TestAFileThatIsGoneIsReportedOnceAndTakenWhenItComesBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		away, back func(*testing.T, *follower)
	}{
		"removed": {
			func(t *testing.T, f *follower) { try(t, os.Remove(f.file)) },
			func(t *testing.T, f *follower) { f.write(t, "a: 2\n") },
		},
		"a folder in its place": {
			func(t *testing.T, f *follower) { try(t, os.Remove(f.file)); try(t, os.Mkdir(f.file, 0o700)) },
			func(t *testing.T, f *follower) { try(t, os.Remove(f.file)); f.write(t, "a: 2\n") },
		},
		"a link to nothing": {
			func(t *testing.T, f *follower) { try(t, os.Remove(f.file)); try(t, os.Symlink("nothing", f.file)) },
			func(t *testing.T, f *follower) {
				// Renamed into place: what reads a file while it is being written is another test's.
				written, target := f.file+".next", filepath.Join(filepath.Dir(f.file), "nothing")
				try(t, os.WriteFile(written, []byte("a: 2\n"), 0o600))
				try(t, os.Rename(written, target))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFollower(t, "a: 1\n", "", "standby")
			f.await(t, 1, inForce("a: 1\n"))
			f.awaitCopy(t, "a: 1\n")
			tc.away(t, f)
			f.await(t, 1, "reading the configuration")
			tc.back(t, f)
			f.await(t, 1, inForce("a: 2\n"))
			if n := f.count(rejected); n != 1 {
				t.Errorf("%d warnings, want 1", n)
			}
		})
	}
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A kubelet changes a mounted ConfigMap by exchanging a link in the path of the file.
func TestALinkThatChangesIsAChange(t *testing.T) {
	t.Parallel()
	f := startFollower(t, "a: 1\n", "", "standby")
	dir := filepath.Dir(f.file)
	f.await(t, 1, inForce("a: 1\n"))
	f.awaitCopy(t, "a: 1\n")
	for i, content := range []string{"a: 1\n", "a: 2\n", "wrong\n", "a: 3\n"} {
		version := fmt.Sprintf("..%d", i)
		try(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		try(t, os.WriteFile(filepath.Join(dir, version, "config.yaml"), []byte(content), 0o600))
		try(t, os.Symlink(version, filepath.Join(dir, "..tmp")))
		try(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
		switch {
		case i == 0:
			try(t, os.Symlink("..data/config.yaml", filepath.Join(dir, "link")))
			try(t, os.Rename(filepath.Join(dir, "link"), f.file))
		case strings.Contains(content, wrong):
			f.await(t, 1, rejected)
		default:
			f.await(t, 1, inForce(content))
		}
	}
	if n := f.count("in force: "); n != 3 {
		t.Errorf("%d starts, want 3: content that stays is no change", n)
	}
}

func TestAConfigurationThatDoesNotStartIsTakenBack(t *testing.T) {
	t.Parallel()
	f := startFollower(t, "a: 1\n", "", "standby")
	f.await(t, 1, inForce("a: 1\n"))
	f.awaitCopy(t, "a: 1\n")
	f.write(t, "unstartable\n")
	f.await(t, 2, inForce("a: 1\n"))
	f.await(t, 1, rejected)
	f.awaitCopy(t, "a: 1\n")
	// It is not tried again, and the next one is.
	f.write(t, "unstartable\n")
	letLook()
	f.write(t, "a: 2\n")
	f.await(t, 1, inForce("a: 2\n"))
	if n := f.count(rejected); n != 1 {
		t.Errorf("%d warnings, want 1", n)
	}
}

func TestAStartWithAWrongFileTakesTheCopy(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"wrong": "wrong\n", "without effect until it starts": "unstartable\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFollower(t, content, "a: 1\n", "standby")
			f.await(t, 1, inForce("a: 1\n"))
			f.await(t, 1, rejected)
			f.write(t, "a: 2\n")
			f.await(t, 1, inForce("a: 2\n"))
			f.awaitCopy(t, "a: 2\n")
		})
	}
}

// The container then starts again, after a while that grows: there is no endless loop in it.
func TestAStartWithoutAnythingThatWorksEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ content, copied, says string }{
		"no copy":              {"wrong\n", "", `not starting with "wrong\n"`},
		"the copy is the file": {"wrong\n", "wrong\n", `not starting with "wrong\n"`},
		"a wrong copy, too":    {"wrong\n", "wrong copy\n", `not starting with "wrong copy\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFollower(t, tc.content, tc.copied, "standby")
			f.await(t, 1, "ended: "+tc.says)
			if n := f.count("ended"); n != 1 {
				t.Errorf("%d ends, want 1", n)
			}
		})
	}
}

func TestAStartWithoutAFileTakesTheCopy(t *testing.T) {
	t.Parallel()
	f := startFollower(t, "a: 1\n", "", "standby")
	f.await(t, 1, inForce("a: 1\n"))
	f.awaitCopy(t, "a: 1\n")
	again := &follower{file: filepath.Join(t.TempDir(), "gone.yaml"), copy: f.copy}
	again.start(t, "standby")
	again.await(t, 1, inForce("a: 1\n"))
	again.await(t, 1, rejected)
}

// The folder may be on a node that ran out of space, or not writable.
func TestACopyThatCannotBeKeptStopsNothing(t *testing.T) {
	t.Parallel()
	f := &follower{file: filepath.Join(t.TempDir(), "config.yaml"), copy: filepath.Join(t.TempDir(), "no-folder",
		"copy.yaml")}
	f.write(t, "a: 1\n")
	f.start(t, "standby")
	f.await(t, 1, inForce("a: 1\n"))
	f.write(t, "a: 2\n")
	f.await(t, 1, inForce("a: 2\n"))
}

// A leader waits until a standby has the configuration, and takes what is in the file then.
func TestALeaderTakesTheLastOfTwoChanges(t *testing.T) {
	t.Parallel()
	f := startFollower(t, "a: 1\n", "", "leader")
	f.await(t, 1, inForce("a: 1\n"))
	f.awaitCopy(t, "a: 1\n")
	try(t, os.WriteFile(f.file+laterSuffix, []byte("a: 3\n"), 0o600))
	f.write(t, "a: 2\n")
	f.await(t, 1, inForce("a: 3\n"))
	if n := f.count(inForce("a: 2\n")); n != 0 {
		t.Errorf("the first of the two changes was in force")
	}
}

func TestTheReasonIsTheErrorThatEndedTheScheduler(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ output, want string }{
		"nothing":     {"", ""},
		"blank lines": {"\n \n", ""},
		"a log and the error": {"I0101 a\nE0101 run.go:72] \"command failed\" err=\"no such field\"\nI0101 b\n",
			"no such field"},
		"an error over lines":         {`E0101 "command failed" err="one\n\ttwo"` + "\n", "one two"},
		"an error that is not quoted": {`E0101 "command failed" err=one`, "one"},
		"an error that is cut off":    {`E0101 "command failed" err="one`, `"one`},
		"flags that are not known":    {"Error: unknown flag: --x\n", "Error: unknown flag: --x"},
		"a panic":                     {"I0101 a\npanic: oh\n\ngoroutine 1 [running]:\nmain.main()\n", "panic: oh"},
		"a panic about a panic":       {"panic: oh\n\tpanic: no\n\ngoroutine 1 [running]:\n", "panic: oh"},
		"a runtime without threads": {
			"runtime: failed to create new OS thread\nfatal error: newosproc\n\nruntime stack:\n", "fatal error: newosproc"},
		"lines that end as on Windows": {"one\r\ntwo\r\n", "two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := reasonIn(tc.output); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

//nolint:paralleltest // the variable belongs to the process
func TestAStateThatCannotBeReadIsAnError(t *testing.T) {
	for name, state := range map[string]string{
		"empty": "", "no JSON": "x", "half": `{"inForce":`, "no such descriptor": `{"inForce":1048575,"lastGood":-1}`, "a word": `{"inForce":"3"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(stateVariable, state)
			if _, err := Resume("config.yaml", ""); err == nil {
				t.Error("no error")
			}
			if _, found := os.LookupEnv(stateVariable); found {
				t.Error("the variable is left to the processes that this one starts")
			}
		})
	}
}
