package candidates

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"

	"berth.dev/berth/pkg/podview"
)

// refusal is that a filter turned away a pod of a kind from a node in that state. Nodes with as many volumes as they
// can have, or with the port in use, often rank first for pod after pod. While others pass, such nodes are passed over.
// If none does, the framework looks at all of them: what the filter said may have changed without the node.
type refusal struct {
	generation int64
	by, kind   string
}

// note remembers that a filter turned the pod away from the node.
func (r *ranking) note(info fwk.NodeInfo, status *fwk.Status) {
	if kind := r.kind(status.Plugin()); kind != "" {
		r.index.slots[r.index.byInfo[info]].refusal = refusal{info.GetGeneration(), status.Plugin(), kind}
	}
}

// refuses reports whether a filter has turned away such a pod from the node in its present state.
func (r *ranking) refuses(at int32) bool {
	s := &r.index.slots[at]
	return s.refusal.by != "" && s.refusal.generation == s.generation && s.refusal.kind == r.kind(s.refusal.by)
}

// kind is what a filter reads of the pod, for filters that are much work or refuse many nodes; empty for others.
func (r *ranking) kind(filter string) string {
	switch filter {
	case names.NodePorts:
		if r.ports == nil {
			r.ports = new(portsOf(r.pod))
		}
		return *r.ports
	case names.NodeVolumeLimits:
		if r.volumes == nil {
			r.volumes = new(r.volumesOf(r.pod))
		}
		return *r.volumes
	}
	return ""
}

func portsOf(pod *v1.Pod) string {
	var text strings.Builder
	for _, port := range schedutil.GetHostPorts(pod) {
		fmt.Fprintf(&text, "%s/%d/%s ", port.HostIP, port.HostPort, port.Protocol)
	}
	return text.String()
}

// volumesOf is the storage classes of the pod's volumes; empty if another pod uses one, for then a node that has it
// needs no more.
func (r *ranking) volumesOf(pod *v1.Pod) string {
	var classes []string
	for _, name := range podview.VolumeClaims(pod) {
		claim, err := r.plugins.claims.PersistentVolumeClaims(pod.Namespace).Get(name)
		if err != nil || r.SnapshotSharedLister().StorageInfos().IsPVCUsedByPods(pod.Namespace+"/"+name) {
			return ""
		}
		class := ""
		if claim.Spec.StorageClassName != nil {
			class = *claim.Spec.StorageClassName
		}
		classes = append(classes, class)
	}
	slices.Sort(classes)
	return fmt.Sprint(len(classes), classes)
}
