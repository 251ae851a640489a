package runtimes

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"
)

// Class says which pods are alike.
type Class struct {
	Namespace string
	// Controller is the name of what made the pod, without the part that changes, see Stem.
	Controller string
	Image      string
	GPUs       int
}

// Claim is what a pod says of its own run time; zero where it says nothing.
type Claim struct {
	// Expected is how long it is to run, Limit after what time it is ended.
	Expected, Limit time.Duration
	// Service is set if the pod does not end on its own. What it declares counts nevertheless.
	Service bool
}

// EndBy notes that the pod is ended after that time, too; 0 says nothing.
func (c *Claim) EndBy(limit time.Duration) {
	if limit > 0 && (c.Limit == 0 || limit < c.Limit) {
		c.Limit = limit
	}
}

// endless reports whether the end of the pod is never to be waited for.
func (c *Claim) endless() bool { return c.Service && c.Expected <= 0 && c.Limit <= 0 }

// scale is what the run times of a class are measured by.
type scale byte

const (
	bySecond scale = iota
	byExpected
	byLimit
)

// unit returns the scale on which the run of the pod is judged, and its unit there.
func (c *Claim) unit() (scale, time.Duration) {
	switch {
	case c.Expected > 0:
		return byExpected, c.Expected
	case c.Limit > 0:
		return byLimit, c.Limit
	}
	return bySecond, time.Second
}

// width is how much a class is widened.
type width byte

// The widths, the narrowest first. Classes of the last two are shared by all namespaces.
const (
	exact width = iota
	anyImage
	anyController
	anyNamespace
	anyPod
	widths
)

// window is how many of its last runs a class keeps.
var window = [widths]int{32, 32, 64, 256, 256}

// shared reports whether the class spans namespaces.
func (w width) shared() bool { return w >= anyNamespace }

// key names a class of a width on a scale.
type key [12]byte

func (c *Class) key(w width, s scale) key {
	text := append(make([]byte, 0, 256), byte(w), byte(s))
	add := func(part string) { text = append(binary.AppendUvarint(text, uint64(len(part))), part...) }
	if w < anyPod {
		text = binary.AppendVarint(text, int64(c.GPUs))
	}
	if w < anyNamespace {
		add(c.Namespace)
	}
	if w < anyController {
		add(c.Controller)
	}
	if w < anyImage {
		add(c.Image)
	}
	sum := sha256.Sum256(text)
	return key(sum[:len(key{})])
}

// owner is a short name of a namespace, 0 for none.
type owner uint32

func ownerOf(namespace string) owner {
	sum := sha256.Sum256([]byte(namespace))
	return max(owner(binary.BigEndian.Uint32(sum[:])), 1)
}

// Stem returns the name without the part that changes from run to run: words at its end that hold a digit or are random
// letters as Kubernetes draws them.
func Stem(name string) string {
	for {
		at := strings.LastIndexAny(name, "-.")
		if at <= 0 || !changes(name[at+1:]) {
			return name
		}
		name = name[:at]
	}
}

// changes reports whether a word of a name is likely to be another one in the next run.
func changes(word string) bool {
	if strings.ContainsAny(word, "0123456789") || word == "" {
		return true
	}
	// Kubernetes draws suffixes of at least five letters without vowels.
	return len(word) >= 5 && !strings.ContainsAny(word, "aeiouy")
}
