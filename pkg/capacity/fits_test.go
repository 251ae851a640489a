package capacity

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/process"
)

func TestIndexNeverRulesOutWhatFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := New(&process.Profiles{})
		node := drawNode(t)
		x.Feed.SetNode(node)
		var bound []*v1.Pod
		for i := range rapid.IntRange(0, 6).Draw(t, "bound pods") {
			pod := drawPod(t)
			pod.UID, pod.Spec.NodeName = apitypes.UID(fmt.Sprint(i)), node.Name
			x.Feed.SetPod(pod, gang.ID{})
			if uses(pod) {
				bound = append(bound, pod)
			}
		}
		info := framework.NewNodeInfo(bound...)
		info.SetNode(node)
		for i, pod := range shapesOfModel() {
			now, _ := x.Slots(x.Acquire(pod))
			if (&naiveRoom{}).why(pod, node) != "" {
				continue
			}
			if len(noderesources.Fits(pod, info, nil,
				noderesources.ResourceRequestsOptions{EnablePodLevelResources: true})) == 0 && now == 0 {
				t.Fatalf("a pod of shape %d fits by the scheduler's filters and not by the index", i)
			}
		}
	})
}
