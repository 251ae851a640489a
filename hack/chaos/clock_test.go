package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// teller prints, for each line it reads, the time and how long it runs.
const teller = `package main

import ("bufio"; "fmt"; "os"; "time")

func main() {
	began := time.Now()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		now := time.Now()
		fmt.Println(now.Format(time.RFC3339Nano), now.Sub(began))
	}
}
`

func TestTheWallClockIsSteppedAndTheMonotonicOneIsNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	overlay, err := otherTime(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "teller")
	if err := os.WriteFile(program+".go", []byte(teller), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", program, program+".go")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	lost := exec.CommandContext(t.Context(), program)
	lost.Env = []string{clockEnv + "=" + filepath.Join(dir, "gone")}
	if said, err := lost.CombinedOutput(); err == nil || !strings.Contains(string(said), "opening the clock") {
		t.Errorf("without its clock it starts: %v: %s", err, said)
	}
	c := clock{filepath.Join(dir, "clock")}
	if err := c.set(0); err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), program)
	process.Env = []string{clockEnv + "=" + c.path}
	ask, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	answer := bufio.NewReader(answers)
	for _, ahead := range []time.Duration{0, time.Hour, 90*time.Second + 999_999_999, 0} {
		if err := c.set(ahead); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		if _, err := ask.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		line, err := answer.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		said, ran, _ := strings.Cut(strings.TrimSpace(line), " ")
		now, err := time.Parse(time.RFC3339Nano, said)
		if err != nil {
			t.Fatal(err)
		}
		if earliest, latest := before.Add(ahead), time.Now().Add(ahead); now.Before(earliest.Round(0)) ||
			now.After(latest.Round(0)) {
			t.Errorf("%s ahead, it is %s, not from %s to %s", ahead, now, earliest, latest)
		}
		if took, err := time.ParseDuration(ran); err != nil || took < 0 || took > time.Since(began) {
			t.Errorf("%s ahead, %s have passed (%v)", ahead, ran, err)
		}
	}
	if err := ask.Close(); err != nil {
		t.Error(err)
	}
	if err := process.Wait(); err != nil {
		t.Error(err)
	}
}
