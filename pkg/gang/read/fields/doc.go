// Package fields reads fields of Kubernetes objects of any kind, as they are decoded from JSON.
//
// A Reader remembers the first bad value, so that callers check for errors once, and on request which part of the
// object was read, which a dump of a cluster keeps. Package read calls it for objects of controllers and groups of
// other schedulers. It knows no kind, and never changes an object.
package fields
