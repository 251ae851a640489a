package tools_test

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/test/harness/box"
)

// titleOf opens a page in a real browser and returns its title once it is laid out. The browser may not complain about
// the page.
func titleOf(t *testing.T, url string, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	flags = append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
		"--disable-sync",
		"--user-data-dir=" + filepath.Join(t.TempDir(), "profile"), "--enable-logging=stderr", "--dump-dom",
	}, flags...)
	cmd := exec.CommandContext(ctx, box.Installed(t, "chromium", "chromium"), append(flags, url)...)
	cmd.WaitDelay = 10 * time.Second // its children keep its output open
	var said bytes.Buffer
	cmd.Stderr = &said
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("running chromium: %v\n%s", err, &said)
	}
	if complaints := regexp.MustCompile(`(?m)^.*CONSOLE.*$`).FindAllString(said.String(), -1); complaints != nil {
		t.Errorf("the browser complains:\n%s", strings.Join(complaints, "\n"))
	}
	title := regexp.MustCompile(`(?s)<title>(.*?)</title>`).FindStringSubmatch(string(dom))
	if title == nil {
		t.Fatalf("the page has no title:\n%s", dom)
	}
	return title[1]
}
