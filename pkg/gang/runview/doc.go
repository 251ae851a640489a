// Package runview reads what pods, their groups and controllers say of how long they run and by when they are to end,
// and when they started. It reads objects only.
package runview
