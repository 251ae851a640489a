package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/screen/tables"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/leak"
	"berth.dev/berth/test/harness/require"
)

func TestMain(m *testing.M) { leak.Main(m) }

const evil = `<script>alert("x")</script>`

// cluster is one in which every text would be harmful on a page.
func cluster() *overview.Cluster {
	gpus := []overview.GPU{{State: overview.Allocated, UsedMilliGPU: 1000}, {State: overview.Partial, UsedMilliGPU: 500},
		{State: overview.Stranded}, {State: overview.Unavailable}}
	return &overview.Cluster{
		Taken: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Totals: overview.Totals{Nodes: 2, NodesWithGPUs: 2, NodesInUse: 1, GPUs: 8, UnavailableGPUs: 2,
			AllocatedMilliGPU: 3000, IdleMilliGPU: 3000, StrandedMilliGPU: 2000,
			MicroDollarsPerHour: 5_000_000, IdleMicroDollarsPerHour: 2_000_000, NodesWithoutPrice: 1, PendingPods: 1,
			PendingGangs: 1},
		Nodes: []overview.Node{
			{Name: "a-1", Model: "A100", Domain: rack("r1"), State: overview.Ready, Sharing: overview.DevicePlugin, GPUs: gpus,
				AllocatedMilliGPU: 1500, StrandedMilliGPU: 1000, Pods: 1, Priced: true, MicroDollarsPerHour: 5_000_000},
			{Name: "t-1", Model: "T4", Domain: rack("r2"), State: overview.NotReady, Sharing: overview.Shared, GPUs: gpus,
				AllocatedMilliGPU: 1500, StrandedMilliGPU: 2000},
		},
		Jobs: []overview.Job{{Namespace: "team", Kind: "Job", Name: evil, State: overview.JobPending, Pods: 1,
			Reason: evil}},
		Queues:     []overview.Queue{{Namespace: "team", Name: evil, QuotaGPUs: -1}},
		Namespaces: []overview.Namespace{{Name: "team", Pods: 1}},
		Queue: []overview.Waiting{{Position: 1, Namespace: "team", Name: "q&a", Pod: "q&a", Pods: 1, MilliGPU: 4000,
			WaitSeconds: 90, Scheduler: "berth-scheduler", Reason: evil}},
		Gangs: []overview.Gang{{Namespace: "team", Name: "g", MinMember: 2, Members: 1, WaitSeconds: 5, Reason: evil}},
		Warnings: []overview.Warning{{Time: time.Date(2026, 3, 1, 11, 59, 0, 0, time.UTC), Namespace: "team",
			Object: "Pod/q&a", Reason: "FailedScheduling", Message: evil, Count: 2}},
		LeftOut: []string{evil},
	}
}

func rack(value string) podview.Domain { return podview.Domain{Level: "a/rack", Value: value} }

// started serves a source, and returns the server and its address.
func started(t *testing.T, change ...func(*overview.Source)) (*Server, string) {
	t.Helper()
	source := overview.Source{
		Name: "test " + evil, Cluster: cluster,
		PodsOn: func(string) overview.List {
			return overview.List{
				Columns: []tables.Column{{Name: "Pod"}, {Name: "GPUs", Number: true}, {Name: "Devices"}, {Name: "Gang"}},
				Rows: []overview.Row{{Kind: "pod", Namespace: "team", Name: "p",
					Cells: []any{"team/p", "1.5", "[0 1]", evil}}},
			}
		},
		Explain: func(_ context.Context, kind, namespace, name string, _ int) (string, error) {
			return kind + " " + namespace + "/" + name + " wins\n" + evil, nil
		},
	}
	for _, c := range change {
		c(&source)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	s := New(source)
	told, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener, func(address string) { told <- address }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return s, <-told
}

func get(t *testing.T, address string, change ...func(*http.Request)) (int, string, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	for _, c := range change {
		c(request)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body), response.Header
}

func TestOnlyThoseWhoKnowTheTokenAreLetIn(t *testing.T) {
	t.Parallel()
	_, address := started(t)
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	root := "http://" + parsed.Host
	token := strings.Trim(parsed.Path, "/")
	named := func(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }
	as := func(method string) func(*http.Request) { return func(r *http.Request) { r.Method = method } }
	tests := map[string]struct {
		address string
		change  []func(*http.Request)
		want    int
	}{
		"the address":             {address: address, want: http.StatusOK},
		"without its last stroke": {address: strings.TrimSuffix(address, "/"), want: http.StatusOK},
		"by the name localhost": {address: address,
			change: []func(*http.Request){named("localhost:" + parsed.Port())}, want: http.StatusOK},
		"without a token":           {address: root, want: http.StatusForbidden},
		"with another token":        {address: root + "/AAAAAAAAAAAAAAAAAAAAAAAAAA/", want: http.StatusForbidden},
		"with a part of the token":  {address: root + "/" + token[:10] + "/", want: http.StatusForbidden},
		"the style without a token": {address: root + "/style.css", want: http.StatusForbidden},
		"by the name of another site": {address: address,
			change: []func(*http.Request){named("attacker.example:" + parsed.Port())}, want: http.StatusForbidden},
		"by another port": {address: address, change: []func(*http.Request){named("127.0.0.1:1")},
			want: http.StatusForbidden},
		"a page that there is not": {address: address + "secrets", want: http.StatusNotFound},
		"a folder above":           {address: address + "%2e%2e/", want: http.StatusForbidden},
		"a write": {address: address, change: []func(*http.Request){as(http.MethodPost)},
			want: http.StatusMethodNotAllowed},
		"a node that there is not": {address: address + "node?name=gone", want: http.StatusNotFound},
		"a kind that cannot be explained": {address: address + "explain?kind=secret&namespace=team&name=s",
			want: http.StatusBadRequest},
		"an explanation of nothing": {address: address + "explain?kind=pod&namespace=team", want: http.StatusBadRequest},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, header := get(t, test.address, test.change...)
			assert.Equal(t, "status", test.want, code)
			if code == http.StatusOK && (!strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") ||
				header.Get("Referrer-Policy") != "no-referrer") {
				t.Errorf("headers are %v", header)
			}
		})
	}
}

func TestNothingThatUsersWriteIsTakenForThePage(t *testing.T) {
	t.Parallel()
	_, address := started(t)
	for path, want := range map[string]string{
		"":                            "q&amp;a",
		"node?name=a-1":               "team/p",
		"namespace?name=team":         "its share of the nodes",
		"namespace?name=%3Cscript%3E": "No pod of namespace",
		"node?name=%3Cscript%3E":      "There is no node",
		"%3Cscript%3E":                "There is no page",
		"explain?kind=pod&namespace=team&name=%3Cscript%3E": "wins",
		"?filter=%22%3E%3Cscript%3E":                        "Nothing waits for this filter",
	} {
		_, body, _ := get(t, address+path)
		if strings.Contains(body, "<script>") {
			t.Errorf("%q has a script of a user:\n%s", path, body)
		}
		assert.Contains(t, body, want)
	}
}

func TestThePageSaysWhatThereIs(t *testing.T) {
	t.Parallel()
	_, address := started(t)
	_, body, _ := get(t, address)
	assert.Contains(t, body, "38% of 8", "2.0 stranded", "$5.00", "$2.00 of it idle, 1 node without a price",
		"0 gated, 1 gang", "rack=r1  A100: 1.5 of 4 GPUs in 1 node", "<span>r1  A100</span>", "GPUs by rack and model",
		`aria-label="a-1, Ready: 1.5 of 4 GPUs allocated, 1 stranded"`,
		`href="explain?kind=pod&amp;name=q%26a&amp;namespace=team"`, `href="node?name=a-1"`)
	_, body, _ = get(t, address+"?filter=T4")
	if strings.Contains(body, "node?name=a-1") || !strings.Contains(body, "node?name=t-1") {
		t.Errorf("filtered, the page is\n%s", body)
	}
}

// follow reads the events of a page.
func follow(ctx context.Context, t *testing.T, address string) (next func() map[string]string, code int) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"events", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	lines := bufio.NewReader(response.Body)
	return func() map[string]string {
		for {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				parts := map[string]string{}
				require.NoError(t, json.Unmarshal([]byte(data), &parts))
				return parts
			}
		}
	}, response.StatusCode
}

func TestAPageFollowsTheCluster(t *testing.T) {
	t.Parallel()
	var gone atomic.Bool
	server, address := started(t, func(s *overview.Source) {
		s.Cluster = func() *overview.Cluster {
			c := cluster()
			if gone.Load() {
				c.Queue = nil
			}
			return c
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	next, _ := follow(ctx, t, address)
	if first := next(); len(first) != len(parts) {
		t.Errorf("a page that begins to follow is told of %d parts, want all %d: some may have changed since it was made",
			len(first), len(parts))
	}
	gone.Store(true)
	server.mu.Lock()
	server.latest = nil // what all pages are shown is kept for a moment otherwise
	server.mu.Unlock()
	for changes := next(); ; changes = next() {
		if queue, changed := changes["queue"]; changed {
			assert.Contains(t, queue, "Nothing waits")
			if _, changed := changes["gangs"]; changed {
				t.Error("gangs, which are as before, are sent again")
			}
			return
		}
	}
}

func TestPagesThatFollowAreBounded(t *testing.T) {
	t.Parallel()
	s, address := started(t)
	for range mostStreams {
		s.streams <- struct{}{}
	}
	if _, code := follow(t.Context(), t, address); code != http.StatusServiceUnavailable {
		t.Errorf("one page too many is answered with %d", code)
	}
	<-s.streams
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, code := follow(ctx, t, address); code != http.StatusOK {
		t.Errorf("after one has gone, the next is answered with %d", code)
	}
}

func TestAnExplanationThatFailsIsSaid(t *testing.T) {
	t.Parallel()
	_, address := started(t, func(s *overview.Source) {
		s.Explain = func(context.Context, string, string, string, int) (string, error) {
			return "", errors.New("there is no pod " + evil)
		}
	})
	code, body, _ := get(t, address+"explain?kind=pod&namespace=team&name=p")
	if code != http.StatusOK || !strings.Contains(body, "there is no pod &lt;script&gt;") {
		t.Errorf("status %d:\n%s", code, body)
	}
}

func TestTheLastAnswerIsAwaited(t *testing.T) {
	t.Parallel()
	begun, returned := make(chan struct{}), make(chan struct{})
	source := overview.Source{Cluster: cluster, Explain: func(ctx context.Context, _, _, _ string, _ int) (string,
		error) {
		close(begun)
		<-ctx.Done()
		select {
		case <-returned:
			t.Error("Serve returned while an explanation was still being made")
		case <-time.After(100 * time.Millisecond):
		}
		return "", ctx.Err()
	}}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var others sync.WaitGroup
	defer others.Wait()
	err = New(source).Serve(ctx, listener, func(address string) {
		others.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				address+"explain?kind=pod&namespace=team&name=p", nil)
			if err != nil {
				t.Error(err)
				return
			}
			// The connection may be closed before the answer is there.
			if response, err := http.DefaultClient.Do(request); err == nil {
				_ = response.Body.Close()
			}
		})
		others.Go(func() {
			<-begun
			cancel()
		})
	})
	close(returned)
	if err != nil {
		t.Error(err)
	}
}
