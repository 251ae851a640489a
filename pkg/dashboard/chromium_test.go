package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"berth.dev/berth/pkg/overview"
)

// frame shows the page at the width of a phone and, once it follows the cluster, writes down what is wrong: what sticks out, what
// was not drawn, what has no name for a screen reader, and whether it follows. The browser takes its picture when all has loaded,
// hence the image that the server holds back until then.
const frame = `<!doctype html><title>frame</title>
<img src="held" alt=""><iframe src="page/" style="width:390px;height:844px;border:0"></iframe>
<script>
document.querySelector("iframe").onload = () => {
  const page = document.querySelector("iframe").contentDocument;
  const look = () => {
    const state = page.getElementById("state").textContent;
    if (!state.startsWith("Live")) { setTimeout(look, 50); return; }
    const within = e => e.closest(".scroll, svg, .skip");
    const out = [...page.querySelectorAll("body *")].filter(e => !within(e) && e.getBoundingClientRect().right > 390.5);
    const unseen = [...page.querySelectorAll(".map svg, figure > svg")].filter(e => e.getBoundingClientRect().height < 5);
    const unnamed = [...page.querySelectorAll("a, input, select, button")].filter(e => !(e.textContent.trim() || e.ariaLabel || e.labels?.length));
    document.title = "wider by " + (page.documentElement.scrollWidth - page.documentElement.clientWidth) +
      ", out=" + out.map(e => e.outerHTML.slice(0, 80)).join() + ", unseen=" + unseen.length + ", unnamed=" + unnamed.length;
    fetch("looked");
  };
  look();
};
</script>`

// TestThePageWorksInABrowser lays the live page out in a real browser.
func TestThePageWorksInABrowser(t *testing.T) {
	t.Parallel()
	chromium := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil && chromium == "" {
			chromium = path
		}
	}
	if chromium == "" {
		t.Skip("no Chromium here: the page is not laid out")
	}
	s := New(Source{Name: strings.Repeat("a-long-context-name.", 8), Cluster: func() *overview.Cluster {
		c := cluster()
		for i := range 300 {
			n := c.Nodes[0]
			n.Name, n.Rack = fmt.Sprint("node-", i), strings.Repeat("r", 63)
			c.Nodes = append(c.Nodes, n)
		}
		c.Queue[0].Reason = strings.Repeat("gang needs 24 × 8 nvidia.com/gpu, fits 22: 18 nodes with too few GPUs; ", 5)
		return c
	}, PodsOn: func(string) []overview.PodOn { return nil }})
	now := time.Now()
	for i := range 10 {
		s.history = append(s.history, sample{now.Add(time.Duration(i) * sampleEvery), cluster().Totals})
	}
	mux, looked, look := http.NewServeMux(), make(chan struct{}), sync.Once{}
	mux.HandleFunc("GET /looked", func(http.ResponseWriter, *http.Request) { look.Do(func() { close(looked) }) })
	mux.HandleFunc("GET /held", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-looked:
		case <-time.After(4 * time.Minute):
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(frame)) })
	mux.HandleFunc("/page/", func(w http.ResponseWriter, r *http.Request) {
		inner := r.Clone(r.Context())
		inner.URL.Path = "/" + s.token + strings.TrimPrefix(r.URL.Path, "/page")
		s.ServeHTTP(framed{w}, inner)
	})
	server := httptest.NewUnstartedServer(mux)
	s.hosts = []string{server.Listener.Addr().String()}
	server.Start()
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--user-data-dir="+filepath.Join(t.TempDir(), "profile"), "--enable-logging=stderr", "--dump-dom", server.URL+"/")
	cmd.WaitDelay = 10 * time.Second // its children keep its output open
	var said bytes.Buffer
	cmd.Stderr = &said
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("running %s: %v\n%s", chromium, err, &said)
	}
	server.CloseClientConnections() // the page follows until then
	if complaints := regexp.MustCompile(`(?m)^.*CONSOLE.*$`).FindAllString(said.String(), -1); complaints != nil {
		t.Errorf("the browser complains:\n%s", strings.Join(complaints, "\n"))
	}
	title := regexp.MustCompile(`(?s)<title>.*?</title>`).FindString(string(dom))
	if want := "<title>wider by 0, out=, unseen=0, unnamed=0</title>"; title != want {
		t.Errorf("on a screen 390 pixels wide: %s, want nothing that is wider, not drawn or without a name: %s", html.UnescapeString(title), want)
	}
}

// framed lets the test's own page look into the frame, which the real headers forbid.
type framed struct {
	http.ResponseWriter
}

func (f framed) WriteHeader(status int) {
	policy := f.Header().Get("Content-Security-Policy")
	f.Header().Set("Content-Security-Policy", strings.Replace(policy, "frame-ancestors 'none'", "frame-ancestors 'self'", 1))
	f.ResponseWriter.WriteHeader(status)
}

func (f framed) Write(data []byte) (int, error) {
	policy := f.Header().Get("Content-Security-Policy")
	f.Header().Set("Content-Security-Policy", strings.Replace(policy, "frame-ancestors 'none'", "frame-ancestors 'self'", 1))
	return f.ResponseWriter.Write(data)
}

// Unwrap lets the server flush and set deadlines.
func (f framed) Unwrap() http.ResponseWriter { return f.ResponseWriter }
