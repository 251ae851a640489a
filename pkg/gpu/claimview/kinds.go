package claimview

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unique"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"
)

// maxKinds bounds the kinds of devices for which selectors are evaluated. All further ones count as selected.
const maxKinds = 256

// kind is equal for devices that differ only in what identifies a single device.
type kind = unique.Handle[string]

// kindOf is the kind of a device.
func kindOf(d sourceDevice) kind {
	var parts []string
	for name, a := range d.device.Attributes {
		if !identifies(string(name), &a) {
			parts = append(parts, fmt.Sprint(name, "=", ptr.Deref(a.StringValue, ""), ptr.Deref(a.VersionValue, ""),
				ptr.Deref(a.BoolValue, false)))
		}
	}
	for name, c := range d.device.Capacity {
		parts = append(parts, fmt.Sprint(name, "=", c.Value.String()))
	}
	slices.Sort(parts)
	return unique.Make(fmt.Sprint(d.slice.Spec.Driver, ptr.Deref(d.device.AllowMultipleAllocations, false), parts))
}

// identifies reports whether the attribute is likely to have another value for each device: a number, such as an index,
// or the text of an address or an identity.
func identifies(name string, a *resourcev1.DeviceAttribute) bool {
	name = strings.ToLower(name)
	return a.IntValue != nil || a.StringValue != nil && (strings.Contains(name, "uuid") || strings.Contains(name, "pci") ||
		strings.Contains(name, "serial") || strings.HasSuffix(name, "id"))
}

// selected are the kinds of devices that a class and the selectors of a request accept, by one device of each kind.
func (g *GPUs) selected(ctx context.Context, s *Slices, class string,
	selectors []resourcev1.DeviceSelector) map[kind]bool {
	kinds := map[kind]bool{}
	found, err := g.dra.DeviceClasses().Get(class)
	if err != nil {
		return kinds
	}
	selectors = slices.Concat(found.Spec.Selectors, selectors)
	for i, k := range s.kindOrder {
		if i >= maxKinds || g.accept(ctx, selectors, s.kinds[k].source) {
			kinds[k] = true
		}
	}
	return kinds
}

// differ reports whether devices of these kinds are of several sizes.
func (c *Slices) differ(kinds map[kind]bool) bool {
	sizes := map[int]bool{}
	for k := range kinds {
		sizes[c.kinds[k].size()] = true
	}
	return len(sizes) > 1
}

// accept reports whether the selectors accept the device. One that fails accepts nothing, and the allocator says why.
func (g *GPUs) accept(ctx context.Context, selectors []resourcev1.DeviceSelector, d sourceDevice) bool {
	for i := range selectors {
		if selectors[i].CEL == nil {
			return false
		}
		selector := g.compiled.GetOrCompile(selectors[i].CEL.Expression)
		if selector.Error != nil {
			return false
		}
		ok, _, err := selector.DeviceMatches(ctx, cel.Device{
			Driver: d.slice.Spec.Driver, AllowMultipleAllocations: d.device.AllowMultipleAllocations,
			Attributes: d.device.Attributes, Capacity: d.device.Capacity,
		})
		if err != nil || !ok {
			return false
		}
	}
	return true
}
