package validate

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/spelling"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/pkg/yamldoc"
)

// keyLine finds the line of an annotation or a label, whose key contains dots and cannot be part of a path.
func (d *document) keyLine(at, key string) int {
	for _, in := range []string{wellknown.Annotations, wellknown.Labels} {
		for _, k := range d.keysIn(at, in) {
			if k.Value == key {
				return k.Line
			}
		}
	}
	return d.line(at)
}

// controllers are objects that create pods from templates. Keys of pods have no effect on them.
const controllers = "the controller"

// placesOf are the places where a key is read that is Berth's own or names a gang, except on groups.
func placesOf(key, of string) []wellknown.Place {
	if of == controllers && slices.Contains(read.GroupAnnotations(), key) {
		return []wellknown.Place{{Of: wellknown.Pods, In: wellknown.Annotations}}
	}
	if slices.Contains(read.Labels(), key) || key == read.MinAvailableLabel {
		return []wellknown.Place{{Of: wellknown.Pods, In: wellknown.Labels}}
	}
	return wellknown.Places(key)
}

// keysAt warns of annotations and labels at a path that have no effect. Of is the sort of object, empty for one from
// which no keys are read; templates are the paths of the pod templates of a controller.
func (d *document) keysAt(at, of string, templates ...string) {
	for _, in := range []string{wellknown.Annotations, wellknown.Labels} {
		for _, key := range d.keysIn(at, in) {
			read := placesOf(key.Value, of)
			switch {
			case len(read) == 0:
				d.unknownKey(key, at, in, of)
			case of == "" || slices.Contains(read, wellknown.Place{}):
			case !slices.Contains(read, wellknown.Place{Of: of, In: in}):
				d.misplaced(key, wellknown.Place{Of: of, In: in}, read, templates)
			}
		}
	}
}

// keysIn are the keys of the annotations, or of the labels, at a path.
func (d *document) keysIn(at, in string) []*yaml.Node {
	meta, _ := d.at(at)
	of := yamldoc.Child(meta, in)
	var keys []*yaml.Node
	for i := 0; of != nil && i+1 < len(of.Content); i += 2 {
		keys = append(keys, of.Content[i])
	}
	return keys
}

// misplaced warns of a key in a place where it is not read, unless the pod templates have it, too.
func (d *document) misplaced(key *yaml.Node, is wellknown.Place, read []wellknown.Place, templates []string) {
	onPods := slices.IndexFunc(read, func(p wellknown.Place) bool { return p.Of == wellknown.Pods })
	here := slices.IndexFunc(read, func(p wellknown.Place) bool { return p.Of == is.Of })
	instead := "set it on " + read[0].Of
	switch {
	case is.Of == wellknown.PodGroups && key.Value == wellknown.GangKey:
		instead = "the group is a gang without it"
	case here >= 0:
		instead = "it is read from " + read[here].In
	case len(templates) > 0 && onPods >= 0:
		for _, path := range templates {
			if slices.ContainsFunc(d.keysIn(path+".metadata", read[onPods].In),
				func(k *yaml.Node) bool { return k.Value == key.Value }) {
				return
			}
		}
		instead = "set it in " + templates[0] + ".metadata." + read[onPods].In
	}
	d.findAt(Warning, "no-effect", key.Line, fmt.Sprintf("%s %s has no effect here: %s",
		strings.TrimSuffix(is.In, "s"), key.Value, instead))
}

// unknownKey reports an unknown key of Berth's own, and a key that resembles the label of a gang.
func (d *document) unknownKey(key *yaml.Node, at, in, of string) {
	likely := wellknown.Pods
	if of == wellknown.Nodes || of == wellknown.PodGroups {
		likely = of
	}
	if wellknown.IsOwn(key.Value) {
		message := "unknown key; known are " + strings.Join(wellknown.Own(), ", ")
		for _, known := range [][]string{wellknown.Own(), wellknown.Own(likely)} {
			if like := closest(key.Value, known); like != "" {
				message = "unknown key; did you mean " + like + "?"
			}
		}
		d.add(Error, "unknown-key", key.Line, fmt.Sprintf("%s.%s[%s]", at, in, key.Value), message)
		return
	}
	like := closest(key.Value, append(read.Labels(), read.MinAvailableLabel))
	if key.Value == formerGroupLabel {
		like = read.Labels()[0]
	}
	if domain, _, _ := strings.Cut(like, "/"); like != "" && strings.HasPrefix(key.Value, domain+"/") ||
		key.Value == formerGroupLabel {
		d.findAt(Warning, "unknown-key", key.Line, fmt.Sprintf("%s %s is not read; did you mean the label %s?",
			strings.TrimSuffix(in, "s"), key.Value, like))
	}
}

// formerGroupLabel named the PodGroup of a pod in the first releases of scheduler-plugins.
const formerGroupLabel = "pod-group.scheduling.sigs.k8s.io"

func closest(key string, keys []string) string {
	known := map[string]bool{}
	for _, key := range keys {
		known[key] = true
	}
	return spelling.Closest(key, known)
}
