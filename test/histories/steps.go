package main

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/test/histories/history"
	"berth.dev/berth/test/invariants"
)

// do does what a step says.
func (w *world) do(s *history.Step) error {
	pod, node := types.NamespacedName{Namespace: history.Namespace, Name: s.Name}, types.NamespacedName{Name: s.Name}
	switch s.Do {
	case history.CreatePod:
		return w.createPod(s.Pod)
	case history.CreateGang:
		return w.create(s.Gang.Object())
	case history.AddNode:
		return w.create(s.Node.Objects()...)
	case history.DeletePod:
		delete(w.made, s.Name)
		return w.remove(s.Name)
	case history.KillPod:
		return w.remove(s.Name)
	case history.FailPod:
		return w.fail(s.Name)
	case history.MoveToGang:
		return w.moveToGang(s)
	case history.DeleteGang:
		w.api.Delete(podGroups, pod)
		w.deleteJob(s.Name)
	case history.RemoveNode:
		w.removeNode(node)
	case history.Restart:
		w.stop()
		if err := w.pass(s.Down.Duration); err != nil {
			return err
		}
		w.checker.Excuse()
		return w.start()
	default:
		return w.patch(s)
	}
	return nil
}

func (w *world) removeNode(node types.NamespacedName) {
	if w.api.Delete(nodes, node) {
		w.api.Delete(slicesOfDevices, node)
		w.removed = append(w.removed, node)
		w.collect()
	}
}

// patch does the steps that change an object.
func (w *world) patch(s *history.Step) error {
	var resource schema.GroupVersionResource
	var change map[string]any
	switch s.Do {
	case history.FinishPod:
		return w.end(s.Name, v1.PodSucceeded)
	case history.UngatePod:
		resource, change = pods, object("spec", object("schedulingGates", nil))
	case history.EditPod:
		resource, change = pods, object("metadata", object("labels", object(history.EditedLabel, s.Value)))
	case history.ScaleGang:
		if w.api.Get(jobs, types.NamespacedName{Namespace: history.Namespace, Name: s.Name}) != nil {
			resource, change = jobs, object("spec", object("parallelism", s.Count))
		} else {
			resource, change = podGroups, object("spec", object("minMember", s.Count))
		}
	case history.CordonNode, history.OpenNode:
		resource, change = nodes, object("spec", object("unschedulable", s.Do == history.CordonNode))
	case history.TaintNode:
		resource, change = nodes, object("spec", object("taints", history.StartTaints))
	case history.UntaintNode:
		resource, change = nodes, object("spec", object("taints", nil))
	case history.MoveNode:
		resource, change = nodes, object("metadata", object("labels", object(v1.LabelTopologyZone, s.Value)))
	case history.ResizeNode:
		return w.resize(s)
	default:
		return fmt.Errorf("%q is no step", s.Do)
	}
	return w.merge(resource, s.Name, change)
}

// end ends a pod. What has not run has not ended.
func (w *world) end(name string, phase v1.PodPhase) error {
	key := types.NamespacedName{Namespace: history.Namespace, Name: name}
	pod, ok := w.api.Get(pods, key).(*v1.Pod)
	if !ok || pod.Spec.NodeName == "" || podview.Finished(pod) {
		return nil
	}
	w.api.Delete(claims, claimOf(pod))
	return w.merge(pods, name, object("status", object("phase", phase)))
}

// fail lets a pod fail. A Job makes another one for it.
func (w *world) fail(name string) error {
	pod, ok := w.api.Get(pods, types.NamespacedName{Namespace: history.Namespace, Name: name}).(*v1.Pod)
	if err := w.end(name, v1.PodFailed); err != nil {
		return err
	}
	if p := w.made[name]; ok && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && !podview.Finished(pod) &&
		p != nil && p.Returns {
		w.again(p, false)
	}
	return nil
}

// moveToGang changes the gang of a pod, or takes it out of its gang.
func (w *world) moveToGang(s *history.Step) error {
	p := w.made[s.Name]
	if p == nil || p.Job && s.Value == "" { // its Job stays
		return nil
	}
	moved := *p
	moved.Gang, moved.Job, moved.MinAvailable = s.Value, false, 0
	w.made[s.Name] = &moved
	var label any
	if s.Value != "" {
		label = s.Value
	}
	return w.merge(pods, s.Name, object("metadata", object("labels", map[string]any{
		schedulingv1alpha1.PodGroupLabel: label, invariants.NameLabel: nil, invariants.MinAvailableLabel: nil,
	})))
}

func object(key string, value any) map[string]any { return map[string]any{key: value} }

// resize changes the GPUs that are allocatable, of a node that has some.
func (w *world) resize(s *history.Step) error {
	node, ok := w.api.Get(nodes, types.NamespacedName{Name: s.Name}).(*v1.Node)
	name := v1.ResourceName(gpuview.DefaultKeys().Resources[0])
	if !ok || node.Status.Allocatable.Name(name, resource.DecimalSI).IsZero() {
		return nil
	}
	return w.merge(nodes, s.Name, object("status", object("allocatable", object(string(name), fmt.Sprint(s.Count)))))
}

func (w *world) merge(gvr schema.GroupVersionResource, name string, change map[string]any) error {
	body, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	var client dynamic.ResourceInterface = w.user.Resource(gvr)
	if gvr != nodes && gvr != volumes {
		client = w.user.Resource(gvr).Namespace(history.Namespace)
	}
	_, err = client.Patch(context.Background(), name, types.MergePatchType, body, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
