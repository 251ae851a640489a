package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/spelling"
	"berth.dev/berth/pkg/yamldoc"
)

// unknownPlugin matches the scheduler's message about an unknown plugin.
var unknownPlugin = regexp.MustCompile(`"([^"]+)" does not exist`)

// configuration checks a KubeSchedulerConfiguration: it is decoded and validated as by the scheduler, its profiles are
// built with the real plugins, and these are then checked for combinations that defeat each other.
func (d *document) configuration() {
	if !d.configurationFields() {
		return
	}
	obj, gvk, err := scheme.Codecs.UniversalDecoder().Decode(d.json, nil, nil)
	if err != nil {
		d.find(Error, "invalid", anyPath.FindString(err.Error()), err.Error())
		return
	}
	component, ok := obj.(*schedulerapi.KubeSchedulerConfiguration)
	if !ok {
		d.find(Error, "invalid", "kind", fmt.Sprintf("this is a %s", gvk.Kind))
		return
	}
	component.APIVersion = gvk.GroupVersion().String()
	if invalid := validation.ValidateKubeSchedulerConfiguration(component); invalid != nil {
		errs, conflict := schedulerconfig.QueueConflictOf(component, invalid)
		if conflict != nil {
			at := conflict.Path
			if len(conflict.Fields) == 1 {
				at += "." + conflict.Fields[0]
			}
			d.add(Error, "queue-sort", d.line(at), conflict.Path, conflict.Message)
		}
		for _, err := range errs {
			d.validationError(err)
		}
		return
	}
	if d.negativeWeights(component) || d.badArgs(component) {
		return
	}
	configuration, files := (&schedulerconfig.Configuration{Name: d.file, Component: component}).WithoutExtenderFiles()
	for _, path := range files {
		d.findIn(Note, "not-checked", path.String(),
			"not checked: the file is read on the machine on which the scheduler runs")
	}
	profiles, err := build(configuration)
	if err != nil {
		text := strings.TrimPrefix(oneLine(err.Error()), d.file+": ")
		line := d.line(anyPath.FindString(text))
		if m := unknownPlugin.FindStringSubmatch(text); m != nil {
			line, text = d.valueLine(d.root, m[1]), text+instead(m[1])
		}
		d.findAt(Error, "start", line, text)
		return
	}
	d.report.configurations = append(d.report.configurations, component)
	for i := range profiles {
		profiles[i].File, profiles[i].cfg = d.file, &component.Profiles[i]
	}
	d.report.Profiles = append(d.report.Profiles, profiles...)
	d.lint(component, profiles)
}

// configurationFields checks the fields of the configuration and of the args of its plugins, and returns whether it can
// be decoded.
func (d *document) configurationFields() bool {
	version := schema.FromAPIVersionAndKind(d.APIVersion, d.Kind).GroupVersion()
	obj, err := scheme.Scheme.New(version.WithKind(d.Kind))
	if err != nil {
		d.noKind(version.WithKind(d.Kind))
		return false
	}
	faults := yamldoc.Faults(d.root, d.json, reflect.TypeOf(obj), nil)
	var given struct {
		Profiles []struct {
			PluginConfig []struct {
				Name string
				Args json.RawMessage
			}
		}
	}
	_ = json.Unmarshal(d.json, &given) // errors are among the faults
	known, _ := allPlugins()           // an error occurs again when the profiles are built
	for i := range given.Profiles {
		for j, plugin := range given.Profiles[i].PluginConfig {
			path := field.NewPath("profiles").Index(i).Child("pluginConfig").Index(j).Child("args")
			node, _ := d.at(path.String())
			if known[plugin.Name] == nil {
				d.find(Error, "plugin", strings.TrimSuffix(path.String(), "args")+"name", fmt.Sprintf(
					"there is no plugin %q: nothing reads its args%s", plugin.Name, instead(plugin.Name)))
			}
			// The decoder checks the args of unknown plugins.
			if obj, err := scheme.Scheme.New(version.WithKind(plugin.Name + "Args")); err == nil && node != nil {
				faults = append(faults, yamldoc.Faults(node, plugin.Args, reflect.TypeOf(obj), path)...)
			}
		}
	}
	d.reportFaults(faults)
	return len(faults) == 0
}

// instead suggests a plugin with a similar name, if there is one.
func instead(plugin string) string {
	known, _ := allPlugins()
	if like := spelling.Closest(plugin, known); like != "" {
		return "; did you mean " + like + "?"
	}
	return ""
}

// badArgs reports invalid args of Berth's own plugins, and returns whether there are any. The scheduler stops at the
// first plugin with invalid args, in a random order.
func (d *document) badArgs(c *schedulerapi.KubeSchedulerConfiguration) bool {
	found := false
	for i := range c.Profiles {
		for _, plugin := range c.Profiles[i].PluginConfig {
			path := field.NewPath("profiles").Index(i).Child("pluginConfig").Key(plugin.Name).Child("args")
			args, ours := plugin.Args.(config.Args)
			if !ours {
				continue
			}
			var all utilerrors.Aggregate
			if errors.As(args.Validate(path), &all) {
				found = true
				for _, err := range utilerrors.Flatten(all).Errors() {
					d.validationError(err)
				}
			}
		}
	}
	return found
}

func (d *document) validationError(err error) {
	var at *field.Error
	if errors.As(err, &at) {
		d.findIn(Error, "invalid", at.Field, body(at))
		return
	}
	d.find(Error, "invalid", anyPath.FindString(err.Error()), err.Error())
}
