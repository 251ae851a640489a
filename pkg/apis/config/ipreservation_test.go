package config

import (
	"testing"

	"berth.dev/berth/test/harness/assert"
)

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
