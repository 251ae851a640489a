package schedulerconfig

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// aboutQueueSort is how the scheduler's own validation ends what it says of each profile that sorts the queue in
// another way than the first. It names neither the plugin nor the argument.
const aboutQueueSort = "must be the same for all profiles"

// QueueConflict is what the profiles do not agree on; all share one queue.
type QueueConflict struct {
	// Path is that of the plugin or the args of the profile that fewest are like. Fields are those of the args that
	// differ.
	Path    string
	Fields  []string
	Message string
}

// Validate checks a configuration as kube-scheduler does. Of profiles that do not sort the queue alike it says once
// what differs.
func Validate(c *schedulerapi.KubeSchedulerConfiguration) error {
	invalid := validation.ValidateKubeSchedulerConfiguration(c)
	if invalid == nil {
		return nil
	}
	errs, conflict := QueueConflictOf(c, invalid)
	if conflict != nil {
		errs = append(errs, fmt.Errorf("%s: %s", conflict.Path, conflict.Message))
	}
	return utilerrors.NewAggregate(errs)
}

// QueueConflictOf takes what the scheduler's validation says of the queue out of its errors, and says it in other
// words.
func QueueConflictOf(c *schedulerapi.KubeSchedulerConfiguration, invalid utilerrors.Aggregate) ([]error,
	*QueueConflict) {
	errs := utilerrors.Flatten(invalid).Errors()
	aboutQueue := func(err error) bool { return strings.HasSuffix(err.Error(), aboutQueueSort) }
	if !slices.ContainsFunc(errs, aboutQueue) {
		return errs, nil
	}
	conflict := queueConflict(c)
	if conflict == nil {
		return errs, nil
	}
	return slices.DeleteFunc(errs, aboutQueue), conflict
}

func queueConflict(c *schedulerapi.KubeSchedulerConfiguration) *QueueConflict {
	sorters := make([]string, len(c.Profiles))
	for i := range c.Profiles {
		sorters[i] = sorterOf(&c.Profiles[i])
	}
	if odd, others := minority(c, func(a, b int) bool { return sorters[a] == sorters[b] }); odd >= 0 {
		return &QueueConflict{Path: fmt.Sprintf("profiles[%d].plugins.queueSort", odd), Message: fmt.Sprintf(
			"every profile needs the same queueSort plugin, because they share one queue: %s has %s, %s has %s",
			c.Profiles[odd].SchedulerName, sorters[odd], c.Profiles[others].SchedulerName, sorters[others])}
	}
	args := make([]any, len(c.Profiles))
	for i := range c.Profiles {
		for j := range c.Profiles[i].PluginConfig {
			if c.Profiles[i].PluginConfig[j].Name == sorters[i] {
				args[i] = c.Profiles[i].PluginConfig[j].Args
			}
		}
	}
	odd, others := minority(c, func(a, b int) bool { return reflect.DeepEqual(args[a], args[b]) })
	if odd < 0 {
		return nil
	}
	fields := differing(args[odd], args[others])
	return &QueueConflict{Path: fmt.Sprintf("profiles[%d].pluginConfig[%s].args", odd, sorters[odd]), Fields: fields,
		Message: fmt.Sprintf(
			"%s needs the same args in every profile, because it sorts the one queue that they share: %s of profile %s and of "+
				"%s differ",
			sorters[odd], strings.Join(fields, " and "), c.Profiles[odd].SchedulerName, c.Profiles[others].SchedulerName)}
}

// sorterOf is the plugin that sorts the queue of a profile.
func sorterOf(p *schedulerapi.KubeSchedulerProfile) string {
	if p.Plugins != nil && len(p.Plugins.QueueSort.Enabled) > 0 {
		return p.Plugins.QueueSort.Enabled[0].Name
	}
	return names.PrioritySort
}

// minority is the first profile of those which fewest others are like, and one of the rest; negative where all are
// alike. Of two that differ it is the second.
func minority(c *schedulerapi.KubeSchedulerConfiguration, alike func(a, b int) bool) (odd, other int) {
	odd, least := -1, len(c.Profiles)
	for i := len(c.Profiles) - 1; i >= 0; i-- {
		like := 0
		for j := range c.Profiles {
			if alike(i, j) {
				like++
			}
		}
		if like < least || like == least && odd >= 0 && alike(i, odd) {
			odd, least = i, like
		}
	}
	for i := range c.Profiles {
		if odd >= 0 && !alike(i, odd) {
			return odd, i
		}
	}
	return -1, -1
}

// differing are the fields of two args that are not the same.
func differing(a, b any) []string {
	fields := func(args any) map[string]any {
		of := map[string]any{}
		if data, err := json.Marshal(args); err == nil {
			_ = json.Unmarshal(data, &of) // args are objects
		}
		return of
	}
	of, other := fields(a), fields(b)
	var names []string
	for name := range of {
		if !reflect.DeepEqual(of[name], other[name]) {
			names = append(names, name)
		}
	}
	for name := range other {
		if _, ok := of[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
