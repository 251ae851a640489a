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
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/grouptree"
)

// namedGroup is a group of Kubernetes or of another scheduler in the files.
type namedGroup struct {
	d     *document
	state gangview.OwnerState
	told  bool
}

// declares remembers the group that the document declares, if it is one, for the pods that name it.
func (d *document) declares() {
	kind, known := gangview.GroupKindOf(schema.FromAPIVersionAndKind(d.APIVersion, d.Kind))
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
	owner := gangview.Owner{Kind: kind.Kind, Namespace: nameIn(d.namespace, "").Namespace, Name: obj.GetName()}
	d.report.groups[owner.Gang()] = &namedGroup{d: d, state: state}
}

// namedGroups says what is not followed of the groups that pods of the profiles name, and of those around them, and
// which groups are missing.
func (r *Report) namedGroups(profiles []string) {
	for _, pod := range r.together.pods {
		m, err := (*gangview.OwnerPolicy)(nil).GangOf(pod.pod)
		kind, known := gangview.OwnerKindOf(m.Owner.Kind)
		if err != nil || !known || kind.Object == "" || !slices.Contains(profiles, pod.pod.Spec.SchedulerName) {
			continue
		}
		owner := m.Owner
		owner.Namespace = nameIn(pod.pod.Namespace, "").Namespace
		owner.Priority = max(owner.Priority, r.together.priorities[owner.Class])
		for range grouptree.MaxDepth {
			if owner.Name == "" {
				break
			}
			group := r.groups[owner.Gang()]
			if group == nil {
				// Only PodGroups of Berth's own kind were read from the cluster.
				if !r.together.clustered {
					title, _, _ := strings.Cut(owner.Object(), " "+owner.Namespace+"/")
					pod.d.findAt(Warning, "no-group", pod.d.line(pod.at), fmt.Sprintf(
						"there is no %s %s in the files: without one in the cluster the pods wait", title, owner.Name))
				}
				break
			}
			if unkept := group.state.NotKept(&owner); unkept != "" && !group.told {
				group.told = true
				group.d.findAt(Warning, "no-effect", group.d.line("spec"), "not followed: "+unkept)
			}
			r.together.levels(group.d, "spec", group.state.PodGroup(gang.ID{}), &v1.Pod{})
			owner.Kind, owner.Name = gangview.CompositeGroup, group.state.Node.Parent
		}
	}
}
