package explain

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/plugins"
	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/schedulerconfig"
)

// bystander makes a scheduler that never leads, so that it does not overwrite the status of gangs.
type bystander struct{}

// Leads is false.
func (bystander) Leads() bool { return false }

// world is the cluster in memory with its scheduler.
type world struct {
	*simulation.World
	fw     framework.Framework
	infos  []fwk.NodeInfo
	target *v1.Pod
	// percentage of nodes to score, of all profiles that have none of their own.
	percentage *int32
	// leader is the member that has planned for the target's gang, and led the state of its cycle.
	leader *v1.Pod
	led    fwk.CycleState
}

func explain(e *Explanation, configuration *schedulerconfig.Configuration, objects []runtime.Object,
	target *v1.Pod) error {
	w := &world{World: simulation.NewWorld(), target: target,
		percentage: configuration.Component.PercentageOfNodesToScore}
	if err := w.fill(objects); err != nil {
		return err
	}
	target = w.target
	defer w.Stop()
	err := w.Start(simulation.Setup{Config: configuration, Leader: bystander{}})
	if err != nil {
		return err
	}
	w.Settle()
	// A waiting gang is tried a moment after its members are known.
	time.Sleep(time.Second) //nolint:forbidigo // virtual time
	w.Settle()
	ctx := context.Background()
	w.fw = w.AllNodes[target.Spec.SchedulerName]
	if w.infos, err = w.Nodes(); err != nil {
		return err
	}
	if len(w.infos) == 0 {
		return errors.New("the cluster has no nodes")
	}
	e.PreEnqueue = w.preEnqueue(ctx, target)
	alone := target
	if gangs := coscheduling.Of(w.fw); gangs != nil {
		if id, minimum := gangs.Gang(target); id != (gang.ID{}) {
			e.Gang = w.gang(ctx, gangs, id, minimum, e.BoundTo != "")
			declared, _, _ := read.Of(target)
			alone = read.WithoutGang(target, declared != id)
			if e.Gang.Missing == "" && e.Gang.node(target.Name) == "" {
				alone = target // its gang decides which nodes it may use
			}
		}
	}
	if err := w.cycle(ctx, e, alone); err != nil {
		return err
	}
	if e.Gang != nil && e.Gang.Missing != "" && e.BoundTo == "" && w.leader != nil {
		e.Preemption = w.preempt(ctx, w.led, w.leader, nil)
	}
	for _, key := range plugins.Unread(target, w.fw.ListPlugins()) {
		e.Notes = append(e.Notes, key.String())
	}
	if len(w.Extenders) > 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("the configuration's %s %s not asked",
			plural.Of(len(w.Extenders), "extender"), plural.Choose(len(w.Extenders), "was", "were")))
	}
	return nil
}

// fill puts the cluster into the API, with the target unbound.
func (w *world) fill(objects []runtime.Object) error {
	key := types.NamespacedName{Namespace: w.target.Namespace, Name: w.target.Name}
	err := w.Fill(objects, func(obj runtime.Object) runtime.Object {
		if pod, ok := obj.(*v1.Pod); ok && key == (types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}) {
			return nil
		}
		return obj.DeepCopyObject()
	})
	if err != nil {
		return err
	}
	// The API owns what it is given, and fills in the UID by which plugins know the pod.
	stored := w.target.DeepCopy()
	if err := w.API.Create(stored); err != nil {
		return fmt.Errorf("filling the cluster: %w", err)
	}
	w.target = stored.DeepCopy()
	return nil
}

// preEnqueue runs the plugins that decide whether a pod enters the queue.
func (w *world) preEnqueue(ctx context.Context, pod *v1.Pod) []Rejection {
	var rejections []Rejection
	for _, plugin := range w.fw.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {
			rejections = append(rejections, Rejection{Plugin: plugin.Name(), Reasons: reasons(status)})
		}
	}
	return rejections
}

func reasons(status *fwk.Status) []string {
	if r := status.Reasons(); len(r) > 0 {
		return r
	}
	return []string{status.Code().String()}
}
