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
	"berth.dev/berth/pkg/gang/runview"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/plugins"
	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/plugins/costoptimized"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/pkg/yamldoc"
)

// reference is a pod, or a template of pods, with what it refers to. It is checked when all files are read, as a
// configuration among them may give its profile.
type reference struct {
	d   *document
	pod *v1.Pod
	// at is the path of its metadata, and around those of the objects that the template is in.
	at     string
	around []string
	// count is how many such pods are made.
	count int
	// gang says that a template asks for a gang of its pods.
	gang bool
	// keys are the names of GPUs of its profile.
	keys *gpuview.Keys
}

// scheduler is the name of the profile that places the pod.
func (r *reference) scheduler() string {
	return cmp.Or(r.pod.Spec.SchedulerName, v1.DefaultSchedulerName)
}

// values checks what the pod says in keys of Berth's own.
func (r *reference) values() {
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
	_, badRunTime := runview.Declared(pod)
	_, badWork := work.Declared(pod)
	_, badCheckpoint := work.Saved(pod)
	d.bad(at, badSpot, badWindow, badObjective, badClass, badLicenses, badDatasets, badPool, badBackfill, badRunTime,
		badWork, badCheckpoint)
	_, ends := runview.DueOf(pod, nil)
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
func (r *reference) spec() string { return strings.TrimSuffix(r.at, "metadata") + "spec" }

// asked are the resources that the pod's containers ask for, each with its line.
func (r *reference) asked() map[string]int {
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

// misspelt warns of a name that is almost that of a profile: a pod that names no scheduler there is waits without an
// event.
func (r *reference) misspelt(profiles []string) {
	name := r.pod.Spec.SchedulerName
	known := append([]string{v1.DefaultSchedulerName}, profiles...)
	if like := closest(name, known); name != "" && !slices.Contains(known, name) && like != "" {
		path := r.spec() + ".schedulerName"
		r.d.findIn(Warning, "no-profile", path,
			fmt.Sprintf("no scheduler is known here by the name %s; did you mean %s?", name, like))
	}
}

// implied resources are those of parts of GPUs: an agent hands them out, and not every node lists them.
func (r *reference) implied(name string) bool {
	return r.keys.ReadsResource(name) && !slices.Contains(r.keys.Resources, name)
}

// foreign warns of a pod that says to another scheduler than ours that it is in a group, and is in none of ours.
func (r *reference) foreign() {
	f, says := read.ForeignOf(r.pod)
	if !says || r.pod.Annotations[wellknown.GangKey] != "" || r.pod.Spec.SchedulingGroup != nil {
		return
	}
	if id, _, err := read.Of(r.pod); err == nil && id == (gang.ID{}) {
		r.d.findAt(Warning, "no-effect", r.d.keyLine(r.at, f.Key), f.String())
	}
}

// foreignMinimum warns of a minimum that an object around the template declares in the way of another project for pods
// that are in no gang.
func (r *reference) foreignMinimum() {
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

// unread warns of annotations that the plugins of the profiles of the same files do not read. Without a configuration
// among the files nothing is known of that.
func (r *reference) unread(report *Report) {
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
	// No profile reads nothing: these are all annotations that some plugin has to read.
	for _, key := range plugins.Unread(r.pod, &schedulerapi.Plugins{}) {
		warn(key, fmt.Sprintf(
			"annotation %s: the pod's scheduler %s is not among the profiles that were checked (%s); where %s is not "+
				"enabled, %s",
			key.Key, name, strings.Join(report.profileNames(), ", "), key.Plugin, key.Effect))
	}
}

// windowAndClass warns of a pod that names a price window or a class that its profile does not have in any
// configuration among the files: with these it never starts.
func (r *reference) windowAndClass(report *Report) {
	profiles := report.profilesNamed(r.scheduler())
	r.class(profiles)
	if len(profiles) == 0 && r.scheduler() == v1.DefaultSchedulerName {
		for _, other := range report.profileNames() { // a policy may give the pod any of them
			profiles = append(profiles, report.profilesNamed(other)...)
		}
	}
	r.window(profiles)
}

// window warns of a window that the profile does not have.
func (r *reference) window(profiles []*Profile) {
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
func (r *reference) class(profiles []*Profile) {
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
