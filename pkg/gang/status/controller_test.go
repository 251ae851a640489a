package status

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/test/harness/require"
)

// granted is an API server that takes every request, which it is told with its body.
type granted func(r *http.Request, body []byte)

func (g granted) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	g(r, body)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"kind":"Pod","apiVersion":"v1"}`))}, nil
}

// busyAPI is an API server that takes each write to a status, two milliseconds after the one before.
type busyAPI struct {
	groups, pods cache.Store
	// turn holds a token while a write is taken. A mutex would hold up the virtual clock.
	turn chan struct{}

	mu sync.Mutex
	// told is when each PodGroup and each pod was last told why it waits.
	told map[string]time.Time
	// writes counts those to PodGroups and to pods.
	writes map[string]int
}

func (a *busyAPI) take(t *testing.T, r *http.Request, body []byte) {
	a.turn <- struct{}{}
	pass(2 * time.Millisecond)
	<-a.turn
	a.mu.Lock()
	defer a.mu.Unlock()
	kind, name := "pods", path.Base(path.Dir(r.URL.Path))
	var err error
	if strings.Contains(r.URL.Path, "/podgroups/") {
		kind = "podgroups"
		err = merge(a.groups, name, body, func(old any) any { return old.(*schedulingv1alpha1.PodGroup).DeepCopy() })
	} else {
		err = merge(a.pods, name, body, func(old any) any { return old.(*v1.Pod).DeepCopy() })
	}
	if err != nil {
		t.Error(err)
	}
	a.writes[kind]++
	a.told[kind+"/"+name] = time.Now()
}

// merge changes the stored object as a patch of its status says, whose lists are whole.
func merge(store cache.Store, name string, patch []byte, copied func(any) any) error {
	old, _, err := store.GetByKey("ns/" + name)
	if err != nil {
		return err
	}
	object := copied(old)
	if err := json.Unmarshal(patch, object); err != nil {
		return err
	}
	return store.Update(object)
}

// crowd is a controller with gangs of two that wait.
type crowd struct {
	*Controller
	ledger *gang.Ledger
	api    *busyAPI
	ids    []gang.ID
}

// newCrowd makes a controller that runs until ctx is done.
func newCrowd(ctx context.Context, t *testing.T, gangs int) *crowd {
	t.Helper()
	pods := newPods()
	c := &crowd{api: &busyAPI{groups: cache.NewStore(cache.MetaNamespaceKeyFunc), pods: pods, turn: make(chan struct{}, 1),
		told: map[string]time.Time{}, writes: map[string]int{}}}
	source := newSource(nil, pods)
	source.Members.Groups = c.api.groups
	c.Controller = New(source)
	c.ledger = gang.NewLedger(time.Minute, nil)
	c.source.Ledger = c.ledger
	api := granted(func(r *http.Request, body []byte) { c.api.take(t, r, body) })
	c.Start(ctx, newClient(t, api), &events.FakeRecorder{}, nil)
	now := metav1.Now()
	for g := range gangs {
		id := gang.ID{Namespace: "ns", Name: fmt.Sprintf("g%d", g)}
		c.ids = append(c.ids, id)
		pg := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name,
			UID: apitypes.UID(id.Name), CreationTimestamp: now}}
		pg.Spec.MinMember = 2
		require.NoError(t, c.api.groups.Add(pg))
		c.ledger.Define(id, gang.Object, gang.Spec{Minimum: gang.Minimum{Total: 2}, Created: now.Time, UID: gang.UID(pg.UID),
			Timeout: time.Minute}, now.Time)
		for m := range 2 {
			name := fmt.Sprintf("%s-%d", id.Name, m)
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: name, UID: apitypes.UID(name),
				CreationTimestamp: now}}
			require.NoError(t, pods.Add(pod))
			c.ledger.Observe(id, gang.Member{Ref: gang.Ref{UID: gang.UID(name), Namespace: id.Namespace, Name: name},
				Created: now.Time, State: gang.Pending,
				Class: "c", Ours: true}, now.Time)
		}
		c.Enqueue(id)
	}
	return c
}

// newClient writes to the transport.
func newClient(t *testing.T, transport http.RoundTripper) Client {
	t.Helper()
	config := &restclient.Config{Host: "http://api.invalid", QPS: -1, Transport: transport}
	groupClient, err := informers.NewCustomClient(config, Kind)
	require.NoError(t, err)
	client, err := clientset.NewForConfig(config)
	require.NoError(t, err)
	return Client{Groups: groupClient, Pods: client}
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
}

// say gives all gangs another reason.
func (c *crowd) say(words string) {
	for _, id := range c.ids {
		c.ledger.Agenda.RuleOut(id, obstacle.Text(words), time.Now())
		c.Enqueue(id)
	}
}

// written returns how many writes there were.
func (a *busyAPI) written() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writes["podgroups"] + a.writes["pods"]
}

// last is how long ago the last PodGroup and the last pod were told.
func (c *crowd) last(since time.Time) (group, pod time.Duration) {
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	for name, at := range c.api.told {
		if strings.HasPrefix(name, "podgroups/") {
			group = max(group, at.Sub(since))
		} else {
			pod = max(pod, at.Sub(since))
		}
	}
	return group, pod
}

func TestTheReasonsOfACrowdFollowTheCluster(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		gangs  int
		within time.Duration
	}{
		{100, 5 * time.Second},
		{1000, 25 * time.Second}, // 3,000 messages
	} {
		t.Run(fmt.Sprintf("%d gangs", tt.gangs), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				c := newCrowd(ctx, t, tt.gangs)
				c.say("no room on 1 node")
				pass(5 * time.Minute)
				before, changed := c.api.written(), time.Now()
				c.say("no room on 2 nodes")
				pass(5 * time.Minute)
				cancel()
				synctest.Wait()
				if writes := c.api.written() - before; writes != 3*tt.gangs {
					t.Errorf("%d writes, want one for each PodGroup and each of two members", writes)
				}
				if group, pod := c.last(changed); max(group, pod) > tt.within {
					t.Errorf("the last PodGroup was told after %s, the last pod after %s; want %s", group, pod, tt.within)
				}
			})
		})
	}
}

func TestAClusterThatNeverRestsCostsABoundedNumberOfWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := newCrowd(ctx, t, 1500)
		c.say("no room on 0 nodes")
		pass(5 * time.Minute)
		c.api.mu.Lock()
		clear(c.api.writes)
		c.api.mu.Unlock()
		const seconds = 20
		for i := range seconds {
			c.say(fmt.Sprintf("no room on %d nodes", i+1))
			pass(time.Second)
		}
		c.api.mu.Lock()
		writes := c.api.writes["podgroups"] + c.api.writes["pods"]
		c.api.mu.Unlock()
		if most := messagesAtOnce + messagesPerSecond*seconds; writes > most || writes < most*9/10 {
			t.Errorf("%d writes in %d s, want a little under %d", writes, seconds, most)
		}
		cancel()
		pass(time.Minute) // what is under way comes to its end
	})
}

// What one namespace's webhooks hold up does not hold up others.
func TestNamespacesHaveWorkersOfTheirOwn(t *testing.T) {
	t.Parallel()
	var n namespaces
	id := func(namespace string, i int) gang.ID { return gang.ID{Namespace: namespace, Name: fmt.Sprint(i)} }
	for i := range workersOfNamespace {
		if !n.enter(id("busy", i)) {
			t.Fatalf("gang %d waits", i)
		}
	}
	for range 2 { // one that changes while it waits, waits once
		for i := range 3 {
			if n.enter(id("busy", workersOfNamespace+i)) {
				t.Fatal("one gang too many is synced")
			}
		}
	}
	if !n.enter(id("other", 0)) {
		t.Error("another namespace waits")
	}
	for i := range 3 {
		if next, waits := n.leave(id("busy", 0)); !waits || next != id("busy", workersOfNamespace+i) {
			t.Errorf("%v comes next, %t; want those that waited in their order", next, waits)
		}
		if i < 2 {
			n.enter(id("busy", workersOfNamespace+i))
		}
	}
	if _, waits := n.leave(id("other", 0)); waits || n.lines["other"] != nil || len(n.lines["busy"].waiting) > 0 {
		t.Errorf("%v at the end", n.lines)
	}
}
