package gpuaware

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/process"
)

// boundKey keeps a pod that turned out to be bound.
const boundKey fwk.StateKey = "berth.dev/" + Name + "/bound"

type boundMark struct{ pod *v1.Pod }

// Clone returns the mark, whose pod nothing changes.
func (m boundMark) Clone() fwk.StateData { return m }

// foundBound is the pod of the cycle if PreBind has found it bound, nil if not.
func foundBound(cycle fwk.CycleState) *v1.Pod {
	data, err := cycle.Read(boundKey)
	if err != nil {
		return nil
	}
	mark, _ := data.(boundMark)
	return mark.pod
}

// tell writes the patch that word makes of the newest pod, nil for nothing to write.
func (p *Plugin) tell(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod,
	word func(*v1.Pod) ([]byte, error)) error {
	err := process.Tell(ctx, p.handle.ClientSet().CoreV1(), pod, p.cluster.seen(pod),
		process.Message{Kind: types.StrategicMergePatchType, Word: word, Subresources: []string{"status"}})
	if bound := (*process.BoundError)(nil); errors.As(err, &bound) {
		cycle.Write(boundKey, boundMark{bound.Pod})
	}
	if err != nil {
		return fmt.Errorf("telling pod %s/%s its GPUs: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
