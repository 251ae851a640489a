package config

import (
	"testing"

	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/assert"
)

func TestDefaultsOfIPReservationArgsKeepWhatIsSet(t *testing.T) {
	t.Parallel()
	var none IPReservationArgs
	none.SetDefaults()
	assert.Equal(t, "defaults", IPReservationArgs{AddressAnnotation: new(wellknown.IPAddressKey),
		AddressFormat: new(AddressPlain)}, none)
	set := IPReservationArgs{AddressAnnotation: new("a/b"), AddressFormat: new(AddressJSONList)}
	same := *set.DeepCopy()
	set.SetDefaults()
	assert.Equal(t, "what was set", same, set)
}
