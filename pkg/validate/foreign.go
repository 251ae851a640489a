package validate

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/wellknown"
)

// foreignGroup is a pod, or a template of pods, that says to another scheduler than ours that it is in a group.
type foreignGroup struct {
	scheduler string
	finding   Finding
}

// foreign remembers a pod that is in a group of another scheduler, and in none of ours, until all configurations are
// known.
func (d *document) foreign(pod *v1.Pod, at string) {
	f, says := gangview.ForeignOf(pod)
	if !says || pod.Annotations[wellknown.GangKey] != "" || pod.Spec.SchedulingGroup != nil {
		return
	}
	if id, _, err := gangview.Of(pod); err != nil || id != (gang.ID{}) {
		return
	}
	d.report.foreign = append(d.report.foreign, foreignGroup{scheduler: pod.Spec.SchedulerName, finding: Finding{
		File: d.file, Line: d.keyLine(at, f.Key) + d.offset, Severity: Warning, Rule: "no-effect", Object: d.object(),
		Message: oneLine(f.String())}})
}

// foreignMinimum warns of a minimum that the object at a path declares in the way of another project for pods that are
// in no gang.
func (d *document) foreignMinimum(at string, pod *v1.Pod, asked bool) {
	annotations := map[string]string{}
	for _, k := range d.keysIn(at, wellknown.Annotations) {
		annotations[k.Value] = ""
	}
	key := gangview.MinMemberKey(annotations)
	if m, err := (*gangview.OwnerPolicy)(nil).GangOf(pod); key == "" || asked || err != nil || m.ID != (gang.ID{}) {
		return
	}
	f := foreignGroup{scheduler: pod.Spec.SchedulerName, finding: Finding{File: d.file,
		Line: d.keyLine(at, key) + d.offset, Severity: Warning, Rule: "no-effect", Object: d.object(),
		Message: "annotation " + key + " alone makes no gang of the pods: put it on the pod template"}}
	if !slices.Contains(d.report.foreign, f) { // one object may have several templates
		d.report.foreign = append(d.report.foreign, f)
	}
}

// foreignGroups warns of those that one of the profiles places, those of the files or those that are shipped.
func (r *Report) foreignGroups() {
	known := r.knownProfiles()
	for _, f := range r.foreign {
		if slices.Contains(known, cmp.Or(f.scheduler, v1.DefaultSchedulerName)) {
			r.add(f.finding)
		}
	}
	r.foreign = nil
}
