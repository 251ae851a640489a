package plugins_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/pkg/plugins/ipreservation"
	"berth.dev/berth/test/harness/framework"
	"berth.dev/berth/test/harness/objects"
	"berth.dev/berth/test/harness/require"
)

// addressed is a scheduler with IPReservation alone, and a node in each of two racks.
type addressed struct {
	*framework.Scheduler
	plugin *ipreservation.Plugin
}

// addressSetup has a node in each of two racks.
func addressSetup(tb testing.TB, texts ...string) framework.Setup {
	tb.Helper()
	return framework.Setup{
		Profile: framework.Alone("berth-scheduler", ipreservation.Name, nil),
		Plugins: frameworkruntime.Registry{ipreservation.Name: ipreservation.New},
		API:     customAPI(tb, texts...),
		Objects: []runtime.Object{racked("a", "r1"), racked("b", "r2")},
	}
}

// giveOut starts the plugin on what addressSetup reads.
func giveOut(tb testing.TB, texts ...string) *addressed {
	tb.Helper()
	return startAddressed(tb, addressSetup(tb, texts...))
}

func startAddressed(tb testing.TB, setup framework.Setup) *addressed {
	tb.Helper()
	s := framework.Start(tb, setup)
	return &addressed{s, framework.Plugin[*ipreservation.Plugin](tb, s)}
}

// beside starts the plugin in another scheduler of the same cluster.
func beside(tb testing.TB, api *memapi.Server) *addressed {
	tb.Helper()
	setup := addressSetup(tb)
	setup.API, setup.Objects = api, nil
	return startAddressed(tb, setup)
}

func racked(name, rack string) *v1.Node {
	return objects.Labelled(objects.Node(name, "cpu", "8"), "rack", rack)
}

// asking makes a pod that asks for an address of a pool, or for none.
func asking(name, pool string) *v1.Pod {
	p := objects.Pod(name).SchedulerName("berth-scheduler")
	if pool != "" {
		p.Annotation("berth.dev/ip-pool", pool)
	}
	return p.Obj()
}

// filter runs a pod up to Filter and returns for each node why it is refused, or under "" why it is refused everywhere.
func (a *addressed) filter(tb testing.TB, pod *v1.Pod) map[string]string {
	tb.Helper()
	return a.Cycle(tb, pod).Reasons()
}

// onlyNode is where pods with addresses are reserved and bound.
const onlyNode = "a"

func (a *addressed) reserve(tb testing.TB, pod *v1.Pod) fwk.CycleState {
	tb.Helper()
	o := a.Cycle(tb, pod)
	if reasons := o.Reasons(); reasons[""]+reasons[onlyNode] != "" {
		tb.Fatalf("pod %s cannot run on %s: %v", pod.Name, onlyNode, reasons)
	}
	if status := a.RunReservePluginsReserve(tb.Context(), o.State, pod, onlyNode); !status.IsSuccess() {
		tb.Fatalf("reserving for pod %s: %v", pod.Name, status)
	}
	return o.State
}

// preBind runs PreBind for a pod that was reserved, and gives back what was reserved if that fails.
func (a *addressed) preBind(tb testing.TB, state fwk.CycleState, pod *v1.Pod) string {
	tb.Helper()
	if status := a.RunPreBindPreFlights(tb.Context(), state, pod, onlyNode); !status.IsSuccess() && !status.IsSkip() {
		tb.Fatal(status)
	}
	status := a.RunPreBindPlugins(tb.Context(), state, pod, onlyNode)
	if status.IsSuccess() {
		return ""
	}
	a.RunReservePluginsUnreserve(tb.Context(), state, pod, onlyNode)
	return status.AsError().Error()
}

// mustBind reserves an address for a pod and writes it.
func (a *addressed) mustBind(tb testing.TB, pod *v1.Pod) {
	tb.Helper()
	if reason := a.preBind(tb, a.reserve(tb, pod), pod); reason != "" {
		tb.Fatalf("pod %s: %s", pod.Name, reason)
	}
}

// land binds a pod as a scheduler does, beside the framework.
func (a *addressed) land(t *testing.T, pod *v1.Pod) {
	t.Helper()
	binding := &v1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target: v1.ObjectReference{Kind: "Node", Name: onlyNode}}
	require.NoError(t, a.Client.CoreV1().Pods(pod.Namespace).Bind(t.Context(), binding, metav1.CreateOptions{}))
	synctest.Wait()
}

// add creates a pod, and returns when the informers have seen it.
func (a *addressed) add(tb testing.TB, pod *v1.Pod) *v1.Pod {
	tb.Helper()
	a.Create(tb, pod)
	synctest.Wait()
	return pod
}

func (a *addressed) annotation(pod, key string) string {
	return a.API.Get(v1.SchemeGroupVersion.WithResource("pods"), types.NamespacedName{Namespace: "default",
		Name: pod}).(*v1.Pod).Annotations[key]
}

// reservation is the spec of a reservation, nil if there is none.
func (a *addressed) reservation(name string) map[string]any {
	o, _ := a.API.Get(reservationsResource, types.NamespacedName{Name: name}).(*unstructured.Unstructured)
	if o == nil {
		return nil
	}
	return o.Object["spec"].(map[string]any)
}

// apply creates a pool or a reservation, or puts another in its place.
func (a *addressed) apply(tb testing.TB, text string) {
	tb.Helper()
	o, resource := customObject(tb, text), poolsResource
	if o.GetKind() == "IPReservation" {
		resource = reservationsResource
	}
	a.Apply(tb, resource, o)
}

// tried returns the names of the pods that were woken since it was called last.
func (a *addressed) tried() []string {
	pass(minute)
	return a.Woken()
}

// after does something after the first request of a kind, before its client has the answer.
type after struct {
	http.RoundTripper
	method, resource string
	once             *sync.Once
	do               func()
}

// doAfter makes a connection that does something after the first request of a kind.
func doAfter(method, resource string, do func()) func(http.RoundTripper) http.RoundTripper {
	return func(api http.RoundTripper) http.RoundTripper { return after{api, method, resource, &sync.Once{}, do} }
}

func (a after) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := a.RoundTripper.RoundTrip(req)
	if req.Method == a.method && strings.Contains(req.URL.Path, "/"+a.resource) {
		a.once.Do(a.do)
	}
	return answer, err
}

// blind is a connection on which lists and watches of a resource can be cut.
type blind struct {
	http.RoundTripper
	resource string

	mu      sync.Mutex
	cut     bool
	watches []io.Closer
}

func (b *blind) through(api http.RoundTripper) http.RoundTripper {
	b.RoundTripper = api
	return b
}

func (b *blind) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet || !strings.HasSuffix(req.URL.Path, "/"+b.resource) {
		return b.RoundTripper.RoundTrip(req)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cut {
		return nil, errors.New("no connection")
	}
	answer, err := b.RoundTripper.RoundTrip(req)
	if err == nil && req.URL.Query().Has("watch") {
		b.watches = append(b.watches, answer.Body)
	}
	return answer, err
}

// see ends what is cut, or cuts what is open.
func (b *blind) see(open bool) {
	b.mu.Lock()
	watches := b.watches
	b.cut, b.watches = !open, nil
	b.mu.Unlock()
	for _, w := range watches {
		_ = w.Close()
	}
}

// setArgs changes the args of the profile, which are the defaults.
func setArgs(setup framework.Setup, args *config.IPReservationArgs) framework.Setup {
	args.SetDefaults()
	setup.Profile = framework.Alone("berth-scheduler", ipreservation.Name, args)
	return setup
}
