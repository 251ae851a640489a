package validate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/pkg/wellknown"
)

// shapes checks nodes in the short form of `berth up --nodes`.
func (d *document) shapes() {
	var file struct {
		Shapes []sandbox.Shape `json:"shapes"`
	}
	if !d.faults(&file) {
		return
	}
	if err := json.Unmarshal(d.json, &file); err != nil {
		d.find(Error, "invalid", "", err.Error())
	}
	for i := range file.Shapes {
		shape := &file.Shapes[i]
		node := &v1.Node{Status: v1.NodeStatus{Allocatable: shape.Allocatable}}
		node.Name, node.Labels, node.Annotations = shape.Name, maps.Clone(shape.Labels), shape.Annotations
		for key, values := range shape.Spread {
			metav1.SetMetaDataLabel(&node.ObjectMeta, key, cmp.Or(values...))
		}
		d.report.inventory.nodes = append(d.report.inventory.nodes, nodeIn{d, node, fmt.Sprintf("shapes[%d]", i)})
	}
}

// nodeIn is a node, or a shape of nodes, with the path of its labels and annotations. It is checked after all files are
// read, because the names of GPUs may be in one of them.
type nodeIn struct {
	d    *document
	node *v1.Node
	at   string
}

// check checks the labels and annotations of a node about GPUs and its price.
func (n nodeIn) check(keys *gpuview.Keys) {
	d, node, at := n.d, n.node, n.at
	read, bad := keys.ReadGPUNode(node)
	for _, pool := range read.Pools() {
		d.unknownGPUs(keys, pool, at)
	}
	_, _, badPrice := priceview.StatedPrice(node)
	d.bad(at, append(bad, badPrice...)...)
	if why := read.Unenforced(); why != "" {
		d.findAt(Warning, "unenforced-shares", d.keyLine(at, wellknown.GPUModeKey), why)
	}
	d.labelsOfGPUs(keys, node, read, bad, at)
	d.keysAt(at, wellknown.Nodes)
	d.report.inventory.addNode(node, read)
}

// unknownGPUs warns of GPUs of unknown model or memory, unless the configuration reads no labels for it. Feature
// discovery leaves out the memory of GPUs that have none of their own.
func (d *document) unknownGPUs(keys *gpuview.Keys, pool *gpuview.Node, at string) {
	model, memory := pool.Unknown()
	var unknown, annotations, labels []string
	remedy := ""
	if model && len(keys.ProductLabels) > 0 {
		unknown, annotations = append(unknown, "model"), append(annotations, wellknown.GPUModelsKey)
		labels = append(labels, gpuview.OfMaker(keys.ProductLabels, pool.Empty().Resource))
		remedy = "run GPU feature discovery, or "
	}
	if memory && len(keys.MemoryLabels) > 0 {
		unknown, annotations = append(unknown, "memory"), append(annotations, wellknown.GPUMemoryMinKey)
		labels = append(labels, gpuview.OfMaker(keys.MemoryLabels, pool.Empty().Resource))
	}
	if len(unknown) > 0 {
		d.find(Warning, "gpu", at, fmt.Sprintf("the %s of the node's GPUs cannot be told from its labels: pods with %s "+
			"keep off them; %slabel the node with %s", strings.Join(unknown, " and the "),
			strings.Join(annotations, " or "), remedy, strings.Join(labels, " and ")))
	}
}

// mibLabel is the label in which GPU feature discovery writes the memory of a GPU as a number of MiB.
const mibLabel = "nvidia.com/gpu.memory"

// labelsOfGPUs warns of labels that describe GPUs and have no effect.
func (d *document) labelsOfGPUs(keys *gpuview.Keys, node *v1.Node, read *gpuview.Node, bad []*wellknown.BadValue,
	at string) {
	described := keys.DescribingLabels()
	for _, key := range slices.Sorted(maps.Keys(node.Labels)) {
		value, known := node.Labels[key], slices.Contains(described, key)
		switch {
		case slices.ContainsFunc(bad, func(b *wellknown.BadValue) bool { return b.Key == key }):
		case key == mibLabel && read.MemMiB() > 0 && strings.Trim(value, "0123456789") != "":
			d.findAt(Warning, "gpu", d.keyLine(at, key), fmt.Sprintf(
				"label %s: %q is read as %d MiB; write %d, which every reader of the label understands", key, value, read.MemMiB(),
				read.MemMiB()))
		case known && read.GPUs() == 0 && value != "0" && node.Labels[wellknown.GPUModeKey] != "dra":
			d.findAt(Warning, "gpu", d.keyLine(at, key), fmt.Sprintf("label %s has no effect: the node has no GPUs, "+
				"neither %s among its allocatable resources nor a label with their number",
				key, gpuview.OfMaker(keys.Resources, key)))
		case keys.MakesGPUs(key) && !known:
			if like := closest(key, described); like != "" {
				d.findAt(Warning, "gpu", d.keyLine(at, key), fmt.Sprintf("label %s is not read; did you mean %s?", key, like))
			}
		}
	}
}
