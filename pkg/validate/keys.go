package validate

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/spelling"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/pkg/yamldoc"
)

// keyLine finds an annotation or a label, whose keys have dots in them and so are no path.
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

// controllers are objects that make pods of templates. Nothing is read of them that is read of pods.
const controllers = "the controller"

// placesOf are where a key of Berth's own, or one that names a gang, is read on what is not a group.
func placesOf(key, of string) []wellknown.Place {
	if of == controllers && slices.Contains(gangview.GroupAnnotations(), key) {
		return []wellknown.Place{{Of: wellknown.Pods, In: wellknown.Annotations}}
	}
	if slices.Contains(gangview.Labels(), key) || key == gangview.MinAvailableLabel {
		return []wellknown.Place{{Of: wellknown.Pods, In: wellknown.Labels}}
	}
	return wellknown.Places(key)
}

// keysAt finds keys under the metadata at a path that mean nothing, or nothing there: they would be passed over in
// silence. Of is what carries them, empty for objects that have nothing to read; the pods of controllers have their
// templates at the paths.
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

// misplaced warns of a key that is not read where it is. One that the templates of the pods have besides is there for
// those who look for it.
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

// unknownKey tells of a key of Berth's own that there is not, and of one that is almost a label by which a gang is
// named.
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
	like := closest(key.Value, append(gangview.Labels(), gangview.MinAvailableLabel))
	if key.Value == formerGroupLabel {
		like = gangview.Labels()[0]
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
