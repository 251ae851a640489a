// Package fields reads fields of Kubernetes objects of any kind, as they are decoded from JSON.
//
// A Reader remembers the first field that holds something else than expected, so that the caller asks once, at the end,
// and knows on request which part of the object was read: that is what a dump of a cluster has to keep. Package read
// calls it for the objects of controllers and for groups of other schedulers. It knows no kind, and changes no object.
package fields
