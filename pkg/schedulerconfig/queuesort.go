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

// aboutQueueSort is the end of the errors of the scheduler's own validation about profiles that sort the queue in
// another way than the first. They name neither the plugin nor the argument.
const aboutQueueSort = "must be the same for all profiles"

// QueueConflict is a difference in how two profiles sort the one queue that all share.
type QueueConflict struct {
	// Path of the plugin or the args in the first profile that differs from profile 0, and Fields of the args that differ.
	Path    string
	Fields  []string
	Message string
}

// Validate checks a configuration as kube-scheduler does. If profiles sort the queue in different ways, the error names
// the first difference.
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

// QueueConflictOf replaces the errors of the scheduler's validation about the queue by the conflict behind them, nil if
// there are none.
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

// queueConflict compares each profile with the first: nil if all sort the queue alike.
func queueConflict(c *schedulerapi.KubeSchedulerConfiguration) *QueueConflict {
	first := &c.Profiles[0]
	sorter, args := sorterOf(first)
	for i := range c.Profiles[1:] {
		p := &c.Profiles[1+i]
		other, otherArgs := sorterOf(p)
		if other != sorter {
			return &QueueConflict{Path: fmt.Sprintf("profiles[%d].plugins.queueSort", 1+i), Message: fmt.Sprintf(
				"every profile needs the same queueSort plugin, because they share one queue: %s has %s, %s has %s",
				p.SchedulerName, other, first.SchedulerName, sorter)}
		}
		if !reflect.DeepEqual(otherArgs, args) {
			fields := differing(otherArgs, args)
			return &QueueConflict{Path: fmt.Sprintf("profiles[%d].pluginConfig[%s].args", 1+i, sorter), Fields: fields,
				Message: fmt.Sprintf("%s needs the same args in every profile, because it sorts the one queue that they share: "+
					"%s of profile %s and of %s differ",
					sorter, strings.Join(fields, " and "), p.SchedulerName, first.SchedulerName)}
		}
	}
	return nil
}

// sorterOf returns the plugin that sorts the queue of a profile, with its args; nil if it has none.
func sorterOf(p *schedulerapi.KubeSchedulerProfile) (name string, args any) {
	name = names.PrioritySort
	if p.Plugins != nil && len(p.Plugins.QueueSort.Enabled) > 0 {
		name = p.Plugins.QueueSort.Enabled[0].Name
	}
	for i := range p.PluginConfig {
		if p.PluginConfig[i].Name == name {
			return name, p.PluginConfig[i].Args
		}
	}
	return name, nil
}

// differing returns the fields in which two args differ, sorted.
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
