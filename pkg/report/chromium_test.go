package report

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/pkg/replay/replayed"
)

// frame shows the page at the width of a phone and, when it is laid out, writes down what sticks out of it. A browser's own window
// cannot be made that narrow.
const frame = `<!doctype html><title>frame</title>
<iframe srcdoc="%s" style="width:390px;height:844px;border:0"></iframe>
<script>
onload = () => {
  const page = document.querySelector("iframe").contentDocument;
  const within = e => e.closest(".scroll, svg, details:not([open])");
  const out = [...page.querySelectorAll("body *")].filter(e => !within(e) && e.getBoundingClientRect().right > 390.5);
  const unseen = [...page.querySelectorAll("figure > svg")].filter(e => e.getBoundingClientRect().height < 20);
  const root = page.documentElement;
  document.title = "wider by " + (root.scrollWidth - root.clientWidth) + ", out=" + out.map(e => e.outerHTML.slice(0, 80)).join() + ", unseen=" + unseen.length;
};
</script>`

// TestThePageFitsAPhone lays the page out in a real browser.
func TestThePageFitsAPhone(t *testing.T) {
	t.Parallel()
	chromium := browser(t)
	c := comparison()
	// The longest words that a page may have to hold.
	c.Input = strings.Repeat("a-very-long-name-of-a-trace.", 5)
	c.B.Name = "manifests/" + strings.Repeat("scheduler-config-", 6) + ".yaml"
	c.Pending = append(c.Pending, PendingRow{Reason: "gang needs 24 × 8 nvidia.com/gpu, fits 22: 18 nodes with too few GPUs (need 8, have 4)", A: 1, B: 123456})
	for i := range 300 {
		c.A.Results[0].Map = append(c.A.Results[0].Map, replayed.NodeUse{Name: fmt.Sprint("node-", i), Rack: strings.Repeat("r", 63), Model: "T4", GPUs: 8, AllocatedMilli: 25 * i, Pods: i})
	}
	var page bytes.Buffer
	if err := WriteHTML(&page, c); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "frame.html")
	if err := os.WriteFile(path, fmt.Appendf(nil, frame, html.EscapeString(page.String())), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir="+filepath.Join(dir, "profile"), "--enable-logging=stderr",
		"--virtual-time-budget=5000", "--dump-dom", "file://"+path)
	cmd.WaitDelay = 10 * time.Second // its children keep its output open
	var said bytes.Buffer
	cmd.Stderr = &said
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("running %s: %v\n%s", chromium, err, &said)
	}
	if complaints := regexp.MustCompile(`(?m)^.*CONSOLE.*$`).FindAllString(said.String(), -1); complaints != nil {
		t.Errorf("the browser complains:\n%s", strings.Join(complaints, "\n"))
	}
	title := regexp.MustCompile(`(?s)<title>.*?</title>`).FindString(string(dom))
	if want := "<title>wider by 0, out=, unseen=0</title>"; title != want {
		t.Errorf("on a screen 390 pixels wide: %s, want nothing that is wider or not drawn: %s", html.UnescapeString(title), want)
	}
}

func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium here: the page is not laid out")
	return ""
}
