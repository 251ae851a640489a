// Package runview reads what pods, their groups and controllers say of how long they run and by when they are to end,
// and when they started.
//
// Reservations ask it when capacity comes free, the controller of PodGroups and price windows by when work has to
// start, and the tool what to tell. It reads objects only, and believes no run time of more than ten years.
package runview
