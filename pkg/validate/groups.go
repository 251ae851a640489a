package validate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/read/grouptree"
)

// namedGroup is a group of Kubernetes or of another scheduler.
type namedGroup struct {
	d     *document
	state read.OwnerState
	// reported says that a warning about its fields has been added.
	reported bool
}

// declares keeps the group in the document, if it is one, for the pods that name it.
func (d *document) declares() {
	kind, known := read.GroupKindOf(schema.FromAPIVersionAndKind(d.APIVersion, d.Kind))
	obj := &unstructured.Unstructured{}
	if !known || json.Unmarshal(d.json, &obj.Object) != nil {
		return
	}
	state := kind.States(obj)[""]
	if state.Why != "" {
		d.find(Error, "gang", "spec", strings.TrimPrefix(state.Why, kind.Title()+" "+obj.GetName()+": "))
	}
	if d.report.groups == nil {
		d.report.groups = map[gang.ID]*namedGroup{}
	}
	owner := read.Owner{Kind: kind.Kind, Namespace: nameIn(d.namespace, "").Namespace, Name: obj.GetName()}
	d.report.groups[owner.Gang()] = &namedGroup{d: d, state: state}
}

// namedGroups warns of missing groups of the pods of the profiles, and of unsupported fields of groups and their
// parents.
func (r *Report) namedGroups(profiles []string) {
	for _, pod := range r.inventory.pods {
		m, err := (*read.OwnerPolicy)(nil).GangOf(pod.pod)
		kind, known := read.OwnerKindOf(m.Owner.Kind)
		if err != nil || !known || kind.Object == "" || !slices.Contains(profiles, pod.pod.Spec.SchedulerName) {
			continue
		}
		owner := m.Owner
		owner.Namespace = nameIn(pod.pod.Namespace, "").Namespace
		owner.Priority = max(owner.Priority, r.inventory.priorities[owner.Class])
		for range grouptree.MaxDepth {
			if owner.Name == "" {
				break
			}
			group := r.groups[owner.Gang()]
			if group == nil {
				// Only PodGroups of Berth's own kind were read from the cluster.
				if !r.inventory.clustered {
					title, _, _ := strings.Cut(owner.Object(), " "+owner.Namespace+"/")
					pod.d.findAt(Warning, "no-group", pod.d.line(pod.at), fmt.Sprintf(
						"there is no %s %s in the files: without one in the cluster the pods wait", title, owner.Name))
				}
				break
			}
			if unkept := group.state.NotKept(&owner); unkept != "" && !group.reported {
				group.reported = true
				group.d.findAt(Warning, "no-effect", group.d.line("spec"), "not followed: "+unkept)
			}
			r.inventory.levels(group.d, "spec", group.state.PodGroup(gang.ID{}), &v1.Pod{})
			owner.Kind, owner.Name = read.CompositeGroup, group.state.Node.Parent
		}
	}
}
