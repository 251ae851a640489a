package scenarios_test

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
)

const (
	// vetoName is a plugin that Coscheduling knows nothing of either. It has a say in Permit and nowhere else.
	vetoName = "Veto"
	// vetoLabel is on nodes whose pods veto turns away after it has let them wait.
	vetoLabel = "scenario.test/veto"
)

// veto lets pods go at once, but for those on some nodes.
type veto struct{ handle fwk.Handle }

var (
	_ fwk.PermitPlugin      = veto{}
	_ fwk.EnqueueExtensions = veto{}
)

func newVeto(_ context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	return veto{handle}, nil
}

func (veto) Name() string { return vetoName }

// EventsToRegister names what may end the veto.
func (veto) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeLabel}}}, nil
}

func (v veto) Permit(_ context.Context, _ fwk.CycleState, pod *v1.Pod, name string) (*fwk.Status, time.Duration) {
	info, err := v.handle.SnapshotSharedLister().NodeInfos().Get(name)
	if err != nil {
		return fwk.AsStatus(err), 0
	}
	if info.Node().Labels[vetoLabel] != "late" {
		return nil, 0
	}
	time.AfterFunc(lateAnswer, func() {
		if w := v.handle.GetWaitingPod(pod.UID); w != nil {
			w.Reject(vetoName, "the node is vetoed")
		}
	})
	return fwk.NewStatus(fwk.Wait), time.Minute
}
