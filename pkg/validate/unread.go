package validate

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/plugins"
	"berth.dev/berth/pkg/process/schedulerconfig"
)

// use is a pod, or a template of pods, with the line of each of its annotations.
type use struct {
	pod          *v1.Pod
	file, object string
	lines        map[string]int
}

// uses remembers a pod until all configurations are known.
func (d *document) uses(pod *v1.Pod, at string) {
	// No profile reads nothing: these are all annotations that some plugin has to read.
	keys := plugins.Unread(pod, &schedulerapi.Plugins{})
	if len(keys) == 0 {
		return
	}
	u := use{pod: pod, file: d.file, object: d.object(), lines: map[string]int{}}
	for _, k := range keys {
		u.lines[k.Key] = d.keyLine(at, k.Key) + d.offset
	}
	d.report.uses = append(d.report.uses, u)
}

// unread warns of annotations that the plugins of the profiles of the same files do not read. Without a configuration
// among the files nothing is known of that.
func (r *Report) unread() {
	if len(r.Profiles) == 0 {
		return
	}
	for _, u := range r.uses {
		name := u.pod.Spec.SchedulerName
		if name == "" {
			name = v1.DefaultSchedulerName
		}
		warn := func(key plugins.UnreadKey, message string) {
			r.add(Finding{
				File: u.file, Line: u.lines[key.Key], Severity: Warning, Rule: "no-effect", Object: u.object,
				Message: oneLine(message),
			})
		}
		named := r.profilesNamed(name)
		for _, p := range named {
			for _, key := range plugins.Unread(u.pod, p.plugins) {
				warn(key, fmt.Sprintf("profile %s: %s", name, key))
			}
		}
		if len(named) > 0 {
			continue
		}
		for _, key := range plugins.Unread(u.pod, &schedulerapi.Plugins{}) {
			warn(key, fmt.Sprintf(
				"annotation %s: the pod's scheduler %s is not among the profiles that were checked (%s); where %s is not "+
					"enabled, %s",
				key.Key, name, strings.Join(r.profileNames(), ", "), key.Plugin, key.Effect))
		}
	}
	r.uses = nil
}

// gpuKeys are the names of GPUs of the profile in the configurations that were read. Without one they are the defaults.
func (r *Report) gpuKeys(profile string) *gpuview.Keys {
	c := &schedulerconfig.Configuration{Component: &schedulerapi.KubeSchedulerConfiguration{}}
	for _, component := range r.configurations {
		c.Component.Profiles = append(c.Component.Profiles, component.Profiles...)
	}
	keys := c.GPUKeys(profile)
	return &keys
}

func (r *Report) profilesNamed(name string) []*Profile {
	var named []*Profile
	for i := range r.Profiles {
		if r.Profiles[i].Name == name {
			named = append(named, &r.Profiles[i])
		}
	}
	return named
}

func (r *Report) profileNames() []string {
	var names []string
	for _, p := range r.Profiles {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
