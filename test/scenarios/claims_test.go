package scenarios_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/objects"
)

// driver is the DRA driver of the scenario's devices.
func (w *world) driver() string { return w.name + ".test" }

// class is the DeviceClass that the scenario calls by this name, chip is the resource that it serves by its other name.
func (w *world) class(name string) string { return w.name + "-" + name }
func (w *world) chip(name string) v1.ResourceName {
	return v1.ResourceName(w.driver() + "/" + name)
}

// doDevices publishes N devices of a class on every node whose name begins with a prefix.
func (w *world) doDevices(ctx context.Context, l *line) error {
	n, err := l.int(1)
	if err != nil {
		return err
	}
	class := l.option("class", "device")
	driver, of := w.driver(), w.class(class)
	product := l.option("gpus", "")
	if product != "" {
		driver = "gpu.nvidia.com"
	}
	device := resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: of}}
	device.Spec.Selectors = objects.Selectors(
		fmt.Sprintf("device.driver == %q && device.attributes[%q].class == %q", driver, driver, of))
	device.Spec.ExtendedResourceName = ptr.To(string(w.chip(class)))
	if _, err := w.client.ResourceV1().DeviceClasses().Create(ctx, &device, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return err
	}
	nodes, err := w.nodesOf(ctx, l.arg(0))
	if err != nil {
		return err
	}
	for _, node := range nodes {
		slice := &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: node + "-" + class, Labels: map[string]string{scenarioLabel: w.name}},
			Spec: resourcev1.ResourceSliceSpec{Driver: driver, NodeName: ptr.To(node),
				Pool: resourcev1.ResourcePool{Name: node + "-" + class, Generation: 1, ResourceSliceCount: 1}},
		}
		for i := range n {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("device-%d", i),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"class": {StringValue: ptr.To(of)}}})
		}
		if product != "" {
			slice.Spec.Devices = objects.GPUs(n, map[string]string{"class": of, "productName": product})
		}
		if _, err := w.client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// wanted is a claim for a number of devices of a class, or of the first that will do of several.
func (w *world) wanted(class string, n int) resourcev1.ResourceClaimSpec {
	if alternatives := strings.Split(class, "|"); len(alternatives) > 1 {
		request := resourcev1.DeviceRequest{Name: "devices"}
		for i, alternative := range alternatives {
			request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{
				Name: fmt.Sprint("choice-", i), DeviceClassName: w.class(alternative),
				AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(n),
			})
		}
		return objects.ClaimOf("", request).Spec
	}
	return objects.ClaimOf("", objects.Request("devices", w.class(class), int64(n))).Spec
}

// doClaim creates a claim that pods share.
func (w *world) doClaim(ctx context.Context, l *line) error {
	namespace, name := w.locate(l.arg(0))
	n, err := strconv.Atoi(l.option("devices", "1"))
	if err != nil {
		return err
	}
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: w.wanted(l.option("class", "device"), n)}
	if expression := l.option("match", ""); expression != "" {
		objects.Matching(expression)(claim.Spec.Devices.Requests[0].Exactly)
	}
	_, err = w.client.ResourceV1().ResourceClaims(namespace).Create(ctx, claim, metav1.CreateOptions{})
	return err
}

// claimDevices gives a pod claims of its own, which a controller makes from a template, one that it shares, or both.
func (w *world) claimDevices(ctx context.Context, namespace string, spec *v1.PodSpec, l *line) error {
	resources := &spec.Containers[0].Resources
	claim := func(c v1.PodResourceClaim) {
		spec.ResourceClaims = append(spec.ResourceClaims, c)
		resources.Claims = append(resources.Claims, v1.ResourceClaim{Name: c.Name})
	}
	for class, amount := range l.with("claim:") {
		n, err := strconv.Atoi(amount)
		if err != nil {
			return err
		}
		name := strings.ReplaceAll(class, "|", "-or-")
		template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + amount},
			Spec: resourcev1.ResourceClaimTemplateSpec{Spec: w.wanted(class, n)}}
		_, err = w.client.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, template, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		claim(v1.PodResourceClaim{Name: name, ResourceClaimTemplateName: ptr.To(template.Name)})
	}
	if shared := l.option("shares", ""); shared != "" {
		claim(v1.PodResourceClaim{Name: "shared", ResourceClaimName: ptr.To(shared)})
	}
	for class, amount := range l.with("chip:") {
		n, err := quantity(amount)
		if err != nil {
			return err
		}
		resources.Requests[w.chip(class)], resources.Limits[w.chip(class)] = n, n
	}
	return nil
}
