package reload

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// What keeps a check from being made says nothing of the configuration.
func TestOnlyWhatTheProgramRefusesIsRefused(t *testing.T) {
	t.Parallel()
	late, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	t.Cleanup(cancel)
	ended := func(script string) error { return exec.Command("sh", "-c", script).Run() }
	for name, tc := range map[string]struct {
		ctx     context.Context
		err     error
		output  string
		refused bool
		want    string
	}{
		"the program ends with an error": {err: ended("exit 1"), output: commandFailed + `"no such field"`, refused: true, want: "no such field"},
		"the program ends with an error and says nothing": {err: ended("exit 1"), refused: true,
			want: "the check ended with: exit status 1"},
		"the program cannot be started": {err: fmt.Errorf("fork/exec: %w", syscall.EAGAIN),
			want: "the check could not be made: fork/exec: resource temporarily unavailable"},
		"the program is killed": {err: ended("kill -KILL $$"), output: "I0101 a\n",
			want: "the check could not be made: signal: killed"},
		"the program panics": {err: ended("exit 2"), output: "fatal error: newosproc\n",
			want: "the check could not be made: exit status 2: fatal error: newosproc"},
		"the time is over": {ctx: late, err: ended("kill -KILL $$"), want: "the check could not be made: not within 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.ctx == nil {
				tc.ctx = t.Context()
			}
			got := judge(tc.ctx, tc.err, tc.output)
			if refused := !errors.Is(got, errNotChecked); refused != tc.refused || got.Error() != tc.want {
				t.Errorf("refused: %t, want %t; it says %q, want %q", refused, tc.refused, got, tc.want)
			}
		})
	}
	if err := judge(t.Context(), nil, "I0101 a log\n"); err != nil {
		t.Errorf("a check without an error says %v", err)
	}
}

func TestACheckThatCannotBeMadeIsTriedAgainLaterAndLater(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	var p postponed
	for i, want := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second,
		80 * time.Second,
		160 * time.Second, 5 * time.Minute, 5 * time.Minute} {
		if got := p.postpone("a", at); got != want {
			t.Errorf("after failure %d it is tried again after %s, want %s", i+1, got, want)
		}
		if !p.holds("a", at.Add(want-time.Millisecond)) || p.holds("a", at.Add(want)) {
			t.Errorf("after failure %d it is not tried again exactly after %s", i+1, want)
		}
	}
	if p.holds("b", at) {
		t.Error("another configuration waits")
	}
	if got := p.postpone("b", at); got != 5*time.Second {
		t.Errorf("another configuration is tried again after %s, want 5s", got)
	}
}

func TestACheckThatIsKilledIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]string{"killed": killed, "a panic": panics} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFollower(t, "a: 1\n", "", "standby")
			f.await(t, 1, inForce("a: 1\n"))
			content := how + " once " + filepath.Join(t.TempDir(), "marker") + "\n"
			f.write(t, content)
			f.await(t, 1, "warning ConfigurationNotChecked: "+f.file+": the check could not be made: ")
			f.await(t, 1, inForce(content))
			f.awaitCopy(t, content)
			if n := f.count("ConfigurationNotChecked"); n != 1 || f.count(rejected) != 0 {
				t.Errorf("%d warnings that the check was not made, want 1; %d rejections, want 0", n, f.count(rejected))
			}
		})
	}
}

// What waits for its next check does not keep another configuration, nor the one in force, waiting.
func TestAnotherConfigurationIsCheckedAtOnce(t *testing.T) {
	t.Parallel()
	f := startFollower(t, "a: 1\n", "", "standby")
	f.await(t, 1, inForce("a: 1\n"))
	f.write(t, killed+" always\n")
	f.await(t, 1, "ConfigurationNotChecked")
	f.write(t, "a: 1\n")
	letLook()
	f.write(t, killed+" always\n")
	f.await(t, 2, "ConfigurationNotChecked")
	f.write(t, "a: 2\n")
	f.await(t, 1, inForce("a: 2\n"))
}
