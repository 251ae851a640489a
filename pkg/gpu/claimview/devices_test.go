package claimview

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu"
)

const testDriver = "gpu.nvidia.com"

type texts = map[string]string

// draDevice is a device with these attributes and capacities.
func draDevice(name string, attributes, capacity texts, change ...func(*resourcev1.Device)) resourcev1.Device {
	d := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}}
	for key, value := range attributes {
		d.Attributes[resourcev1.QualifiedName(key)] = resourcev1.DeviceAttribute{StringValue: ptr.To(value)}
	}
	for key, value := range capacity {
		d.Capacity[resourcev1.QualifiedName(key)] = resourcev1.DeviceCapacity{Value: resource.MustParse(value)}
	}
	for _, c := range change {
		c(&d)
	}
	return d
}

func shareable(d *resourcev1.Device) { d.AllowMultipleAllocations = ptr.To(true) }

func taintedDevice(d *resourcev1.Device) {
	d.Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
}

// takes makes a device take these amounts of a set of counters.
func takes(set string, amounts texts) func(*resourcev1.Device) {
	return func(d *resourcev1.Device) {
		d.ConsumesCounters = append(d.ConsumesCounters, resourcev1.DeviceCounterConsumption{CounterSet: set,
			Counters: counterValues(amounts)})
	}
}

func counterValues(amounts texts) map[string]resourcev1.Counter {
	out := map[string]resourcev1.Counter{}
	for name, value := range amounts {
		out[name] = resourcev1.Counter{Value: resource.MustParse(value)}
	}
	return out
}

// draNode reads these devices as those of one node, with these sets of counters.
func draNode(sets map[string]texts, devices ...resourcev1.Device) *Node {
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: testDriver, NodeName: ptr.To("n"), Pool: resourcev1.ResourcePool{Name: "n"}, Devices: devices,
	}}
	for name, values := range sets {
		slice.Spec.SharedCounters = append(slice.Spec.SharedCounters,
			resourcev1.CounterSet{Name: name, Counters: counterValues(values)})
	}
	return readNode("n", []*resourcev1.ResourceSlice{slice})
}

// allocation is a state in which these devices are allocated, and of others parts: "device/capacity" to an amount.
func allocation(whole []string, parts texts) *structured.AllocatedState {
	s := &structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection()}
	for _, name := range whole {
		s.AllocatedDevices.Insert(structured.MakeDeviceID(testDriver, "n", name))
	}
	for key, amount := range parts {
		var device, name string
		for i := range key {
			if key[i] == '/' {
				device, name = key[:i], key[i+1:]
				break
			}
		}
		s.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(structured.MakeDeviceID(testDriver, "n", device),
			map[resourcev1.QualifiedName]resource.Quantity{resourcev1.QualifiedName(name): resource.MustParse(amount)}))
	}
	return s
}

var (
	a100    = texts{"type": "gpu", "productName": "NVIDIA A100-SXM4-80GB", "uuid": "GPU-0"}
	mem80   = texts{"memory": "80Gi"}
	whole80 = texts{"memory": "80Gi", "multiprocessors": "108"}
)

func TestGPUsOfSlices(t *testing.T) {
	t.Parallel()
	const gib = 1024
	mig := func(name, profile, parent string) resourcev1.Device {
		return draDevice(name, texts{"type": "mig", "profile": profile, "parentUUID": parent,
			"productName": "NVIDIA A100-SXM4-80GB"}, texts{"memory": "10Gi"})
	}
	for name, tc := range map[string]struct {
		counters map[string]texts
		devices  []resourcev1.Device
		held     []string
		parts    texts
		want     []gpu.Device
		slices   []gpu.SliceCount
		model    string
	}{
		"a device is a GPU": {
			devices: []resourcev1.Device{draDevice("gpu-0", a100, mem80),
				draDevice("gpu-1", texts{"productName": "NVIDIA A100-SXM4-80GB"}, mem80)},
			held: []string{"gpu-1"},
			want: []gpu.Device{{FreeMilli: 1000, FreeMemMiB: 80 * gib}, {}}, model: "NVIDIA-A100-SXM4-80GB",
		},
		"gpu-10 comes after gpu-9": {
			devices: []resourcev1.Device{draDevice("gpu-10", nil, mem80), draDevice("gpu-9", nil, mem80)},
			held:    []string{"gpu-9"},
			want:    []gpu.Device{{}, {FreeMilli: 1000, FreeMemMiB: 80 * gib}},
		},
		"a tainted device is unhealthy": {
			devices: []resourcev1.Device{draDevice("gpu-0", nil, mem80, taintedDevice)},
			want:    []gpu.Device{{FreeMilli: 1000, FreeMemMiB: 80 * gib, Unhealthy: true}},
		},
		"of a device that several may have, what claims have of its capacity is taken": {
			devices: []resourcev1.Device{draDevice("gpu-0", nil, mem80, shareable)},
			parts:   texts{"gpu-0/memory": "20Gi"},
			want:    []gpu.Device{{FreeMilli: 750, FreeMemMiB: 60 * gib}},
		},
		"the driver's domain is no part of a name": {
			devices: []resourcev1.Device{draDevice("gpu-0", nil, texts{testDriver + "/memory": "80Gi"}, shareable)},
			parts:   texts{"gpu-0/" + testDriver + "/memory": "20Gi"},
			want:    []gpu.Device{{FreeMilli: 750, FreeMemMiB: 60 * gib}},
		},
		"compute is told by cores rather than memory": {
			devices: []resourcev1.Device{draDevice("gpu-0", nil, texts{"memory": "80Gi", "cores": "100"}, shareable)},
			parts:   texts{"gpu-0/memory": "20Gi", "gpu-0/cores": "50"},
			want:    []gpu.Device{{FreeMilli: 500, FreeMemMiB: 60 * gib}},
		},
		"devices that take of one set of counters are one GPU": {
			counters: map[string]texts{"gpu-0": whole80},
			devices: []resourcev1.Device{
				draDevice("gpu-0", a100, mem80, takes("gpu-0", whole80)),
				draDevice("gpu-0-mig-0", nil, texts{"memory": "10Gi"},
					takes("gpu-0", texts{"memory": "10Gi", "multiprocessors": "14"})),
				draDevice("gpu-0-mig-1", nil, texts{"memory": "40Gi"},
					takes("gpu-0", texts{"memory": "40Gi", "multiprocessors": "42"})),
			},
			held: []string{"gpu-0-mig-0", "gpu-0-mig-1"},
			want: []gpu.Device{{FreeMilli: 1000 - 129 - 388, FreeMemMiB: 30 * gib}}, model: "NVIDIA-A100-SXM4-80GB",
		},
		"a GPU with a counter set of which all is taken is full": {
			counters: map[string]texts{"gpu-0": whole80},
			devices: []resourcev1.Device{
				draDevice("gpu-0", a100, mem80, takes("gpu-0", whole80)),
				draDevice("gpu-0-mig-0", nil, nil, takes("gpu-0", texts{"memory": "10Gi"})),
			},
			held: []string{"gpu-0"}, want: []gpu.Device{{}}, model: "NVIDIA-A100-SXM4-80GB",
		},
		"a device that takes of a set that is not there is none": {
			devices: []resourcev1.Device{draDevice("gpu-0", a100, mem80, takes("gone", whole80))},
		},
		"slices of one parent are what is left of a GPU that was cut": {
			devices: []resourcev1.Device{mig("mig-0", "1g.10gb", "GPU-7"), mig("mig-1", "2g.20gb", "GPU-7"),
				mig("mig-2", "3g.40gb", "GPU-8")},
			held:  []string{"mig-0"},
			want:  []gpu.Device{{FreeMilli: 142 + 285 - 142, FreeMemMiB: 70 * gib}, {FreeMilli: 428, FreeMemMiB: 80 * gib}},
			model: "NVIDIA-A100-SXM4-80GB",
		},
		"slices of an unknown GPU are counted by profile": {
			devices: []resourcev1.Device{mig("mig-0", "1g.10gb", ""), mig("mig-1", "1g.10gb", ""), mig("mig-2", "2g.20gb", "")},
			held:    []string{"mig-1"},
			slices: []gpu.SliceCount{{Resource: testDriver + "/1g.10gb", Count: 1, Total: 2, Milli: 142},
				{Resource: testDriver + "/2g.20gb", Count: 1, Total: 1, Milli: 285}},
		},
		"GPUs of two models are of none": {
			devices: []resourcev1.Device{draDevice("gpu-0", a100, mem80), draDevice("gpu-1", texts{"productName": "Tesla T4"},
				texts{"memory": "15Gi"})},
			want: []gpu.Device{{FreeMilli: 1000, FreeMemMiB: 80 * gib}, {FreeMilli: 1000, FreeMemMiB: 15 * gib}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inv := draNode(tc.counters, tc.devices...).Inventory(allocation(tc.held, tc.parts))
			if diff := cmp.Diff(tc.want, inv.Devices); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.slices, inv.Slices); diff != "" {
				t.Errorf("slices (-want +got):\n%s", diff)
			}
			if inv.Model != tc.model {
				t.Errorf("model = %q, want %q", inv.Model, tc.model)
			}
			if inv.Mode != gpu.ModeDRA || inv.Replicas != 1 || !inv.IndexKnown {
				t.Errorf("mode %v, %d replicas, index known %t; claims give out whole GPUs of known index", inv.Mode, inv.Replicas,
					inv.IndexKnown)
			}
		})
	}
}

func TestLinksOfSlices(t *testing.T) {
	t.Parallel()
	pcie := func(root string) texts { return texts{attributePCIeRoot: root} }
	near := draNode(nil, draDevice("gpu-0", pcie("pci0"), nil), draDevice("gpu-1", pcie("pci1"), nil),
		draDevice("gpu-2", pcie("pci1"), nil)).empty
	if set, _, ok := near.Links.Best(7, 2, false); !ok || set != 6 {
		t.Errorf("the best pair is %b, want the two behind one root complex", set)
	}
	mesh := draNode(nil, draDevice("gpu-0", a100, mem80), draDevice("gpu-1", texts{"productName": "NVIDIA A100-SXM4-80GB"},
		mem80)).empty
	if mesh.Links.LargestLinked(2) != 2 {
		t.Error("two A100 of the SXM4 kind are not linked")
	}
}

func TestDevicesAreTheSameObjectWhileNothingChanges(t *testing.T) {
	t.Parallel()
	n := draNode(nil, draDevice("gpu-0", nil, mem80, shareable), draDevice("gpu-1", nil, mem80))
	before := n.devicesAfter(nil, allocation(nil, nil))
	for name, state := range map[string]*structured.AllocatedState{
		"one": allocation([]string{"gpu-1"}, nil), "a part": allocation(nil, texts{"gpu-0/memory": "1Gi"}),
		"both": allocation([]string{"gpu-1"}, texts{"gpu-0/memory": "2Gi"}),
	} {
		after := n.devicesAfter(before, state)
		if after == before {
			t.Errorf("%s is allocated, and the devices are the same", name)
		}
		if n.devicesAfter(after, state) != after {
			t.Errorf("%s is allocated as before, and the devices are others", name)
		}
	}
	if n.devicesAfter(before, allocation([]string{"other"}, nil)) != before {
		t.Error("a device of another node changes the devices")
	}
}

func TestDemandOfWhatIsGiven(t *testing.T) {
	t.Parallel()
	share := func(device, milli int) gpu.Grant { return gpu.Grant{Device: device, Share: gpu.Share{Milli: milli}} }
	for name, tc := range map[string]struct {
		given []gpu.Grant
		want  gpu.Request
	}{
		"nothing":          {nil, gpu.Request{}},
		"two GPUs":         {[]gpu.Grant{share(0, 1000), share(3, 1000)}, gpu.Request{Count: 2, Milli: 1000}},
		"two parts of one": {[]gpu.Grant{share(0, 142), share(0, 285)}, gpu.Request{Count: 1, Milli: 427}},
		"a GPU and a half": {[]gpu.Grant{share(0, 1000), share(1, 501)}, gpu.Request{Count: 2, Milli: 751}},
		"slices of no GPU": {[]gpu.Grant{{Slice: "a/1g", Share: gpu.Share{Milli: 142}},
			{Slice: "a/1g", Share: gpu.Share{Milli: 142}}},
			gpu.Request{Slices: []gpu.SliceCount{{Resource: "a/1g", Count: 2, Milli: 142}}}},
		"more than all of it": {[]gpu.Grant{share(0, 800), share(0, 800)}, gpu.Request{Count: 1, Milli: 1000}},
	} {
		if diff := cmp.Diff(tc.want, requestOf(tc.given)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// FuzzGPUsOfSlices reads devices as a driver may write them: whatever comes, what is free is within range, and taking a
// device never makes more free.
func FuzzGPUsOfSlices(f *testing.F) {
	f.Add("NVIDIA A100-SXM4-80GB", "1g.10gb", "GPU-0", "8.0.0", int64(80<<30), int64(10<<30), int64(3), uint8(0))
	f.Add("", "", "", "", int64(0), int64(-1), int64(1<<62), uint8(255))
	f.Add("Tesla-T4-SHARED", "9g.", "", "99999999999999999999.1", int64(1), int64(1<<62), int64(-5), uint8(7))
	f.Fuzz(func(t *testing.T, product, profile, uuid, capability string, total, part, consumed int64, bits uint8) {
		quantity := func(n int64) resourcev1.DeviceCapacity {
			return resourcev1.DeviceCapacity{Value: *resource.NewQuantity(n, resource.BinarySI)}
		}
		var devices []resourcev1.Device
		for i := range 3 {
			d := draDevice(fmt.Sprintf("d-%d", i), texts{"productName": product, "uuid": uuid, "parentUUID": uuid,
				"type": product}, nil)
			if bits&(1<<i) != 0 {
				d.Attributes["profile"] = resourcev1.DeviceAttribute{StringValue: &profile}
			}
			d.Attributes["cudaComputeCapability"] = resourcev1.DeviceAttribute{VersionValue: &capability}
			d.Capacity["memory"], d.Capacity["cores"] = quantity(total), quantity(part)
			if bits&(8<<i) != 0 {
				shareable(&d)
			}
			if bits&64 != 0 {
				d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "c",
					Counters: map[string]resourcev1.Counter{
						"memory": {Value: *resource.NewQuantity(part, resource.BinarySI)}}}}
			}
			devices = append(devices, d)
		}
		n := draNode(map[string]texts{"c": {"memory": fmt.Sprint(total)}}, devices...)
		free, held := n.Inventory(allocation(nil, nil)), n.Inventory(allocation([]string{"d-0"},
			texts{"d-1/memory": fmt.Sprint(consumed)}))
		for i, d := range held.Devices {
			if was := free.Devices[i]; d.FreeMilli < 0 || d.FreeMilli > was.FreeMilli || was.FreeMilli > gpu.WholeMilli ||
				d.FreeMemMiB < 0 || d.FreeMemMiB > was.FreeMemMiB {
				t.Fatalf("device %d has %+v free, and %+v while nothing is held", i, d, was)
			}
		}
		for i, s := range held.Slices {
			if s.Count < 0 || s.Count > free.Slices[i].Count || s.Milli < 1 || s.Milli > gpu.WholeMilli {
				t.Fatalf("slices %+v of %+v", s, free.Slices[i])
			}
		}
		for _, d := range n.devices {
			u := d.share(amounts{"memory": float64(consumed), "cores": float64(part)})
			if u.milli < 0 || u.milli > gpu.WholeMilli || u.memMiB < -1 {
				t.Fatalf("a share of %+v", u)
			}
		}
	})
}
