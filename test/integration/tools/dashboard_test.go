package tools_test

import (
	"context"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/screen/dashboard"
	"berth.dev/berth/test/harness/require"
)

// liveFrame shows the page at the width of a phone and, once it has plots and has followed a change of the cluster,
// writes down what is wrong: what sticks out, what was not drawn, what has no name for a screen reader, and what is
// not as on a page that is made then. The browser takes its picture when all has loaded, hence the image that the
// server holds back until then.
const liveFrame = `<!doctype html><title>frame</title>
<img src="held" alt=""><iframe src="page/" style="width:390px;height:844px;border:0"></iframe>
<script>
document.querySelector("iframe").onload = () => {
  const page = document.querySelector("iframe").contentDocument;
  const look = async () => {
    const state = page.getElementById("state").textContent;
    const followed = page.getElementById("queue").textContent.includes("has changed");
    if (!state.startsWith("Live") || !followed || !page.querySelector("figure > svg")) { setTimeout(look, 50); return; }
    const made = new DOMParser().parseFromString(await (await fetch("page/")).text(), "text/html");
    const differ = ["jobs", "gangs", "queue", "legend", "map", "namespaces", "nodes", "warnings"]
      .filter(id => page.getElementById(id).innerHTML !== made.getElementById(id).innerHTML);
    const within = e => e.closest(".scroll, svg, .skip");
    const out = [...page.querySelectorAll("body *")].filter(e => !within(e) && e.getBoundingClientRect().right > 390.5);
    const unseen = [...page.querySelectorAll(".map svg, figure > svg")].filter(e => e.getBoundingClientRect().height < 5);
    const unnamed = [...page.querySelectorAll("a, input, select, button")].filter(e => !(e.textContent.trim() || e.ariaLabel || e.labels?.length));
    document.title = "wider by " + (page.documentElement.scrollWidth - page.documentElement.clientWidth) +
      ", out=" + out.map(e => e.outerHTML.slice(0, 80)).join() + ", unseen=" + unseen.length + ", unnamed=" + unnamed.length +
      ", differ=" + differ.join();
    fetch("looked");
  };
  look();
};
</script>`

// largeCluster is one with long names.
func largeCluster() *overview.Cluster {
	gpus := []overview.GPU{
		{State: overview.Allocated, UsedMilliGPU: 1000}, {State: overview.Partial, UsedMilliGPU: 500},
		{State: overview.Stranded}, {State: overview.Unavailable},
	}
	const reason = "gang needs 24 × 8 nvidia.com/gpu, fits 22: 18 nodes with too few GPUs; "
	c := &overview.Cluster{
		Taken: time.Now(),
		Totals: overview.Totals{Nodes: 301, NodesWithGPUs: 301, NodesInUse: 301, GPUs: 1204, UnavailableGPUs: 301,
			AllocatedMilliGPU: 451_500, IdleMilliGPU: 451_500,
			StrandedMilliGPU: 301_000, MicroDollarsPerHour: 5_000_000, IdleMicroDollarsPerHour: 2_000_000, NodesWithoutPrice: 1,
			PendingPods: 1, PendingGangs: 1},
		Queue: []overview.Waiting{{Position: 1, Namespace: "team", Name: "q&a", Pod: "q&a", Pods: 1, MilliGPU: 4000,
			WaitSeconds: 90,
			Scheduler:   "berth-scheduler", Reason: strings.Repeat(reason, 5)}},
		Gangs: []overview.Gang{{Namespace: "team", Name: "g", MinMember: 2, Members: 1, WaitSeconds: 5, Reason: reason}},
		Warnings: []overview.Warning{{Time: time.Now(), Namespace: "team", Object: "Pod/q&a", Reason: "FailedScheduling",
			Message: reason, Count: 2}},
		LeftOut: []string{"volumes: " + reason},
	}
	for i := range 301 {
		c.Nodes = append(c.Nodes, overview.Node{Name: fmt.Sprint("node-", i), Model: "A100",
			Domain: podview.Domain{Level: "topology.kubernetes.io/rack", Value: strings.Repeat("r", 63)},
			State:  overview.Ready, Sharing: overview.Shared, GPUs: gpus, AllocatedMilliGPU: 1500,
			StrandedMilliGPU: 1000, Pods: 1, Priced: i > 0, MicroDollarsPerHour: 5_000_000})
	}
	return c
}

// TestTheDashboardWorksInABrowser lays the live page out in a real browser.
func TestTheDashboardWorksInABrowser(t *testing.T) {
	t.Parallel()
	asked := 0
	changing := func() *overview.Cluster {
		c := largeCluster()
		if asked++; asked > 2 { // fewer nodes and gangs, more that waits
			c.Nodes, c.Gangs = c.Nodes[:200], nil
			c.Queue = append(c.Queue, c.Queue...)
			c.Queue[1].Reason = "the reason has changed"
		}
		return c
	}
	server := dashboard.New(overview.Source{
		Name: strings.Repeat("a-long-context-name.", 8), Cluster: changing,
		PodsOn: func(string) overview.List { return overview.List{} },
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	address, served := make(chan string, 1), make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener, func(opened string) { address <- opened }) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	page, err := url.Parse(<-address)
	require.NoError(t, err)

	mux, looked, look := http.NewServeMux(), make(chan struct{}), sync.Once{}
	mux.HandleFunc("GET /looked", func(http.ResponseWriter, *http.Request) { look.Do(func() { close(looked) }) })
	mux.HandleFunc("GET /held", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-looked:
		case <-time.After(4 * time.Minute):
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(liveFrame)) })
	mux.Handle("/page/", http.StripPrefix("/page/", &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(page) },
		FlushInterval: -1,
		// The test's own page may look into the frame, which the real headers forbid.
		ModifyResponse: func(r *http.Response) error {
			policy := r.Header.Get("Content-Security-Policy")
			r.Header.Set("Content-Security-Policy", strings.Replace(policy, "frame-ancestors 'none'", "frame-ancestors 'self'",
				1))
			return nil
		},
	}))
	outer := httptest.NewServer(mux)
	defer outer.Close()
	title := titleOf(t, outer.URL+"/")
	outer.CloseClientConnections() // the page follows until then
	if want := "wider by 0, out=, unseen=0, unnamed=0, differ="; title != want {
		t.Errorf("on a screen 390 pixels wide: %s, want nothing that is wider, not drawn, without a name or other than on "+
			"a new page: %s", html.UnescapeString(title), want)
	}
}
