// Package runview reads what pods, their groups and controllers declare about how long they run and by when they have
// to end, and when they started.
//
// Reservations, the controller of PodGroups, price windows and the tool call it. It never writes an object, and ignores
// run times of more than ten years.
package runview
