package gpuaware

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/require"
)

// ahead is an API server that is ahead of the informer: it has another version of one pod, and takes patches of that
// only.
type ahead struct {
	pod *v1.Pod
	// conflicts is how many patches it has refused, and changes how many of these are followed by another version.
	conflicts, changes int
	patched            []byte
}

func (a *ahead) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	patch, _ := action.(clienttesting.PatchAction)
	var said struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(patch.GetPatch(), &said); err != nil {
		return true, nil, err
	}
	if version := said.Metadata.ResourceVersion; said.Metadata.UID != a.pod.UID || version != "" &&
		version != a.pod.ResourceVersion {
		a.conflicts++
		return true, nil, apierrors.NewConflict(v1.Resource("pods"), patch.GetName(),
			errors.New("the object has been modified"))
	}
	a.patched = patch.GetPatch()
	return true, a.pod, nil
}

func (a *ahead) get(clienttesting.Action) (bool, runtime.Object, error) {
	answer := a.pod.DeepCopy()
	if a.changes > 0 {
		a.changes--
		a.pod.ResourceVersion += "0"
	}
	return true, answer, nil
}

func TestAPodIsToldItsDevicesAsItIsNow(t *testing.T) {
	t.Parallel()
	const own = `{"pod":"p","node":"other","devices":[1],"milli":500}`
	for name, tc := range map[string]struct {
		change    func(*v1.Pod)
		changes   int
		want      string
		conflicts int
	}{
		"nothing has changed": {func(*v1.Pod) {}, 0, "", 0},
		"a label has changed": {func(p *v1.Pod) { p.ResourceVersion, p.Labels = "7", strs{"team": "a"} }, 0, "",
			1},
		"it changes a few times": {func(p *v1.Pod) { p.ResourceVersion = "7" }, 3, "", 4},
		"it changes all the time": {func(p *v1.Pod) { p.ResourceVersion = "7" }, 99, "the object has been modified",
			5},
		"another pod has taken its name": {func(p *v1.Pod) { p.UID = "other" }, 0, "the object has been modified", 1},
		"it was bound, without an answer": {func(p *v1.Pod) { p.ResourceVersion, p.Spec.NodeName = "7", "other" }, 0,
			"is bound to node other already", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, alone(defaultArgs()), sharedNode("n", 2))
			pod := podObject("p", nil, strs{"gpu-fraction": "0.5"})
			pod.ResourceVersion = "6"
			assumed, state, err := h.reserve(t, h.add(t, pod))
			require.NoError(t, err)
			await.Until(t, "the informer to know the pod", func() bool { return h.plugin.shared.seen(assumed) != nil })
			now := h.plugin.shared.seen(assumed).DeepCopy()
			now.Status.Conditions = []v1.PodCondition{{Type: gpuview.GPUsAssigned, Status: v1.ConditionTrue, Message: own}}
			tc.change(now)
			server := &ahead{pod: now, changes: tc.changes}
			h.client.PrependReactor("patch", "pods", server.patch)
			h.client.PrependReactor("get", "pods", server.get)

			said := h.plugin.PreBind(h.ctx, state, assumed, "n")
			if said.IsSuccess() != (tc.want == "") || !strings.Contains(said.Message(), tc.want) {
				t.Errorf("PreBind says %v, want %q", said, tc.want)
			}
			if told := server.patched != nil; told != said.IsSuccess() {
				t.Errorf("the pod was told: %v, although PreBind says %v", told, said)
			}
			if server.conflicts != tc.conflicts {
				t.Errorf("%d conflicts, want %d", server.conflicts, tc.conflicts)
			}
			h.plugin.Unreserve(h.ctx, state, assumed, "n")
			held, holds := h.plugin.shared.ledger.of(assumed.UID)
			if want := now.Spec.NodeName != "" && now.UID == assumed.UID; holds != want {
				t.Errorf("the pod holds devices when the promise was taken back: %v, want %v", holds, want)
			} else if holds {
				if diff := cmp.Diff(gpuview.Assignment{Node: "other", Devices: []int{1}},
					gpuview.Assignment{Node: held.Node, Devices: held.Devices}); diff != "" {
					t.Errorf("what the bound pod holds (-want +got):\n%s", diff)
				}
			}
		})
	}
}
