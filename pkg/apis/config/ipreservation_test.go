package config

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/test/harness/assert"
)

func TestIPReservationArgs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		args IPReservationArgs
		bad  []string
	}{
		{name: "the defaults"},
		{name: "what Calico reads", args: IPReservationArgs{AddressAnnotation: new("cni.projectcalico.org/ipAddrs"),
			AddressFormat: new(AddressJSONList)}},
		{name: "a key without a prefix", args: IPReservationArgs{AddressAnnotation: new("address")}},
		{name: "an empty key", args: IPReservationArgs{AddressAnnotation: new("")},
			bad: []string{"args.addressAnnotation", "name part"}},
		{name: "a key with a space", args: IPReservationArgs{AddressAnnotation: new("ip address")}, bad: []string{`args.addressAnnotation: Invalid value: "ip address"`}},
		{name: "a key with two prefixes", args: IPReservationArgs{AddressAnnotation: new("a/b/c")},
			bad: []string{"args.addressAnnotation"}},
		{name: "a key that is too long", args: IPReservationArgs{AddressAnnotation: new(strings.Repeat("x", 64))},
			bad: []string{"args.addressAnnotation", "63"}},
		{name: "the key of the request", args: IPReservationArgs{AddressAnnotation: new("berth.dev/ip-pool")},
			bad: []string{"args.addressAnnotation", "names the pool"}},
		{name: "an unknown form", args: IPReservationArgs{AddressFormat: new(AddressFormat("List"))},
			bad: []string{"args.addressFormat", "List", "JSONList", "Plain"}},
		{name: "a form in lower case", args: IPReservationArgs{AddressFormat: new(AddressFormat("plain"))},
			bad: []string{"args.addressFormat"}},
		{name: "an empty form", args: IPReservationArgs{AddressFormat: new(AddressFormat(""))},
			bad: []string{"args.addressFormat"}},
		{name: "two bad values", args: IPReservationArgs{AddressAnnotation: new(""), AddressFormat: new(AddressFormat("x"))},
			bad: []string{"addressAnnotation", "addressFormat"}},
	} {
		test.args.SetDefaults()
		err := test.args.Validate(field.NewPath("args"))
		if (err != nil) != (test.bad != nil) {
			t.Errorf("%s: got %v", test.name, err)
		}
		for _, text := range test.bad {
			if err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("%s: the error does not say %q: %v", test.name, text, err)
			}
		}
	}
}

func TestDefaultsOfIPReservationArgsKeepWhatIsSet(t *testing.T) {
	t.Parallel()
	var none IPReservationArgs
	none.SetDefaults()
	assert.Equal(t, "defaults", IPReservationArgs{AddressAnnotation: new(DefaultAddressAnnotation),
		AddressFormat: new(AddressPlain)}, none)
	set := IPReservationArgs{AddressAnnotation: new("a/b"), AddressFormat: new(AddressJSONList)}
	same := *set.DeepCopy()
	set.SetDefaults()
	assert.Equal(t, "what was set", same, set)
}
