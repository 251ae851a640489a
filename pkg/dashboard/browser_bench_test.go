package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth.dev/berth/pkg/overview"
)

// watchedFrame opens the page in a frame and writes into its title how long that took until the page was painted, and
// how long it took from each of three changes until what has changed was painted. The browser prints the title when
// all has loaded, hence the image that is held back until then.
const watchedFrame = `<!doctype html><title>frame</title><img src="held" alt="">
<script>
const painted = (window, done) => window.requestAnimationFrame(() => setTimeout(done));
const frame = document.createElement("iframe"), changes = [];
let opened;
window.followed = (ms) => {
  changes.push(ms);
  if (changes.length > 3) { document.title = [opened, ...changes.slice(1)].map(Math.round).join(" "); fetch("seen"); } // the first tells of nothing
};
frame.style = "width:1280px;height:900px;border:0";
frame.onload = () => painted(frame.contentWindow, () => { opened = performance.now() - begin; });
const begin = performance.now();
frame.src = "page/";
document.body.append(frame);
</script>`

// watchEvents stands before the page's own script, and tells the frame how long each change takes until it is painted.
const watchEvents = `const Events = EventSource;
window.EventSource = class extends Events {
  set onmessage(show) {
    super.onmessage = (event) => {
      const begin = performance.now();
      show(event);
      requestAnimationFrame(() => setTimeout(() => parent.followed(performance.now() - begin)));
    };
  }
};
`

// What a browser takes until the page of 5,000 nodes is painted, and until a change of it is; there is one every two
// seconds:
//
//	go test ./pkg/dashboard -run xxx -bench InABrowser -benchtime 5x
func BenchmarkFleetInABrowser(b *testing.B) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		b.Skip("there is no chromium in PATH")
	}
	var opened, followed []float64
	for b.Loop() {
		figures := inABrowser(b, chromium)
		opened, followed = append(opened, figures[0]), append(followed, figures[1:]...)
	}
	b.ReportMetric(0, "ns/op")
	slices.Sort(opened)
	slices.Sort(followed)
	b.ReportMetric(opened[len(opened)/2], "ms/opened")
	b.ReportMetric(followed[len(followed)/2], "ms/change")
	b.ReportMetric(followed[len(followed)-1], "ms/slowest-change")
}

// inABrowser returns the milliseconds until the page was painted, and until each change was.
func inABrowser(b *testing.B, chromium string) []float64 {
	b.Helper()
	var run atomic.Int64
	server := New(Source{Plan: nothingPlanned, Cluster: func() *overview.Cluster { return fleet(int(run.Add(1))) }})
	page := httptest.NewServer(server)
	defer page.Close()
	defer page.CloseClientConnections()
	target, err := url.Parse(page.URL)
	if err != nil {
		b.Fatal(err)
	}
	server.hosts = []string{target.Host}
	target.Path = "/" + server.token + "/"

	mux, seen, once := http.NewServeMux(), make(chan struct{}), sync.Once{}
	mux.HandleFunc("GET /seen", func(http.ResponseWriter, *http.Request) { once.Do(func() { close(seen) }) })
	mux.HandleFunc("GET /held", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-seen:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, watchedFrame) })
	mux.Handle("/page/", http.StripPrefix("/page/", &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			policy := r.Header.Get("Content-Security-Policy")
			r.Header.Set("Content-Security-Policy", strings.Replace(policy, "frame-ancestors 'none'", "frame-ancestors 'self'",
				1))
			if strings.HasSuffix(r.Request.URL.Path, "/live.js") {
				r.Body = io.NopCloser(io.MultiReader(strings.NewReader(watchEvents), r.Body))
				r.ContentLength = -1
				r.Header.Del("Content-Length")
			}
			return nil
		},
	}))
	outer := httptest.NewServer(mux)
	defer outer.Close()
	defer outer.CloseClientConnections()

	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu",
		"--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--window-size=1280,900", "--user-data-dir="+filepath.Join(b.TempDir(), "profile"), "--dump-dom",
		outer.URL+"/")
	cmd.WaitDelay = 10 * time.Second // its children keep its output open
	var failed bytes.Buffer
	cmd.Stderr = &failed
	dom, err := cmd.Output()
	if err != nil {
		b.Fatalf("running chromium: %v\n%s", err, &failed)
	}
	title := regexp.MustCompile(`<title>([\d ]+)</title>`).FindSubmatch(dom)
	if title == nil {
		b.Fatalf("the page has not been followed:\n%.500s\n%s", dom, &failed)
	}
	var figures []float64
	for _, field := range strings.Fields(string(title[1])) {
		var ms float64
		if _, err := fmt.Sscan(field, &ms); err != nil {
			b.Fatal(err)
		}
		figures = append(figures, ms)
	}
	return figures
}
