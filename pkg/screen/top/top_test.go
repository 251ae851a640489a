package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/screen/tables"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/leak"
	"berth.dev/berth/test/harness/require"
)

func TestMain(m *testing.M) { leak.Main(m) }

func squares(letters string) []overview.GPU {
	var list []overview.GPU
	for _, l := range letters {
		list = append(list, map[rune]overview.GPU{'F': {State: overview.Free},
			'A': {State: overview.Allocated, UsedMilliGPU: 1000},
			'P': {State: overview.Partial, UsedMilliGPU: 500}, 'S': {State: overview.Stranded},
			'H': {State: overview.Stranded, UsedMilliGPU: 900}, 'U': {State: overview.Unavailable}}[l])
	}
	return list
}

func cluster() *overview.Cluster {
	return &overview.Cluster{
		Taken: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Totals: overview.Totals{Nodes: 4, NodesWithGPUs: 3, NodesInUse: 2, GPUs: 10, AllocatedMilliGPU: 4400,
			IdleMilliGPU: 4600, StrandedMilliGPU: 2000, UnavailableGPUs: 1, PendingPods: 4, PendingGangs: 1,
			MicroDollarsPerHour: 9_000_000, IdleMicroDollarsPerHour: 4_000_000},
		Nodes: []overview.Node{
			{Name: "a100-1", Model: "A100", Domain: rack("r1"), State: overview.Ready, Sharing: overview.DevicePlugin,
				GPUs: squares("AAFS"), AllocatedMilliGPU: 2000, StrandedMilliGPU: 1000, FreeCPUMilli: 4000, Pods: 2, Priced: true,
				MicroDollarsPerHour: 9_000_000},
			{Name: "a100-2", Model: "A100", Domain: rack("r1"), State: overview.Cordoned, Sharing: overview.DevicePlugin,
				GPUs: squares("UFFF"), FreeCPUMilli: 16000},
			{Name: "t4-1", Model: "T4", Domain: rack("r2"), State: overview.Ready, Sharing: overview.Shared, GPUs: squares("PH"),
				AllocatedMilliGPU: 1400, Pods: 3},
		},
		Queue: []overview.Waiting{
			{Position: 1, Namespace: "team", Name: "train", Gang: true, Pods: 3, Pod: "train-0", MilliGPU: 12000,
				WaitSeconds: 7200, Scheduler: "berth-scheduler", Reason: "needs 3 nodes, fits 2"},
			{Position: 2, Namespace: "team", Name: "solo", Pods: 1, Pod: "solo", MilliGPU: 500, WaitSeconds: 30,
				Scheduler: "berth-scheduler"},
		},
		Gangs: []overview.Gang{{Namespace: "team", Name: "train", MinMember: 3, Members: 3, MilliGPU: 12000,
			Phase: "PreScheduling", WaitSeconds: 7200, Reason: "needs 3 nodes, fits 2"},
			{Namespace: "team", Name: "runs", MinMember: 2, Members: 2, Scheduled: 2, Running: 2, MilliGPU: 2000, Nodes: 1,
				Started: true, Phase: "Running"}},
		Jobs: []overview.Job{
			{
				Namespace: "team", Kind: "Job", Name: "train", State: overview.JobPending, Pods: 3, MinMember: 3, MilliGPU: 12000,
				AgeSeconds: 7200,
				Queue:      &overview.Place{Name: "q", Position: 1}, Reason: "needs 3 nodes, fits 2",
			},
			{
				Namespace: "team", Kind: "Deployment", Name: "web", State: overview.JobRunning, Pods: 2, Scheduled: 2, Running: 2,
				MilliGPU: 2000,
				Nodes:    []string{"a", "b", "c"}, Domains: []podview.Domain{rack("r1")}, AgeSeconds: 60,
			},
		},
		Queues: []overview.Queue{{Namespace: "team", Name: "q", ClusterQueue: "c", Pending: 1, UsedGPUs: 2, QuotaGPUs: 8}},
		Warnings: []overview.Warning{{Time: time.Date(2026, 3, 1, 11, 59, 0, 0, time.UTC), Namespace: "team",
			Object: "Pod/train-0", Reason: "FailedScheduling", Message: "needs 3 nodes", Count: 4}},
		LeftOut: []string{"events: forbidden"},
	}
}

func rack(value string) podview.Domain { return podview.Domain{Level: "a/rack", Value: value} }

func TestJobs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, Jobs(&out, &overview.JobList{Jobs: cluster().Jobs, Queues: cluster().Queues,
		LeftOut: cluster().LeftOut}))
	const want = `left out: events: forbidden
 Name   Kind        State    Pods  GPUs  Where             Age  Queue          Reason
 train  Job         Pending   0/3    12  -                  2h  q, position 1  needs 3 nodes, fits 2
 web    Deployment  Running   2/2     2  3 nodes, rack=r1   1m  -

Queues of Kueue
 Queue   Cluster queue  Pending  Admitted  GPUs used  Quota  Borrowed  Waiting
 team/q  c                    1         0          2      8         0  train
`
	assert.Equal(t, "", want, out.String())
	out.Reset()
	if err := Jobs(&out, &overview.JobList{}); err != nil || out.String() != "no workloads\n" {
		t.Errorf("without workloads: %q, %v", out.String(), err)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := cluster()
	require.NoError(t, Status(&out, c, c.Status(overview.Health{Message: "healthy: s-1 leads"})))
	const want = `scheduler  healthy: s-1 leads
GPUs       4.4 of 10 GPUs allocated (44%), 4.6 idle (2 stranded), 1 unavailable
nodes      4 nodes, 3 with GPUs, 2 in use; $9.00 an hour, $4.00 of it idle
pods       4 pods pending; 1 gang pending
workloads  1 running, 1 pending
left out   events: forbidden

1 workload without all of its pods
 Name        Kind  State    Pods  GPUs  Where  Age  Queue          Reason
 team/train  Job   Pending   0/3    12  -       2h  q, position 1  needs 3 nodes, fits 2
`
	assert.Equal(t, "", want, out.String())
}

func TestTheRestOfAStatusIsWhatJobsLists(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	status := &overview.Status{Waiting: make([]overview.Job, mostWaiting+2)}
	require.NoError(t, Status(&out, &overview.Cluster{}, status))
	if want := "\nand 2 more (berth jobs -A)\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("printed %q, which does not end with %q", out.String(), want)
	}
}

func TestOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, Once(&out, cluster(), 1))
	const want = `4.4 of 10 GPUs allocated (44%), 4.6 idle (2 stranded), 1 unavailable
4 nodes, 3 with GPUs, 2 in use; $9.00 an hour, $4.00 of it idle
4 pods pending; 1 gang pending
left out: events: forbidden

█ allocated  ▁▂▃▄▅▆▇ partly used  · free  × stranded  ! unavailable
rack=r1  A100  2 of 8 GPUs in 2 nodes
██·× !···
rack=r2  T4  1.4 of 2 GPUs in 1 node
▄▇

Queue
 #  Name               Pods  GPUs  Priority  Waiting  Scheduler        Reason
 1  team/train (gang)     3    12         0       2h  berth-scheduler  needs 3 nodes, fits 2
and 1 more (--all)

Gangs
 Gang        On nodes  Needs  Members  GPUs  Nodes  Phase          Waiting  Reason
 team/train         0      3        3    12      0  PreScheduling       2h  needs 3 nodes, fits 2
and 1 more (--all)

Warnings
 Last seen  Times  Object            Reason            Message
        1m      4  team/Pod/train-0  FailedScheduling  needs 3 nodes
`
	assert.Equal(t, "printed", want, out.String())
}

func TestOnceFitsTheScreen(t *testing.T) {
	t.Parallel()
	for _, width := range []int{40, 60, 80, 120, 200} {
		var out bytes.Buffer
		require.NoError(t, Once(tables.Output{Writer: &out, Screen: tables.Screen{Width: width}}, cluster(), 0))
		for _, line := range strings.Split(out.String(), "\n") {
			if got := text.StringWidth(line); got > width {
				t.Errorf("with %d columns a line has %d: %q", width, got, line)
			}
		}
	}
}

func TestAnEmptyClusterIsShown(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, Once(&out, overview.NewStore(gpuview.Keys{}, overview.Pricing{}, nil).Cluster(time.Now()), 0))
	if want := "0 of 0 GPUs allocated (0%), 0 idle (0 stranded), 0 unavailable\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("printed %q", out.String())
	}
}

// keys are named as bubbletea does; anything else is typed letter by letter.
func press(m *Model, keys ...string) (commands []tea.Cmd) {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "down": tea.KeyDown, "up": tea.KeyUp,
		"pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp,
		"home": tea.KeyHome, "end": tea.KeyEnd, "backspace": tea.KeyBackspace, "tab": tea.KeyTab}
	for _, key := range keys {
		message := tea.KeyPressMsg{Text: key, Code: []rune(key)[0]}
		if code, ok := special[key]; ok {
			message = tea.KeyPressMsg{Code: code}
		}
		_, cmd := m.Update(message)
		commands = append(commands, cmd)
	}
	return commands
}

func live(change ...func(*overview.Source)) *Model {
	source := overview.Source{
		Cluster: cluster,
		Changed: make(chan struct{}),
		PodsOn: func(node string) overview.List {
			return overview.List{Rows: []overview.Row{{Kind: "pod", Namespace: "team", Name: "on-" + node,
				Cells: []any{"team/on-" + node, 2, "[0 1]", "g", 0, "2h"}}}}
		},
		Explain: func(_ context.Context, kind, namespace, name string, width int) (string, error) {
			return fmt.Sprintf("%s %s/%s wins in %d columns\n", kind, namespace, name, width), nil
		},
	}
	for _, c := range change {
		c(&source)
	}
	m := newModel(context.Background(), source, false)
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 16})
	return m
}

// chosen is the marked text of the screen.
func chosen(m *Model) string {
	screen := strings.Join(m.draw()[len(m.header()):], "\n")
	_, rest, ok := strings.Cut(screen, reverse)
	if !ok {
		return ""
	}
	line, _, _ := strings.Cut(rest, plain)
	return strings.TrimSpace(line)
}

// spaced is what stands between columns.
var spaced = regexp.MustCompile(" {2,}")

func TestKeys(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		keys []string
		want string
	}{
		"the map begins at the first node": {nil, "██·×"},
		"down the map":                     {[]string{"down"}, "!···"},
		"nodes":                            {[]string{"2"}, "a100-1  ██·×  2  1  4.0  2  $9.00  $0.00  A100  r1  Ready"},
		"nodes by stranded GPUs, the largest first": {[]string{"2", "s", "s", "s", "s", "S"},
			"a100-2  !···  0  0  16.0  0  -  -  A100  r1  Cordoned"},
		"nodes by use, the largest first": {[]string{"2", "s", "s", "s"},
			"a100-1  ██·×  2  1  4.0  2  $9.00  $0.00  A100  r1  Ready"},
		"below the last is the last": {[]string{"2", "end", "down", "pgdown"},
			"t4-1  ▄▇  1.4  0  0.0  3  -  -  T4  r2  Ready"},
		"above the first is the first": {[]string{"4", "up", "pgup"},
			"1  team/train (gang)  3  12  0  2h  berth-scheduler  needs 3 nodes, fits 2"},
		"the queue by waiting, shortest first": {[]string{"4", "s", "s", "s", "s", "s", "s", "S"},
			"2  team/solo  1  0.5  0  30s  berth-scheduler  not tried yet"},
		"a filter": {[]string{"4", "/", "s", "o", "l", "o", "enter"},
			"2  team/solo  1  0.5  0  30s  berth-scheduler  not tried yet"},
		"a filter that fits nothing": {[]string{"4", "/", "x", "y", "enter"}, ""},
		"a filter that is taken back": {[]string{"4", "/", "x", "y", "backspace", "backspace", "enter"},
			"1  team/train (gang)  3  12  0  2h  berth-scheduler  needs 3 nodes, fits 2"},
		"a filter on the map": {[]string{"/", "t", "4", "enter"}, "▄▇"},
		"gangs":               {[]string{"tab", "tab", "tab", "tab", "down"}, "team/runs  2  2  2  2  1  -"},
		"pods of a node": {[]string{"2", "enter"},
			"team/on-a100-1  2 GPU on [0 1]  priority 0  age 2h  gang g"},
		"another tab from the pods of a node": {[]string{"2", "enter", "4"},
			"1  team/train (gang)  3  12  0  2h  berth-scheduler  needs 3 nodes, fits 2"},
		"the next tab from the pods of a node": {[]string{"2", "enter", "tab", "tab"},
			"1  team/train (gang)  3  12  0  2h  berth-scheduler  needs 3 nodes, fits 2"},
		"back": {[]string{"2", "enter", "esc"},
			"a100-1  ██·×  2  1  4.0  2  $9.00  $0.00  A100  r1  Ready"},
		"enter in an empty list": {[]string{"4", "/", "x", "y", "enter", "enter"}, ""},
		"jobs":                   {[]string{"3"}, "team/train  Job  Pending  0/3  12  -  2h  needs 3 nodes, fits 2"},
		"the keys":               {[]string{"?"}, "1 to 8, Tab  Map, Nodes, Jobs, Queue, Gangs, Warnings, Namespaces, Kueue"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := live()
			press(m, test.keys...)
			if diff := cmp.Diff(test.want, spaced.ReplaceAllString(chosen(m), "  ")); diff != "" {
				t.Errorf("chosen (-want +got):\n%s\n%s", diff, strings.Join(m.draw(), "\n"))
			}
		})
	}
}

func TestTheQueueIsSortedByNumbers(t *testing.T) {
	t.Parallel()
	c := cluster()
	c.Queue = nil
	for _, position := range []int{2, 10, 0, 1} {
		c.Queue = append(c.Queue, overview.Waiting{Position: position, Name: fmt.Sprint("p", position), Scheduler: "s"})
	}
	m := live(func(s *overview.Source) { s.Cluster = func() *overview.Cluster { return c } })
	press(m, "4", "s")
	var got []string
	for _, e := range m.lines {
		got = append(got, e.cells[0])
	}
	assert.Equal(t, "positions, the largest first", []string{"10", "2", "1", "-"}, got)
}

func TestEnterExplains(t *testing.T) {
	t.Parallel()
	failing := func(s *overview.Source) {
		s.Explain = func(context.Context, string, string, string, int) (string, error) {
			return "", errors.New("the pod is gone")
		}
	}
	tests := map[string]struct {
		keys   []string
		change []func(*overview.Source)
		want   string
	}{
		"a pod of a node":      {keys: []string{"2", "enter", "enter"}, want: "pod team/on-a100-1 wins in 100 columns"},
		"a pod that waits":     {keys: []string{"4", "down", "enter"}, want: "pod team/solo wins in 100 columns"},
		"a gang that waits":    {keys: []string{"4", "enter"}, want: "pod team/train-0 wins in 100 columns"},
		"a gang":               {keys: []string{"5", "enter"}, want: "podgroup team/train wins in 100 columns"},
		"the pod of a warning": {keys: []string{"6", "enter"}, want: "pod team/train-0 wins in 100 columns"},
		"what cannot be said": {keys: []string{"4", "enter"},
			change: []func(*overview.Source){failing}, want: "the pod is gone"},
		"an answer for nothing": {keys: []string{"4", "enter", "esc"},
			want: "1  team/train (gang)  3  12  0  2h  berth-scheduler  needs 3 nodes, fits 2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := live(test.change...)
			for _, cmd := range press(m, test.keys...) {
				if cmd != nil {
					m.Update(cmd())
				}
			}
			assert.Equal(t, "chosen", test.want, spaced.ReplaceAllString(chosen(m), "  "))
		})
	}
}

// What was chosen stays chosen when the list changes under it.
func TestTheChosenEntryStays(t *testing.T) {
	t.Parallel()
	m := live()
	press(m, "4", "down")
	changed := cluster()
	changed.Queue = append([]overview.Waiting{{Position: 1, Namespace: "team", Name: "first", Pods: 1, Pod: "first"}},
		changed.Queue...)
	m.Update(refreshed{changed})
	if got := chosen(m); !strings.Contains(got, "team/solo") {
		t.Errorf("chosen is %q", got)
	}
	changed.Queue = changed.Queue[:1]
	m.Update(refreshed{changed})
	if got := chosen(m); !strings.Contains(got, "team/first") {
		t.Errorf("after it is gone, chosen is %q", got)
	}
}

func TestTheScreenIsAlwaysFull(t *testing.T) {
	t.Parallel()
	for _, size := range []tea.WindowSizeMsg{{Width: 1, Height: 1}, {Width: 20, Height: 8}, {Width: 80, Height: 24},
		{Width: 300, Height: 100}} {
		m := live()
		m.Update(size)
		for _, key := range []string{"1", "2", "4", "4", "5", "7", "8", "?"} {
			press(m, key, "down", "end")
			lines := m.draw()
			if len(lines) != m.height {
				t.Errorf("%dx%d, %s: %d lines", size.Width, size.Height, key, len(lines))
			}
			for _, line := range lines {
				if got := text.StringWidthWithoutEscSequences(line); got > m.width {
					t.Errorf("%dx%d, %s: %d columns: %q", size.Width, size.Height, key, got, line)
				}
			}
		}
	}
}
