package validate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/plugins"
	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/plugins/costoptimized"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/pkg/yamldoc"
)

// podSource is a pod or a template of pods. It is checked after all files are read, because its profile may be in one
// of them.
type podSource struct {
	d   *document
	pod *v1.Pod
	// at is the path of its metadata, and around are the paths of the metadata of the objects around the template.
	at     string
	around []string
	// count is the number of pods that are created.
	count int
	// gang says that the template makes a gang of its pods.
	gang bool
	// keys are the names of GPUs of its profile.
	keys *gpuview.Keys
}

// scheduler is the name of the profile that places the pod.
func (r *podSource) scheduler() string {
	return cmp.Or(r.pod.Spec.SchedulerName, v1.DefaultSchedulerName)
}

// values checks the values of Berth's own annotations and labels.
func (r *podSource) values() {
	d, pod, at := r.d, r.pod, r.at
	_, gpuErr := r.keys.PodGPURequest(pod)
	_, _, gangErr := read.Of(pod)
	_, topologyErr := read.TopologyOf(nil, pod)
	_, _, badSpot := priceview.PodSpotPolicy(pod)
	_, badWindow := priceview.PodStartWindow(pod)
	_, badObjective := podview.PodObjective(pod)
	_, _, badClass := podview.NamedSLAClass(pod)
	d.badErrors(at, gpuErr, gangErr, topologyErr)
	_, badLicenses := podview.PodLicenses(pod)
	_, badDatasets := podview.PodDatasets(pod)
	_, badPool := podview.PodIPPool(pod)
	_, badBackfill := read.Backfill(pod)
	_, badRunTime := work.DeclaredRunTime(pod)
	_, badWork := work.Declared(pod)
	_, badCheckpoint := work.Saved(pod)
	d.bad(at, badSpot, badWindow, badObjective, badClass, badLicenses, badDatasets, badPool, badBackfill, badRunTime,
		badWork, badCheckpoint)
	_, ends := work.DueOf(pod, nil)
	if _, has := pod.Annotations[wellknown.DeadlineKey]; has && badWindow == nil && !ends && !priceview.NamesWindow(pod) {
		d.findAt(Warning, "no-effect", d.keyLine(at, wellknown.DeadlineKey), fmt.Sprintf(
			"annotation %s has no effect without %s or %s, unless a price window of the profile selects the pod by its labels",
			wellknown.DeadlineKey, wellknown.RunTimeKey, wellknown.StartWindowKey))
	}
	if priceview.NamesWindow(pod) && pod.Annotations[wellknown.StartWindowKey] == "" {
		d.bad(at, &wellknown.BadValue{Object: "pod", Kind: "annotation", Key: wellknown.StartWindowKey,
			Allowed: "the name of a window of the scheduler"})
	}
	if name, kind, _ := podview.NamedSLAClass(pod); kind != "" && name == "" {
		d.bad(at, &wellknown.BadValue{Object: "pod", Kind: kind, Key: wellknown.SLAClassKey,
			Allowed: "the name of a class of the scheduler"})
	}
	d.keysAt(at, wellknown.Pods)
}

// spec is the path to the pod's spec.
func (r *podSource) spec() string { return strings.TrimSuffix(r.at, "metadata") + "spec" }

// asked are the resources that the pod's containers ask for, each with its line.
func (r *podSource) asked() map[string]int {
	lines := map[string]int{}
	spec := r.spec()
	for _, asked := range podview.AskedResources(r.pod) {
		node, line := r.d.at(spec + "." + asked.Path)
		if key := yamldoc.KeyLine(node, asked.Resource); key > 0 {
			line = key
		}
		if _, seen := lines[asked.Resource]; !seen {
			lines[asked.Resource] = line
		}
	}
	return lines
}

// misspelt warns of a scheduler name that resembles a profile. A pod with an unknown name waits without an event.
func (r *podSource) misspelt(profiles []string) {
	name := r.pod.Spec.SchedulerName
	known := append([]string{v1.DefaultSchedulerName}, profiles...)
	if like := closest(name, known); name != "" && !slices.Contains(known, name) && like != "" {
		path := r.spec() + ".schedulerName"
		r.d.findIn(Warning, "no-profile", path,
			fmt.Sprintf("no scheduler is known here by the name %s; did you mean %s?", name, like))
	}
}

// implied resources are parts of GPUs that an agent manages. Not every node lists them.
func (r *podSource) implied(name string) bool {
	return r.keys.ReadsResource(name) && !slices.Contains(r.keys.Resources, name)
}

// foreign warns of a pod with the group of another scheduler that Berth does not read.
func (r *podSource) foreign() {
	f, found := read.ForeignOf(r.pod)
	if !found || r.pod.Annotations[wellknown.GangKey] != "" || r.pod.Spec.SchedulingGroup != nil {
		return
	}
	if id, _, err := read.Of(r.pod); err == nil && id == (gang.ID{}) {
		r.d.findAt(Warning, "no-effect", r.d.keyLine(r.at, f.Key), f.String())
	}
}

// foreignMinimum warns of a minimum in an annotation of another project on an object around the template, for pods
// without a gang.
func (r *podSource) foreignMinimum() {
	for _, at := range r.around {
		annotations := map[string]string{}
		for _, k := range r.d.keysIn(at, wellknown.Annotations) {
			annotations[k.Value] = ""
		}
		key := read.MinMemberKey(annotations)
		if m, err := (*read.OwnerPolicy)(nil).GangOf(r.pod); key == "" || r.gang || err != nil || m.ID != (gang.ID{}) {
			continue
		}
		r.d.findAt(Warning, "no-effect", r.d.keyLine(at, key),
			"annotation "+key+" alone makes no gang of the pods: put it on the pod template")
	}
}

// unread warns of annotations that no plugin of the pod's profile reads, if there is a configuration among the files.
func (r *podSource) unread(report *Report) {
	if len(report.Profiles) == 0 {
		return
	}
	name := r.scheduler()
	warn := func(key plugins.UnreadKey, message string) {
		r.d.findAt(Warning, "no-effect", r.d.keyLine(r.at, key.Key), message)
	}
	named := report.profilesNamed(name)
	for _, p := range named {
		for _, key := range plugins.Unread(r.pod, p.plugins) {
			warn(key, fmt.Sprintf("profile %s: %s", name, key))
		}
	}
	if len(named) > 0 {
		return
	}
	// Without plugins, these are all annotations that some plugin would read.
	for _, key := range plugins.Unread(r.pod, &schedulerapi.Plugins{}) {
		warn(key, fmt.Sprintf(
			"annotation %s: the pod's scheduler %s is not among the profiles that were checked (%s); where %s is not "+
				"enabled, %s",
			key.Key, name, strings.Join(report.profileNames(), ", "), key.Plugin, key.Effect))
	}
}

// windowAndClass warns of a price window or a class that the pod's profile does not have: the pod would never start.
func (r *podSource) windowAndClass(report *Report) {
	profiles := report.profilesNamed(r.scheduler())
	r.class(profiles)
	if len(profiles) == 0 && r.scheduler() == v1.DefaultSchedulerName {
		for _, other := range report.profileNames() { // an admission policy may set any of them
			profiles = append(profiles, report.profilesNamed(other)...)
		}
	}
	r.window(profiles)
}

// window warns of a window that the profile does not have.
func (r *podSource) window(profiles []*Profile) {
	name := r.pod.Annotations[wellknown.StartWindowKey]
	if name == "" {
		return
	}
	var names, of []string
	read := false
	for _, p := range profiles {
		of = append(of, p.Name)
		read = read || enables(p.plugins.PreEnqueue, costoptimized.Name)
		if cost := argsOf[config.CostOptimizedArgs](p); cost != nil {
			for i := range cost.Windows {
				names = append(names, cost.Windows[i].Name)
			}
		}
	}
	if slices.Contains(names, name) || !read {
		return
	}
	has, there := "none", ""
	if !slices.Contains(of, r.scheduler()) {
		there = " there"
	}
	if len(names) > 0 {
		slices.Sort(names)
		has = strings.Join(slices.Compact(names), ", ")
	}
	r.d.findAt(Warning, "no-window", r.d.keyLine(r.at, wellknown.StartWindowKey), fmt.Sprintf(
		"there is no window %q in the args of profile %s, which has %s: the pod never starts%s", name,
		strings.Join(slices.Compact(of), " or "), has, there))
}

// class warns of a class that the profile does not have, or not for pods of this priority class.
func (r *podSource) class(profiles []*Profile) {
	name, kind, bad := podview.NamedSLAClass(r.pod)
	if kind == "" || name == "" || bad != nil {
		return
	}
	for _, p := range profiles {
		if !enables(p.plugins.PreFilter, coscheduling.Name) {
			continue
		}
		var classes *config.QueueSLA
		if gangs := argsOf[config.CoschedulingArgs](p); gangs != nil {
			classes = gangs.SLA
		}
		var none *wellknown.BadValue
		if _, none = podview.SLAClass(classes.Order(), r.pod); none == nil {
			return
		}
		bad = none
	}
	if bad != nil {
		r.d.findAt(Warning, "no-class", r.d.keyLine(r.at, wellknown.SLAClassKey), fmt.Sprintf(
			"profile %s: %s %s: %q is not %s: the pod never starts", profiles[0].Name, kind, wellknown.SLAClassKey, name,
			bad.Allowed))
	}
}
